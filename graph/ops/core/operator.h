// Operator: what npumesh knows about one Ascend IR operator: schema, shape inference and kernel,
// written side by side in the file of its family.
//
// Life of an operator in a graph:
//   1. `OpContext` binds a node to the schema: ports by name, attributes with their defaults.
//   2. `infer` computes the output types from input types and, where the operator needs them, from
//      constant input values.
//   3. `make_kernel` decides everything that shapes and constants decide and returns a Kernel.
//   4. The engine calls `Kernel::Run` with addresses, once a step, without allocation.
//
// Slots: the inputs of a node in schema order, a dynamic input taking as many slots as it has
// tensors. An optional input that is not fed keeps its slot, empty.
#ifndef NPUMESH_GRAPH_OPS_CORE_OPERATOR_H_
#define NPUMESH_GRAPH_OPS_CORE_OPERATOR_H_

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/axes.h"
#include "graph/ops/core/choice.h"
#include "graph/ops/core/shard_traits.h"
#include "graph/ops/core/tuning.h"
#include "runtime/base/status.h"

namespace npumesh {

enum class PortKind : uint8_t { kRequired, kOptional, kDynamic };

struct PortSpec {
  std::string_view name;
  PortKind kind = PortKind::kRequired;
};

// The kind of a required attribute.
enum class Required : uint8_t {
  kInt,
  kFloat,
  kBool,
  kString,
  kType,  // a data type
  kInts,
  kFloats,
  kTensor,
  kAny,  // the operator looks itself
};

// An attribute: required, or with a default, whose kind is that of its values. OpContext::Bind
// refuses values of another kind; ints stand for bools, floats, data types and lists of one, as
// older producers write them.
struct AttrSpec {
  AttrSpec(std::string_view name, Required kind);
  AttrSpec(std::string_view name, AttrValue fallback);
  // The operator knows no other value: Bind refuses it (kUnsupported).
  static AttrSpec Only(std::string_view name, AttrValue value);

  std::string_view name;
  std::optional<AttrValue> fallback;  // none: required
  AttrValue pattern;                  // any value of its kind; opaque: of any kind
  bool only_fallback = false;
};

struct OpSchema {
  std::string_view type;
  std::vector<PortSpec> inputs;
  std::vector<PortSpec> outputs;
  std::vector<AttrSpec> attrs;
};

// Gives collective operators their communicators.
class GroupProvider {
 public:
  virtual ~GroupProvider() = default;
  // The communicator for a graph's `group` attribute ("hccl_world_group", "tag=..;rank_list=0,1",
  // or a name from model_relation_config.json). Local: the members meet in its first collective.
  // Null from a provider without ranks, which serves to plan: kernels are made, but not run.
  virtual Result<Communicator*> Group(const std::string& group) = 0;
  // Members of the group in group order and this rank's place in it; -1: not a member. Not
  // collective.
  struct Members {
    std::vector<int> world_ranks;
    int rank = -1;
  };
  virtual Result<Members> MembersOf(const std::string& group) = 0;
};

// Addresses of one execution. Absent optional inputs are null.
struct KernelArgs {
  const void* const* in;    // by slot
  void* const* out;         // by output port
  void* scratch = nullptr;  // Kernel::scratch_bytes() bytes, 64-byte aligned
};

// A kernel bound to shapes, attributes and constants.
class Kernel {
 public:
  virtual ~Kernel() = default;
  // One thread at a time. Errors are run-time ones (index out of range, collective failure).
  virtual Status Run(const KernelArgs& args) = 0;
  virtual uint64_t scratch_bytes() const { return 0; }
  // False: the kernel took all it needs from this constant input when it was made, and Run does not
  // look at its address, which then need not be device memory.
  virtual bool reads(int /*slot*/) const { return true; }

  // Which of several kernels it is, set where it was chosen. Nothing that runs looks at it.
  const KernelChoice& choice() const { return choice_; }
  void set_choice(KernelChoice choice) { choice_ = std::move(choice); }

 private:
  KernelChoice choice_;
};

// A kernel from a function object `Status(const KernelArgs&)`.
template <typename Body>
std::unique_ptr<Kernel> MakeKernel(Body body) {
  class FunctionKernel final : public Kernel {
   public:
    explicit FunctionKernel(Body body) : body_(std::move(body)) {}
    Status Run(const KernelArgs& args) override { return body_(args); }

   private:
    Body body_;
  };
  return std::make_unique<FunctionKernel>(std::move(body));
}

class PackedWeights;
class LoopBuilder;

// A node, seen through its schema. Built by the engine (or a test), used by infer and make_kernel.
class OpContext {
 public:
  // Binds `node` to `schema`. Errors name the node: a required input is not connected, a port or a
  // required attribute is missing, an attribute is of another kind (kCorrupt); an attribute has a
  // value that the operator does not know, or is neither of the schema nor bookkeeping
  // (kUnsupported, see IsBookkeeping).
  static Result<OpContext> Bind(const Node& node, const OpSchema& schema);

  const Node& node() const { return *node_; }
  const OpSchema& schema() const { return *schema_; }

  // ---- inputs ----
  int slots() const { return static_cast<int>(slot_types_.size()); }
  // First slot of a port of the schema. REQUIRES: the schema has it.
  int slot(std::string_view port) const;
  // Tensors fed to a port: 0 or 1, or more for a dynamic one.
  int count(std::string_view port) const;
  bool has(int slot) const { return slot_inputs_[static_cast<size_t>(slot)] >= 0; }
  bool has(std::string_view port) const { return count(port) > 0; }
  // Index in node().inputs; -1: not fed.
  int input_index(int slot) const { return slot_inputs_[static_cast<size_t>(slot)]; }
  const TensorType& in(int slot) const { return slot_types_[static_cast<size_t>(slot)]; }
  const TensorType& in(std::string_view port) const { return in(slot(port)); }
  // The constant value of an input, or null when it is only known at run time.
  const Tensor* value(int slot) const { return slot_values_[static_cast<size_t>(slot)]; }
  // The integers of a constant input of dtype int32 or int64 (any shape). Error (kUnsupported)
  // names the node and port when the value is not known at compile time. In forms of operators that
  // have an attribute in place of the input, the integers of the attribute.
  Result<std::vector<int64_t>> Ints(std::string_view port) const;
  // The single integer of a constant input, or of the attribute in its place.
  Result<int64_t> Int(std::string_view port) const;

  // ---- attributes, with the schema's defaults ----
  // REQUIRES: the schema has the attribute (a programming error otherwise).
  int64_t attr_int(std::string_view name) const;
  float attr_float(std::string_view name) const;
  bool attr_bool(std::string_view name) const;
  std::string attr_string(std::string_view name) const;
  std::vector<int64_t> attr_ints(std::string_view name) const;
  // A dtype attribute (dt, or an int in runtime numbering). Error names node, attribute and number.
  Result<DataType> attr_dtype(std::string_view name) const;

  // ---- outputs ----
  int outputs() const { return static_cast<int>(out_types_.size()); }
  const TensorType& out(int port) const { return out_types_[static_cast<size_t>(port)]; }
  void set_out(int port, TensorType type) {
    out_types_[static_cast<size_t>(port)] = std::move(type);
  }

  // ---- where it runs ----
  GroupProvider* groups() const { return groups_; }
  int threads() const { return threads_; }
  // Where kernels share what they make of constant weights (packed_weights.h); null: nowhere.
  PackedWeights* packed() const { return packed_; }
  // What a kernel that can be made in several ways asks; null: nothing.
  KernelTuning* tuning() const { return tuning_; }

  // Filled in by the engine before infer and make_kernel.
  void set_in(int slot, TensorType type) {
    slot_types_[static_cast<size_t>(slot)] = std::move(type);
  }
  void set_value(int slot, const Tensor* value) { slot_values_[static_cast<size_t>(slot)] = value; }
  void set_groups(GroupProvider* groups) { groups_ = groups; }
  void set_threads(int threads) { threads_ = threads; }
  void set_packed(PackedWeights* packed) { packed_ = packed; }
  void set_tuning(KernelTuning* tuning) { tuning_ = tuning; }

  // "node \"Add_1\" (Add)": how every message of an operator begins.
  std::string Who() const;

 private:
  const Node* node_ = nullptr;
  const OpSchema* schema_ = nullptr;
  std::vector<int> port_slot_;    // first slot of each schema input
  std::vector<int> port_count_;   // tensors of each schema input
  std::vector<int> slot_inputs_;  // node input index of each slot, -1: empty
  std::vector<TensorType> slot_types_;
  std::vector<const Tensor*> slot_values_;
  std::vector<TensorType> out_types_;
  GroupProvider* groups_ = nullptr;
  PackedWeights* packed_ = nullptr;
  KernelTuning* tuning_ = nullptr;
  int threads_ = 1;
};

// Whether an attribute says nothing about what its node computes: those whose names begin with "_",
// those that GE does not count among the attributes of the operator (`_ir_attr_names`), and a few
// that TorchAir, GE and npumesh write on nodes of every type.
bool IsBookkeeping(const Node& node, std::string_view attribute);

using InferFn = std::function<Status(OpContext&)>;
using MakeKernelFn = std::function<Result<std::unique_ptr<Kernel>>(const OpContext&)>;
// Computes outputs whose shapes the values of the inputs decide. The context has the input types;
// `in` gives the addresses by slot, absent optional inputs null. One tensor for each output port.
using EvaluateFn =
    std::function<Result<std::vector<Tensor>>(const OpContext&, std::span<const void* const> in)>;

// Writes how output 0 is computed from the elements of rows (loop_program.h), or gives nothing
// where types, shapes or attributes do not allow it. Results are those of the kernel: the same
// bits, or the tolerance that docs/static_kernels.md states.
using LoopFn = std::function<void(const OpContext&, LoopBuilder&)>;

// Output `output` lives in the storage of input slot `slot` and the operator writes there. An
// output past the last port of the schema: the input is updated and no port shows it (the slots of
// an optimizer); the kernel then writes to KernelArgs::in.
struct InPlace {
  int output = 0;
  int slot = 0;
};

// The port of a weight, and the private format in which a device likes it.
struct WeightTrait {
  std::string_view port;
  std::string_view layout = "FRACTAL_NZ";
  std::string_view plain_layout = "ND";
};

// How the tensors of the members of a group belong together.
enum class Assembly : uint8_t {
  kNone,         // nothing is known
  kConcatenate,  // pieces of a whole along axis 0
  kReduce,       // partial results
};

// What an operator does that meets other ranks: it keeps node order among its group, and may not be
// folded or merged.
struct CollectiveTrait {
  // The attribute that names the group.
  std::string_view group = "group";
  // Every member is left with the same outputs, if the members have equal `own_inputs`: ports whose
  // values do not travel.
  bool leaves_equal = false;
  std::vector<std::string_view> own_inputs = {};
  // The attribute with the member whose inputs are left on every member; empty: no such attribute.
  std::string_view source = {};
  // Input 0 and output 0 of the members; what reduces says how in the attribute `reduction`.
  Assembly takes = Assembly::kNone;
  Assembly gives = Assembly::kNone;
  std::string_view reduction = {};
  // A message: the attribute with the other member, whose node is of another type and name.
  std::string_view peer = {};
  // It moves or reduces data and computes nothing besides.
  bool pure = false;
};

// Attribute of a node: "high_precision" or "high_performance", as op_select_implmode chose for it;
// absent: what is precise.
inline constexpr std::string_view kImplMode = "_op_impl_mode";

// What a lower precision does to an operator (docs/precision.md). The classes are those that the
// NPU calls precision_reduce: white is true, black is false, grey says nothing.
enum class PrecisionClass : uint8_t {
  kGrey,   // computes in the precision of the operator before it
  kWhite,  // the matrix unit computes it: products, convolutions, attention; gains most
  kBlack,  // loses too much: norms, exponentials, logarithms, losses, long sums
  kKept,   // its types are what it is about: casts, quantisation with its scales
};

struct Operator {
  OpSchema schema;
  InferFn infer;             // null: furniture
  MakeKernelFn make_kernel;  // null for operators that move no data: then `view` must be set

  // Output 0 is the bytes of slot 0 under another shape (or dtype of equal total size): no work.
  bool view = false;
  // A view that gives the bytes another dtype.
  bool retypes = false;
  // Outputs that alias an input the operator updates (Assign, caches); of lists, see InPlacesOf.
  std::vector<InPlace> in_place;
  // Ports whose *values* inference needs (Reshape.shape, Range.limit ...).
  std::vector<std::string_view> value_inputs;
  // Meets other ranks.
  std::optional<CollectiveTrait> collective = std::nullopt;
  std::optional<WeightTrait> weight = std::nullopt;
  // Must run although its outputs have no reader (send, print).
  bool side_effect = false;
  // Gives the same outputs for the same inputs; false for random numbers.
  bool pure = true;
  // In place of make_kernel when the output shapes are only known after the operator ran; `infer`
  // then leaves dimensions unknown.
  EvaluateFn evaluate = nullptr;
  // Its static kernel; null: it has none.
  LoopFn loop = nullptr;
  // Runs subgraphs of its node (If, Case, While, calls); the engine knows how, by type.
  bool control_flow = false;
  PrecisionClass precision = PrecisionClass::kGrey;
  // It has two implementations and reads which from the attribute kImplMode of its node: what
  // optypelist_for_implmode calls such operators, "Pooling" or "Reduction". Empty: it has one.
  std::string_view implementations = {};
  // What it does along each axis of its tensors: whether it is element-wise, a product, a
  // permutation or only asks for sizes, and how it carries tensors that are split over ranks.
  Axes axes = {};
  // What `axes` cannot say of such tensors.
  std::optional<HeadsTrait> heads = std::nullopt;
  std::optional<RowsTrait> rows = std::nullopt;

  // Its output types are not known before it ran: plans end here (passes/rewrite/stages.h).
  bool late() const { return evaluate != nullptr || control_flow; }
  // An input, a weight or an end of a graph (graph/ir/node_kind.h). It has a schema and nothing
  // else, because the engine asks it neither for types nor for a kernel.
  bool furniture() const { return infer == nullptr; }
};

// Operator::in_place of a bound node. Its slots are those of an operator without lists; here they
// are the node's, and the entry of a dynamic input stands for each of its tensors: tensor i of the
// list lives in output `output` + i.
std::vector<InPlace> InPlacesOf(const Operator& op, const OpContext& context);

// The group of a node whose operator meets other ranks; "hccl_world_group" where it names none.
// REQUIRES: op.collective.
std::string GroupOf(const Node& node, const Operator& op);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_OPERATOR_H_
