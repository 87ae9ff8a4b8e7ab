// SessionModel: an offline model on a device of the C interface, which is a session of its graph.
#ifndef NPUMESH_GRAPH_ACL_MODEL_SESSION_MODEL_H_
#define NPUMESH_GRAPH_ACL_MODEL_SESSION_MODEL_H_

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/offline/offline_facts.h"
#include "graph/session/session.h"
#include "runtime/acl/models/model_machine.h"

namespace npumesh {

// A model as it was read.
struct ReadModel {
  Model model;
  OfflineFacts facts;
  ModelFacts told;  // the same, as the C interface tells it
};

// Errors: those of MappedFile::Open, LoadModel and ReadOfflineFacts. A graph that was never
// compiled (.air) is read too; a device takes offline models only, so it is said once.
Result<ReadModel> ReadModelBytes(const ModelBytes& bytes);
// The number of models in a bundle; 1 for any other file, whose content is not read. Errors as
// above.
Result<size_t> CountModelsIn(const ModelBytes& bytes);

// What the C interface tells of a model. Errors as InputsOf.
Result<ModelFacts> FactsOf(const Model& model, const OfflineFacts& facts);

struct SessionModelOptions {
  TensorDumpOptions dump = {};
  bool operator_alone = false;  // dumped as AclDumps says at each run
  bool ref_data = false;        // inputs that its operators write to are written where they are
  ModelAreas areas = {};
  std::shared_ptr<NodeWatch> card = nullptr;  // as SessionOptions has it
};

class SessionModel final : public LoadedModel {
 public:
  // `turn` is of the device: one model runs at a time. It must outlive the model. Errors: those of
  // Session::Create; kMismatch for a model of a rank that the device's world is not.
  static Result<std::unique_ptr<LoadedModel>> Create(AclDevice& device, std::mutex& turn,
                                                     ReadModel read,
                                                     const SessionModelOptions& options);

  const ModelFacts& facts() const override { return told_; }
  void Watch(OperatorWatch watch) override {
    const std::lock_guard lock(turn_);
    watch_ = std::move(watch);
  }
  Status Run(const std::vector<ModelBuffer>& inputs, std::vector<ModelBuffer>& outputs,
             const std::function<Result<void*>(uint64_t bytes)>& make) override;

 private:
  SessionModel(AclDevice& device, std::mutex& turn, ModelFacts told)
      : device_(device), turn_(turn), told_(std::move(told)) {}
  Status Bind(const std::vector<ModelBuffer>& inputs);

  AclDevice& device_;
  std::mutex& turn_;
  const ModelFacts told_;
  std::unique_ptr<Session> session_;
  bool operator_alone_ = false;
  OperatorWatch watch_;                // guarded by turn_
  std::vector<PlanOperand> operands_;  // of one run, kept for the next
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACL_MODEL_SESSION_MODEL_H_
