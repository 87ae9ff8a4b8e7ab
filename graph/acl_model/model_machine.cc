// The ModelMachine that libacl_mdl.so has.
#include "runtime/acl/model_machine.h"

#include <mutex>

#include "graph/acl_model/device_turns.h"
#include "graph/acl_model/given_tensors.h"
#include "graph/acl_model/operator_shelf.h"
#include "graph/acl_model/session_model.h"
#include "graph/dump/options/config_file.h"

namespace npumesh {
namespace {

class Machine final : public ModelMachine {
 public:
  Result<std::unique_ptr<LoadedModel>> Load(AclDevice& device, const ModelBytes& bytes,
                                            const ModelAreas& areas) override {
    NPUMESH_ASSIGN_OR_RETURN(ReadModel read, ReadModelBytes(bytes));
    Result<std::unique_ptr<LoadedModel>> model =
        SessionModel::Create(device, TurnOf(device), std::move(read),
                             {.dump = Dump(), .ref_data = false, .areas = areas});
    const bool named = model.ok() || model.status().message().find(bytes.path) != std::string::npos;
    return named ? std::move(model)
                 : Result<std::unique_ptr<LoadedModel>>(model.status().WithContext(bytes.path));
  }

  Result<ModelFacts> Describe(const ModelBytes& bytes) override {
    NPUMESH_ASSIGN_OR_RETURN(const ReadModel read, ReadModelBytes(bytes));
    return read.told;
  }

  Result<size_t> CountModels(const ModelBytes& bytes) override { return CountModelsIn(bytes); }

  Status SetDump(const std::string& config_path) override {
    TensorDumpOptions dump;
    if (!config_path.empty()) {
      NPUMESH_ASSIGN_OR_RETURN(dump.operators, ReadDumpConfig(config_path));
    }
    const std::lock_guard lock(mutex_);
    dump_ = std::move(dump);
    return Status();
  }

  Status WriteTensors(const std::string& folder, const std::string& name, const std::string& tag,
                      const std::vector<GivenTensor>& tensors) override {
    return WriteGivenTensors(folder, name, tag, tensors);
  }

  Status AddOperator(const ModelBytes& bytes) override { return shelf_.Add(bytes); }
  Status CompileOperator(AclDevice& device, const OperatorCall& call) override {
    return shelf_.Compile(device, call);
  }
  Result<MadeOperator> MakeOperator(AclDevice& device, const OperatorCall& call) override {
    return shelf_.Make(device, TurnOf(device), call);
  }
  void ForgetOperators() override { shelf_.Clear(); }
  Result<std::vector<ModelPort>> InferOperator(const OperatorCall& call) override {
    return npumesh::InferOperator(call);
  }
  Status WriteOperatorGraph(const OperatorCall& call, const std::string& path) override {
    return npumesh::WriteOperatorGraph(call, path);
  }

 private:
  TensorDumpOptions Dump() {
    const std::lock_guard lock(mutex_);
    return dump_;
  }

  std::mutex mutex_;
  TensorDumpOptions dump_;
  OperatorShelf shelf_;
};

}  // namespace
}  // namespace npumesh

extern "C" npumesh::ModelMachine* npumesh_model_machine() {
  static npumesh::Machine* const machine = new npumesh::Machine;
  return machine;
}
