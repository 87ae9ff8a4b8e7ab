// The ModelMachine that libacl_mdl.so has.
#include "runtime/acl/models/model_machine.h"

#include "graph/acl_model/acl_dumps.h"
#include "graph/acl_model/device_turns.h"
#include "graph/acl_model/given_tensors.h"
#include "graph/acl_model/operator_shelf.h"
#include "graph/acl_model/session_model.h"

namespace npumesh {
namespace {

class SessionMachine final : public ModelMachine {
 public:
  Result<std::unique_ptr<LoadedModel>> Load(AclDevice& device, const ModelBytes& bytes,
                                            const ModelAreas& areas) override {
    NPUMESH_ASSIGN_OR_RETURN(ReadModel read, ReadModelBytes(bytes));
    Result<std::unique_ptr<LoadedModel>> model = SessionModel::Create(
        device, TurnOf(device), std::move(read),
        {.dump = AclDumps::OfProcess().OfModels(), .ref_data = false, .areas = areas});
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
    return AclDumps::OfProcess().Set(config_path);
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
  OperatorShelf shelf_;
};

}  // namespace
}  // namespace npumesh

extern "C" npumesh::ModelMachine* npumesh_model_machine() {
  static npumesh::SessionMachine* const machine = new npumesh::SessionMachine;
  return machine;
}
