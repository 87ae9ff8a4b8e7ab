// Single operators: acl_op.h.
#include "acl/acl_op.h"

#include <algorithm>
#include <filesystem>

#include "runtime/acl/operators/operator_execution.h"
#include "runtime/acl/operators/operators.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/without_effect.h"

using npumesh::ApiSpan;
using npumesh::CallAttr;
using npumesh::Compiling;
using npumesh::Fail;
using npumesh::FindObject;
using npumesh::ModelBytes;
using npumesh::ModelMachine;
using npumesh::ModelObjects;
using npumesh::ModelPort;
using npumesh::OperatorArguments;
using npumesh::OperatorCall;
using npumesh::OperatorRun;
using npumesh::Operators;
using npumesh::OutputShapes;
using npumesh::Refuse;
using npumesh::Result;
using npumesh::Status;

namespace {

namespace fs = std::filesystem;

// ---- Attributes ----

aclError SetAttr(const char* function, aclopAttr* handle, const char* name, CallAttr value) {
  const auto attr =
      FindObject(ModelObjects::Get().op_attrs, handle, function, "attributes of an operator");
  if (attr == nullptr) return ACL_ERROR_INVALID_PARAM;
  if (name == nullptr || *name == '\0') {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "attrName is {}",
                name == nullptr ? "null" : "empty");
  }
  attr->values.insert_or_assign(name, std::move(value));
  return ACL_SUCCESS;
}

// A list of C as a list of `To`.
template <typename To, typename From>
aclError SetList(const char* function, aclopAttr* attr, const char* name, int count,
                 const From* values) {
  constexpr int kMost = 1 << 24;
  if (count < 0 || count > kMost || (count > 0 && values == nullptr)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "attribute \"{}\" has {} values{}",
                name == nullptr ? "" : name, count,
                values == nullptr ? " at null" : ", expected 0 to 16777216");
  }
  std::vector<To> list;
  for (int i = 0; i < count; ++i) {
    if constexpr (std::is_pointer_v<From>) {
      if (values[i] == nullptr) {
        return Fail(ACL_ERROR_INVALID_PARAM, function, "value {} is null", i);
      }
    }
    list.push_back(static_cast<To>(values[i]));
  }
  return SetAttr(function, attr, name, std::move(list));
}

// ---- Offline models of operators ----

aclError FailAdding(const char* function, const Status& status) {
  if (status.code() == npumesh::Code::kInvalidArgument) {
    return npumesh::FailWith(ACL_ERROR_INVALID_PARAM, function, status.message());
  }
  return npumesh::FailWith(ACL_ERROR_PARSE_MODEL, function, status.message());
}

// The .om files in a folder and two levels below.
std::vector<std::string> OperatorFiles(const std::string& folder, std::error_code* error) {
  std::vector<std::string> files;
  fs::recursive_directory_iterator entries(folder, *error);
  for (; !*error && entries != fs::end(entries); entries.increment(*error)) {
    if (entries.depth() >= 2) entries.disable_recursion_pending();
    std::error_code ignored;
    const bool is_file = entries->is_regular_file(ignored);
    if (is_file && entries->path().extension() == ".om") files.push_back(entries->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

aclError AddFolder(const char* function, const std::string& folder) {
  std::error_code error;
  const std::vector<std::string> files = OperatorFiles(folder, &error);
  if (error) {
    return Fail(ACL_ERROR_READ_MODEL_FAILURE, function, "{}: it cannot be read: {}", folder,
                error.message());
  }
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return npumesh::Report(function, machine.status());
  for (const std::string& file : files) {
    const Status added = (*machine)->AddOperator({file, nullptr, 0});
    const bool other = added.code() == npumesh::Code::kInvalidArgument;  // a whole model
    if (!added.ok() && !other) return FailAdding(function, added.WithContext(file));
  }
  return ACL_SUCCESS;
}

// ---- Cast ----

// The type of the result as an attribute; `attr` lives as long as the call.
class CastAttr {
 public:
  aclError Begin(const char* function, const aclTensorDesc* result) {
    const auto desc =
        FindObject(ModelObjects::Get().tensors, result, function, "tensor description");
    if (desc == nullptr) return ACL_ERROR_INVALID_PARAM;
    handle_ = aclopCreateAttr();
    if (handle_ == nullptr) return ACL_ERROR_BAD_ALLOC;
    return aclopSetAttrInt(handle_, "dst_type", desc->dtype);
  }
  ~CastAttr() {
    if (handle_ != nullptr) aclopDestroyAttr(handle_);
  }
  CastAttr() = default;
  CastAttr(const CastAttr&) = delete;
  CastAttr& operator=(const CastAttr&) = delete;
  const aclopAttr* get() const { return handle_; }

 private:
  aclopAttr* handle_ = nullptr;
};

constexpr char kCast[] = "Cast";
constexpr uint64_t kMostShapeBytes = 64 << 10;  // of inputs that decide shapes

}  // namespace

aclopAttr* aclopCreateAttr() try {
  return static_cast<aclopAttr*>(ModelObjects::Get().op_attrs.Add(std::make_shared<aclopAttr>()));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

void aclopDestroyAttr(const aclopAttr* attr) try {
  const auto& attrs = ModelObjects::Get().op_attrs;
  if (FindObject(attrs, attr, __func__, "attributes of an operator") == nullptr) return;
  static_cast<void>(ModelObjects::Get().op_attrs.Take(attr));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
}

aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName, uint8_t attrValue) try {
  return SetAttr(__func__, attr, attrName, attrValue != 0);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName, int64_t attrValue) try {
  return SetAttr(__func__, attr, attrName, attrValue);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName, float attrValue) try {
  return SetAttr(__func__, attr, attrName, attrValue);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrString(aclopAttr* attr, const char* attrName, const char* attrValue) try {
  NPUMESH_ACL_EXPECT(attrValue != nullptr, "attrValue is null");
  return SetAttr(__func__, attr, attrName, std::string(attrValue));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName, aclDataType attrValue) try {
  return SetAttr(__func__, attr, attrName, attrValue);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrListDataType(aclopAttr* attr, const char* attrName, int numValues,
                                  const aclDataType values[]) try {
  return SetList<aclDataType>(__func__, attr, attrName, numValues, values);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName, int numValues,
                              const uint8_t* values) try {
  return SetList<bool>(__func__, attr, attrName, numValues, values);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName, int numValues,
                             const int64_t* values) try {
  return SetList<int64_t>(__func__, attr, attrName, numValues, values);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName, int numValues,
                               const float* values) try {
  return SetList<float>(__func__, attr, attrName, numValues, values);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrListString(aclopAttr* attr, const char* attrName, int numValues,
                                const char** values) try {
  return SetList<std::string>(__func__, attr, attrName, numValues, values);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName, int numLists,
                                 const int* numValues, const int64_t* const values[]) try {
  constexpr int kMost = 1 << 16;
  NPUMESH_ACL_EXPECT(numLists >= 0 && numLists <= kMost, "numLists is {}, expected 0 to {}",
                     numLists, kMost);
  NPUMESH_ACL_EXPECT(numLists == 0 || (numValues != nullptr && values != nullptr),
                     "numValues or values is null");
  std::vector<std::vector<int64_t>> lists;
  for (int i = 0; i < numLists; ++i) {
    NPUMESH_ACL_EXPECT(
        numValues[i] >= 0 && numValues[i] <= kMost && (numValues[i] == 0 || values[i] != nullptr),
        "list {} has {} values{}", i, numValues[i], values[i] == nullptr ? " at null" : "");
    lists.emplace_back(values[i], values[i] + numValues[i]);
  }
  return SetAttr(__func__, attr, attrName, std::move(lists));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetModelDir(const char* modelDir) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(modelDir != nullptr && *modelDir != '\0', "modelDir is empty");
  Operators& operators = Operators::Get();
  if (!operators.TakeModelDir()) {
    return Fail(ACL_ERROR_REPEAT_INITIALIZE, __func__,
                "a folder was given before; aclopLoad takes further operators");
  }
  const aclError added = AddFolder(__func__, modelDir);
  if (added != ACL_SUCCESS) operators.ForgetModelDir();
  return added;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopLoad(const void* model, size_t modelSize) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(model != nullptr && modelSize > 0, "expected a model and its size, seen {}",
                     modelSize);
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return npumesh::Report(__func__, machine.status());
  Operators::Get().EndWithProcess();
  const Status added = (*machine)->AddOperator({"operator in memory", model, modelSize});
  return added.ok() ? ACL_SUCCESS : FailAdding(__func__, added);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetMaxOpQueueNum(uint64_t maxOpNum) try {
  NPUMESH_ACL_EXPECT(maxOpNum > 0, "maxOpNum is 0");
  Operators::Get().set_most(maxOpNum);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopExecute(const char* opType, int numInputs, const aclTensorDesc* const inputDesc[],
                      const aclDataBuffer* const inputs[], int numOutputs,
                      const aclTensorDesc* const outputDesc[], aclDataBuffer* const outputs[],
                      const aclopAttr* attr, aclrtStream stream) try {
  const ApiSpan span(__func__);
  return ExecuteOperator({__func__, opType, numInputs, inputDesc, numOutputs, outputDesc, attr},
                         OutputShapes::kGiven, inputs, outputs, stream, Compiling::kBefore);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopExecuteV2(const char* opType, int numInputs, aclTensorDesc* inputDesc[],
                        aclDataBuffer* inputs[], int numOutputs, aclTensorDesc* outputDesc[],
                        aclDataBuffer* outputs[], aclopAttr* attr, aclrtStream stream) try {
  const ApiSpan span(__func__);
  return ExecuteOperator({__func__, opType, numInputs, inputDesc, numOutputs, outputDesc, attr},
                         OutputShapes::kInferred, inputs, outputs, stream, Compiling::kBefore);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopCreateHandle(const char* opType, int numInputs,
                           const aclTensorDesc* const inputDesc[], int numOutputs,
                           const aclTensorDesc* const outputDesc[], const aclopAttr* opAttr,
                           aclopHandle** handle) try {
  const ApiSpan span(__func__);
  OperatorCall call;
  NPUMESH_ACL_TRY(
      DescribeCall({__func__, opType, numInputs, inputDesc, numOutputs, outputDesc, opAttr},
                   OutputShapes::kGiven, &call));
  return MakeHandle(__func__, std::move(call), handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

void aclopDestroyHandle(aclopHandle* handle) try {
  const auto& handles = ModelObjects::Get().op_handles;
  if (FindObject(handles, handle, __func__, "handle of an operator") == nullptr) return;
  static_cast<void>(ModelObjects::Get().op_handles.Take(handle));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
}

aclError aclopExecWithHandle(aclopHandle* handle, int numInputs,
                             const aclDataBuffer* const inputs[], int numOutputs,
                             aclDataBuffer* const outputs[], aclrtStream stream) try {
  const ApiSpan span(__func__);
  const auto found =
      FindObject(ModelObjects::Get().op_handles, handle, __func__, "handle of an operator");
  if (found == nullptr) return ACL_ERROR_INVALID_PARAM;
  OperatorRun run;
  run.call = found->call;
  NPUMESH_ACL_TRY(TakeBuffers(__func__, numInputs, inputs, numOutputs, outputs, &run));
  return RunOperator(__func__, std::move(run), found->made, stream, /*waits=*/false, nullptr);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopCast(const aclTensorDesc* srcDesc, const aclDataBuffer* srcBuffer,
                   const aclTensorDesc* dstDesc, aclDataBuffer* dstBuffer, uint8_t,
                   aclrtStream stream) try {
  const ApiSpan span(__func__);
  CastAttr attr;
  NPUMESH_ACL_TRY(attr.Begin(__func__, dstDesc));
  return ExecuteOperator({__func__, kCast, 1, &srcDesc, 1, &dstDesc, attr.get()},
                         OutputShapes::kGiven, &srcBuffer, &dstBuffer, stream, Compiling::kBefore);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopCreateHandleForCast(aclTensorDesc* srcDesc, aclTensorDesc* dstDesc, uint8_t,
                                  aclopHandle** handle) try {
  const ApiSpan span(__func__);
  CastAttr attr;
  NPUMESH_ACL_TRY(attr.Begin(__func__, dstDesc));
  return aclopCreateHandle(kCast, 1, &srcDesc, 1, &dstDesc, attr.get(), handle);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopInferShape(const char* opType, int numInputs, aclTensorDesc* inputDesc[],
                         aclDataBuffer* inputs[], int numOutputs, aclTensorDesc* outputDesc[],
                         aclopAttr* attr) try {
  const ApiSpan span(__func__);
  OperatorRun run;
  OperatorCall& call = run.call;
  NPUMESH_ACL_TRY(
      DescribeCall({__func__, opType, numInputs, inputDesc, numOutputs, outputDesc, attr},
                   OutputShapes::kInferred, &call));
  for (size_t i = 0; inputs != nullptr && i < call.inputs.size(); ++i) {
    if (call.inputs[i].absent() || call.inputs[i].value != nullptr || inputs[i] == nullptr) {
      continue;
    }
    const auto buffer =
        FindObject(ModelObjects::Get().buffers, inputs[i], __func__, "data buffer of an input");
    if (buffer == nullptr) return ACL_ERROR_INVALID_PARAM;
    const uint64_t bytes = npumesh::BytesOfTensor(call.inputs[i].dtype, call.inputs[i].dims);
    if (buffer->data == nullptr || bytes == 0 || bytes > kMostShapeBytes) continue;
    NPUMESH_ACL_EXPECT(buffer->size >= bytes, "input {} has {} bytes, its buffer {}", i, bytes,
                       buffer->size);
    const auto* first = static_cast<const std::byte*>(buffer->data);
    call.inputs[i].value = std::make_shared<const std::vector<std::byte>>(first, first + bytes);
  }
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return npumesh::Report(__func__, machine.status());
  const Result<std::vector<ModelPort>> told = (*machine)->InferOperator(call);
  if (!told.ok()) return npumesh::FailOperator(__func__, told.status());
  for (size_t i = 0; i < told->size(); ++i) {
    const auto desc = ModelObjects::Get().tensors.Find(outputDesc[i]);
    if (desc == nullptr || call.outputs[i].absent()) continue;
    desc->dims = (*told)[i].dims;
    if ((*told)[i].dtype != ACL_DT_UNDEFINED) desc->dtype = (*told)[i].dtype;
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopCreateKernel(const char*, const char*, const char*, void*, int, aclopEngineType,
                           aclDataDeallocator) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopRegisterCompileFunc(const char*, aclopCompileFunc) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopUnregisterCompileFunc(const char*) try { return Refuse(__func__); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetKernelArgs(aclopKernelDesc*, const char*, uint32_t, const void*, uint32_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopSetKernelWorkspaceSizes(aclopKernelDesc*, int, size_t*) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclopUpdateParams(const char*, int, const aclTensorDesc* const[], int,
                           const aclTensorDesc* const[], const aclopAttr*) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
