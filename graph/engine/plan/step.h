// One kernel of a plan and where its tensors live.
#ifndef NPUMESH_GRAPH_ENGINE_PLAN_STEP_H_
#define NPUMESH_GRAPH_ENGINE_PLAN_STEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/operator.h"

namespace npumesh {

// Where a tensor of a step lives.
struct Address {
  enum class Kind : uint8_t {
    kNone,      // absent optional input
    kArena,     // offset into the activation arena (HBM)
    kConstant,  // index into constants()
    kInput,     // position of a graph input's buffer (HBM)
  };
  Kind kind = Kind::kNone;
  uint64_t offset = 0;  // bytes in the arena, or the index
  bool operator==(const Address&) const = default;
};

// One kernel with its operands. Views, folded constants and dead nodes have no step, and several
// fused nodes have one: that of the last of them.
struct Step {
  NodeId node = kNoNode;
  std::string name;
  // Operator type; of a fused step the types of its nodes, "MatMul+Add+Relu". "TensorMove" with the
  // name "<node>/copy": the engine's copy of a constant that `node` writes to in place.
  std::string type;
  std::string origin;              // of `node`, as messages say it (graph/ir/node_origin.h)
  std::shared_ptr<Kernel> kernel;  // steps of a static part have the same in all plans
  std::vector<Address> inputs;     // by slot
  std::vector<Address> outputs;    // by port, then others
  std::vector<TensorType> input_types;
  std::vector<TensorType> output_types;
  // How many of the outputs, the last ones, are no outputs of `node` but of nodes fused with it.
  size_t others = 0;
  std::vector<int> input_ports;  // by slot: index in the node's inputs; -1: not fed, or fused
  std::vector<int> updates;      // slots whose input it overwrites without showing it as an output
  bool collective = false;
  bool only_communicates = false;  // a collective that computes nothing besides
  double flops = 0;                // of its products; 0: unknown
  // Runs on the communication stream, beside the steps that follow (passes/schedule/stream_plan.h).
  bool beside = false;
  // Index of the step beside that has to be finished before this one starts, with those beside
  // before it; -1: none.
  int wait_for = -1;
  // The static part it belongs to, an index into PlanFacts::parts; -1: to none.
  int part = -1;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_PLAN_STEP_H_
