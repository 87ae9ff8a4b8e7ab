// Single operators that are compiled when they run: acl_op_compiler.h.
#include "acl/acl_op_compiler.h"

#include <filesystem>

#include "runtime/acl/operators/operator_execution.h"
#include "runtime/acl/process/api_span.h"

using npumesh::ApiSpan;
using npumesh::Compiling;
using npumesh::Fail;
using npumesh::FindObject;
using npumesh::ModelMachine;
using npumesh::ModelObjects;
using npumesh::OperatorCall;
using npumesh::OutputShapes;
using npumesh::Result;
using npumesh::Status;

namespace {

aclError CheckWay(const char* function, aclopEngineType engine, aclopCompileType flag,
                  const char* path) {
  if (engine < ACL_ENGINE_SYS || engine > ACL_ENGINE_VECTOR) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "engineType is {}, expected 0 to 2",
                static_cast<int>(engine));
  }
  if (flag != ACL_COMPILE_SYS && flag != ACL_COMPILE_UNREGISTERED) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "compileFlag is {}, expected 0 or 1",
                static_cast<int>(flag));
  }
  if (path == nullptr || *path == '\0') return ACL_SUCCESS;
  return Fail(ACL_ERROR_FEATURE_UNSUPPORTED, function,
              "opPath is \"{}\"; operators are those of npumesh, so it has to be null", path);
}

std::string GraphFile(const std::string& path, const OperatorCall& call) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  return path + "/ge_proto_" + call.type + ".txt";
}

}  // namespace

aclError aclopCompile(const char* opType, int numInputs, const aclTensorDesc* const inputDesc[],
                      int numOutputs, const aclTensorDesc* const outputDesc[],
                      const aclopAttr* attr, aclopEngineType engineType,
                      aclopCompileType compileFlag, const char* opPath) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_TRY(CheckWay(__func__, engineType, compileFlag, opPath));
  OperatorCall call;
  NPUMESH_ACL_TRY(
      DescribeCall({__func__, opType, numInputs, inputDesc, numOutputs, outputDesc, attr},
                   OutputShapes::kGiven, &call));
  return CompileOperator(__func__, call);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopCompileAndExecute(const char* opType, int numInputs,
                                const aclTensorDesc* const inputDesc[],
                                const aclDataBuffer* const inputs[], int numOutputs,
                                const aclTensorDesc* const outputDesc[],
                                aclDataBuffer* const outputs[], const aclopAttr* attr,
                                aclopEngineType engineType, aclopCompileType compileFlag,
                                const char* opPath, aclrtStream stream) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_TRY(CheckWay(__func__, engineType, compileFlag, opPath));
  return ExecuteOperator({__func__, opType, numInputs, inputDesc, numOutputs, outputDesc, attr},
                         OutputShapes::kGiven, inputs, outputs, stream, Compiling::kNow);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopCompileAndExecuteV2(const char* opType, int numInputs, aclTensorDesc* inputDesc[],
                                  aclDataBuffer* inputs[], int numOutputs,
                                  aclTensorDesc* outputDesc[], aclDataBuffer* outputs[],
                                  aclopAttr* attr, aclopEngineType engineType,
                                  aclopCompileType compileFlag, const char* opPath,
                                  aclrtStream stream) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_TRY(CheckWay(__func__, engineType, compileFlag, opPath));
  return ExecuteOperator({__func__, opType, numInputs, inputDesc, numOutputs, outputDesc, attr},
                         OutputShapes::kInferred, inputs, outputs, stream, Compiling::kNow);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclGenGraphAndDumpForOp(const char* opType, int numInputs,
                                 const aclTensorDesc* const inputDesc[],
                                 const aclDataBuffer* const*, int numOutputs,
                                 const aclTensorDesc* const outputDesc[], aclDataBuffer* const*,
                                 const aclopAttr* attr, aclopEngineType engineType,
                                 const char* graphDumpPath,
                                 const aclGraphDumpOption* graphDumpOpt) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_TRY(CheckWay(__func__, engineType, ACL_COMPILE_SYS, nullptr));
  NPUMESH_ACL_EXPECT(graphDumpPath != nullptr && *graphDumpPath != '\0', "graphDumpPath is empty");
  if (graphDumpOpt != nullptr && FindObject(ModelObjects::Get().graph_dump_options, graphDumpOpt,
                                            __func__, "option of graph dumps") == nullptr) {
    return ACL_ERROR_INVALID_PARAM;
  }
  OperatorCall call;
  NPUMESH_ACL_TRY(
      DescribeCall({__func__, opType, numInputs, inputDesc, numOutputs, outputDesc, attr},
                   OutputShapes::kGiven, &call));
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return npumesh::Report(__func__, machine.status());
  const Status written = (*machine)->WriteOperatorGraph(call, GraphFile(graphDumpPath, call));
  if (written.code() == npumesh::Code::kIo) {
    return npumesh::FailWith(ACL_ERROR_INVALID_FILE, __func__, written.message());
  }
  return written.ok() ? ACL_SUCCESS : npumesh::FailOperator(__func__, written);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclGraphDumpOption* aclCreateGraphDumpOpt() try {
  return static_cast<aclGraphDumpOption*>(
      ModelObjects::Get().graph_dump_options.Add(std::make_shared<aclGraphDumpOption>()));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclDestroyGraphDumpOpt(const aclGraphDumpOption* graphDumpOpt) try {
  const auto& options = ModelObjects::Get().graph_dump_options;
  if (FindObject(options, graphDumpOpt, __func__, "option of graph dumps") == nullptr) {
    return ACL_ERROR_INVALID_PARAM;
  }
  static_cast<void>(ModelObjects::Get().graph_dump_options.Take(graphDumpOpt));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
