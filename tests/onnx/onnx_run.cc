#include "tests/onnx/onnx_run.h"

#include "graph/onnx/import.h"
#include "graph/onnx/reader.h"
#include "graph/ops/builtin_ops.h"
#include "graph/session/session.h"
#include "graph/session/session_config.h"

namespace npumesh::testing {

Result<Model> ImportBytes(const std::string& bytes) {
  NPUMESH_ASSIGN_OR_RETURN(const OnnxModel model, ReadOnnx(bytes, ""));
  return ImportOnnx(model, BuiltinOps());
}

Result<std::vector<Tensor>> RunOnce(const Model& model, const std::vector<Tensor>& inputs) {
  Env env;
  env.hbm_bytes = uint64_t{16} << 20;
  env.connect_timeout = std::chrono::seconds(300);
  env.exec_timeout = std::chrono::seconds(300);
  std::vector<Tensor> outputs;
  const Status status = RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                             Session::Create(world, *memory, model, DefaultSessionOptions()));
    NPUMESH_ASSIGN_OR_RETURN(outputs, session->Run(inputs));
    return Status();
  })[0];
  if (!status.ok()) return status;
  return outputs;
}

Result<std::vector<Tensor>> RunOnnx(const std::string& bytes, const std::vector<Tensor>& inputs) {
  NPUMESH_ASSIGN_OR_RETURN(const Model model, ImportBytes(bytes));
  return RunOnce(model, inputs);
}

}  // namespace npumesh::testing
