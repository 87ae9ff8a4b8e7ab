// CompiledModel: a graph with everything decided: types, order, addresses, kernels. And the
// Executor, which walks its steps.
//
// Compile is done for one set of input types (and, where shapes depend on them, input values); a
// Session keeps one CompiledModel for each.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_ENGINE_COMPILED_MODEL_H_
#define NPUMESH_GRAPH_ENGINE_COMPILED_MODEL_H_

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/engine/device_pool.h"
#include "graph/engine/plan_facts.h"
#include "graph/engine/step_observer.h"
#include "graph/engine/weight_cache.h"
#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/core/operator.h"
#include "graph/passes/execution_order.h"
#include "graph/passes/reachability.h"
#include "graph/passes/static_split.h"
#include "runtime/device/device_memory.h"

namespace npumesh {

// Stages have the names of GE (air-format reference 4.3): PreRunBegin, the graph as given;
// AfterInfershape, with all types; PreRunAfterOptimizeOriginalGraph, folded and without dead nodes;
// PreRunAfterOptimizeGraphBeforeBuild, in the order it runs; Build, with arena offsets, and on
// nodes that are computed by the step of another one its name as `_fused_into`.
using StageObserver = std::function<void(std::string_view stage, const Model& graph)>;

class StaticParts;

struct CompileOptions {
  int threads = 1;
  // Prints, as debug lines, what each pass did.
  bool trace = false;
  // Keeps weights for the next compilation of the same model; null: loads them anew. Not owned.
  WeightCache* weights = nullptr;
  // Evaluates operators with constant inputs now instead of at each run. Shape queries and values
  // that decide shapes are answered either way.
  bool fold_constants = true;
  // Leaves out operators whose results nobody reads.
  bool drop_dead_nodes = true;
  DeadNodes dead_nodes() const { return drop_dead_nodes ? DeadNodes::kDrop : DeadNodes::kKeep; }
  // Connected operators with known shapes that are compiled once for all signatures, at least as
  // many (passes/static_split.h); -1: none.
  int64_t static_ops_limit = kDefaultStaticOpsLimit;
  // Keeps them for the next compilation of the same graph, with the same `fuses`; null: nothing is
  // shared. Not owned.
  StaticParts* static_parts = nullptr;
  NodeOrder order = NodeOrder::kStable;
  // Says by name which fusion passes run (passes/fusion.h); null: none.
  std::function<bool(std::string_view pass)> fuses;
  // Runs collectives on a stream of their own, beside steps that do not need them, and orders nodes
  // so that there are such steps.
  bool overlap_collectives = false;
  // Small memory before speed: looks harder for a small arena, and moves no nodes for overlap.
  bool spare_memory = false;
  // Told how the weights in files arrive while plans are made; may be null.
  std::function<void(const WeightProgress&)> weight_progress;
  // Sees the graph as it stands after each stage; null: nobody. The graph is made for it, so an
  // observer costs a copy for each stage.
  StageObserver observer;
};

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
  std::shared_ptr<Kernel> kernel;  // steps of a static part have the same in all plans
  std::vector<Address> inputs;     // by slot
  std::vector<Address> outputs;    // by port
  std::vector<TensorType> input_types;
  std::vector<TensorType> output_types;
  std::vector<int> input_ports;  // by slot: index in the node's inputs; -1: not fed, or fused
  bool collective = false;
  // Runs on the communication stream, beside the steps that follow (passes/stream_plan.h).
  bool beside = false;
  // Index of the step beside that has to be finished before this one starts, with those beside
  // before it; -1: none.
  int wait_for = -1;
  // The static part it belongs to, an index into PlanFacts::parts; -1: to none.
  int part = -1;
};

// What a graph expects from its caller.
struct InputSpec {
  std::string name;
  int64_t index = 0;    // attribute `index`
  TensorType declared;  // with unknown dimensions
  bool ref = false;     // RefData: updated in place
  bool host = false;    // small host scalar (device_type CPU)
};

// Inputs of the main graph sorted by index; gaps in the numbering are legal. The shape of an input
// in a private format is its `origin_shape` (air-format reference 3.3). Errors (kCorrupt): two
// inputs with one index.
Result<std::vector<InputSpec>> InputsOf(const Model& model);

// Compares what a caller has with what the graph declares, where that is known. Errors
// (kInvalidArgument) name input, expected and seen.
Status CheckInputTypes(const std::vector<InputSpec>& inputs, const std::vector<TensorType>& types);

// Larger inputs never decide shapes.
inline constexpr uint64_t kMaxShapeValueBytes = uint64_t{64} << 10;

// By position in InputsOf: inputs whose values may decide shapes: host scalars and small integers
// that reach an input which inference reads by value, of dead nodes too where they are kept.
// Compile takes their values if they are at most kMaxShapeValueBytes.
std::vector<bool> ShapeDecidingInputs(const Model& model, const OpRegistry& registry,
                                      DeadNodes dead);

// Everything that can be said about a model and its subgraphs without input types: its operators
// are known and fit their interfaces, and what runs as a branch or body overwrites none of its
// inputs. Errors as CheckOperators: one with the complete list.
Status CheckModel(const Model& model, const OpRegistry& registry);

// The `group` attributes of all operators that will meet other ranks, subgraphs
// included, sorted, each once.
std::vector<std::string> GroupsOf(const Model& model, const OpRegistry& registry);

class CompiledModel {
 public:
  // Compiles the main graph for inputs of these types; `values` gives, by position, the values of
  // inputs that shapes may depend on (others may be empty tensors; so may be the whole vector).
  // `groups` may be null for a graph without collectives. `model`, `registry` and `groups` must
  // outlive the result. Collective over the groups of the graph, unless `groups` has made their
  // communicators before. REQUIRES: model.graph.Verify() is OK.
  // Errors: the complete list of operators that are missing or cannot be compiled (kUnsupported
  // when one of them is), kInvalidArgument for an input of the wrong type or shape (names it,
  // expected and seen) and for outputs that differ from what NetOutput declares.
  static Result<std::unique_ptr<CompiledModel>> Compile(
      const Model& model, const OpRegistry& registry, const std::vector<TensorType>& input_types,
      const std::vector<Tensor>& values, GroupProvider* groups, const CompileOptions& options);

  // A model of a step that runs outside of any plan: `source` and the step are all it has. `source`
  // must outlive it.
  static std::unique_ptr<CompiledModel> OfStep(const Model& source, Step step);

  // Equal for no two models as long as somebody holds it: tells an observer whether it has seen
  // this one before.
  const std::shared_ptr<const void>& identity() const { return identity_; }
  // What it was compiled from.
  const Model& source() const { return *source_; }
  const std::vector<InputSpec>& inputs() const { return inputs_; }
  const std::vector<TensorType>& input_types() const { return input_types_; }
  const std::vector<TensorType>& output_types() const { return output_types_; }
  const std::vector<Address>& outputs() const { return outputs_; }
  std::vector<Step>& steps() { return steps_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Tensor>& constants() const { return constants_; }
  // True when a kernel or the caller reads constant `index` while the graph runs. Others are not
  // brought into HBM; their address is that of the host bytes.
  bool constant_is_read(size_t index) const { return constant_is_read_[index]; }
  uint64_t arena_bytes() const { return arena_bytes_; }      // activations, with reuse
  uint64_t scratch_bytes() const { return scratch_bytes_; }  // largest of all kernels
  uint64_t constant_bytes() const;
  // All device memory that an executor of its own takes: arena, scratch, inputs and constants that
  // are read, in blocks as DeviceMemory hands them out. Nothing more is allocated while it runs.
  uint64_t device_bytes() const;
  // What became of nodes and tensors, for people.
  const PlanFacts& facts() const { return facts_; }
  // True for inputs whose values went into this compilation: another value needs another
  // compilation.
  const std::vector<bool>& value_dependent() const { return value_dependent_; }

 private:
  friend class Compiler;
  CompiledModel() = default;

  std::shared_ptr<const void> identity_ = std::make_shared<char>();
  const Model* source_ = nullptr;
  std::vector<InputSpec> inputs_;
  std::vector<TensorType> input_types_;
  std::vector<TensorType> output_types_;
  std::vector<Address> outputs_;
  std::vector<Step> steps_;
  std::vector<Tensor> constants_;
  std::vector<bool> constant_is_read_;  // by constant
  std::vector<bool> value_dependent_;
  uint64_t arena_bytes_ = 0;
  uint64_t scratch_bytes_ = 0;
  PlanFacts facts_;
};

// Time and memory of one run.
struct RunStats {
  double compute_seconds = 0;
  double collective_seconds = 0;
  // Of the collectives, what passed while this rank computed and did not wait for them.
  double hidden_seconds = 0;
  uint64_t steps = 0;
  uint64_t collectives = 0;
};

// When the kernel of a step ran.
struct StepSpan {
  std::chrono::steady_clock::time_point start;
  std::chrono::steady_clock::time_point end;
};

class BesideSteps;

// Binds one CompiledModel to device buffers and runs it.
class Executor {
 public:
  // Allocates arena, scratch, inputs and constants in HBM. `model` and `memory` must outlive it.
  static Result<std::unique_ptr<Executor>> Create(CompiledModel& model, DeviceMemory& memory);
  // The same in buffers that several executors share, of which one runs at a time. `pool` must
  // outlive it. `slots` gives, by input position, the input buffer of the pool that is meant;
  // empty: the position itself.
  static Result<std::unique_ptr<Executor>> Create(CompiledModel& model, DevicePool& pool,
                                                  std::vector<int> slots = {});
  ~Executor();

  // Device buffer of input `position`; the caller writes its bytes before Run. RefData buffers keep
  // their content from run to run.
  void* input_buffer(int position) const { return pool_.input(SlotOf(position)); }

  // Runs all steps. No allocation once the buffers stay where they are. `observer` may be null, and
  // is told that this is run number `iteration`, or a part of it. While somebody observes,
  // collectives run one after the other with everything else, so that each step's tensors are whole
  // when it is shown. Errors name the step's operator; then no collective is under way any more.
  Result<RunStats> Run(StepObserver* observer = nullptr, uint64_t iteration = 0, bool part = false);

  // By step, of the last run without error.
  const std::vector<StepSpan>& timeline() const { return spans_; }

  // Device address of graph output `index`; valid until the next Run of an executor on the same
  // buffers.
  const void* output(int index) const;

 private:
  Executor(CompiledModel& model, DevicePool& pool, std::unique_ptr<DevicePool> own_pool);
  int SlotOf(int position) const {
    return slots_.empty() ? position : slots_[static_cast<size_t>(position)];
  }
  Status Prepare();
  // Sets all addresses; again after another executor on the pool made an area move.
  Status Bind();
  void* Resolve(const Address& address) const;
  void* AddressOfConstant(size_t index) const;
  // Between BeforeRun and AfterRun of the observer.
  Status RunObserved(const RunView& run, StepObserver& observer, RunStats& stats);
  Status RunInOrder(RunStats& stats);
  // With the steps beside on the communication stream.
  Status RunOverlapped(RunStats& stats);
  // Until the first error, without waiting for the last collectives. Adds the seconds spent
  // waiting.
  Status RunBeside(RunStats& stats, double& waited);
  // Runs a step on this thread from `start` on; returns when it ended.
  Result<std::chrono::steady_clock::time_point> RunStep(size_t index,
                                                        std::chrono::steady_clock::time_point start,
                                                        RunStats& stats);

  CompiledModel& model_;
  std::unique_ptr<DevicePool> own_pool_;  // null when the pool is the caller's
  DevicePool& pool_;
  std::vector<int> slots_;
  std::vector<std::shared_ptr<const DeviceConstant>> constants_;  // null: nobody reads it
  // PlanOperand addresses of all steps, inputs before outputs, step by step.
  std::vector<void*> pointers_;
  std::vector<KernelArgs> args_;         // by step
  std::vector<StepSpan> spans_;          // by step
  std::unique_ptr<BesideSteps> beside_;  // null: all steps run in order
  uint64_t bound_generation_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_COMPILED_MODEL_H_
