// Session: one rank, one model, many steps.
//
// Owns the communicators a graph names, compiles on the first sight of a set of input shapes and
// keeps the result, moves inputs in and outputs out.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_SESSION_SESSION_H_
#define NPUMESH_GRAPH_SESSION_SESSION_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/engine/compiled_model.h"
#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {

// Group name -> members in group order, from model_relation_config.json or from a caller.
using GroupTable = std::map<std::string, std::vector<int>>;

// Reads `comm_group` of DIR/model_relation_config.json; an absent file is an empty table. Errors
// (kCorrupt) name file and field.
Result<GroupTable> ReadGroupTable(const std::string& folder);

// Communicators by the `group` attribute of graphs, made when first asked for.
class GroupSet final : public GroupProvider {
 public:
  GroupSet(World& world, DeviceMemory& memory, GroupTable table);
  ~GroupSet() override;
  Result<Communicator*> Group(const std::string& group) override;
  Result<Members> MembersOf(const std::string& group) override;
  // Sum over all communicators.
  Communicator::Totals totals() const;

 private:
  World& world_;
  DeviceMemory& memory_;
  GroupTable table_;
  std::map<std::string, std::unique_ptr<Communicator>> communicators_;
};

struct SessionOptions {
  CompileOptions compile;
  GroupTable groups;
};

struct SessionStats {
  RunStats run;  // sums over all steps
  double compile_seconds = 0;
  uint64_t runs = 0;
  uint64_t peak_hbm_bytes = 0;
  uint64_t arena_bytes = 0;
  uint64_t constant_bytes = 0;
};

class Session {
 public:
  // `world` and `memory` must outlive the session. Checks that every operator is known before
  // anything runs (kUnsupported with the complete list).
  static Result<std::unique_ptr<Session>> Create(World& world, DeviceMemory& memory, Model model,
                                                 SessionOptions options = {});
  ~Session();

  const Model& model() const { return model_; }
  const std::vector<InputSpec>& inputs() const { return inputs_; }

  // Collective over the ranks whose graphs communicate. Inputs by position in `inputs()`. A RefData
  // input whose tensor is empty (default Tensor) keeps its content from the run before.
  // Errors: kInvalidArgument names the input, expected and seen; run-time errors name the operator.
  Result<std::vector<Tensor>> Run(const std::vector<Tensor>& inputs,
                                  const StepObserver& observer = {});

  const SessionStats& stats() const { return stats_; }

 private:
  struct Plan;
  Session(World& world, DeviceMemory& memory, Model model, SessionOptions options);
  Result<Plan*> PlanFor(const std::vector<Tensor>& inputs);

  World& world_;
  DeviceMemory& memory_;
  Model model_;
  SessionOptions options_;
  std::vector<InputSpec> inputs_;
  std::unique_ptr<GroupSet> groups_;
  std::map<std::string, std::unique_ptr<Plan>> plans_;  // by input signature
  std::map<int, Tensor> refs_;                          // RefData values between runs, by position
  SessionStats stats_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_SESSION_H_
