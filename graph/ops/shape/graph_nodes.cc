// Inputs, constants, outputs, operators that only hand tensors on, and those that run subgraphs.
#include <cstring>

#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {
namespace {

// ---- Identity and copies ----

// As many outputs as inputs, alike.
Planned PlanSame(const OpContext& op, Check& check) {
  check.Consistent(op.outputs() == op.slots(), "{} inputs but {} outputs", op.slots(),
                   op.outputs());
  Planned plan;
  for (int i = 0; i < op.slots(); ++i) plan.outputs.push_back(op.in(i));
  return plan;
}

Planned PlanCopies(const OpContext& op, Check& check) {
  check.That(op.attr_int("N") == op.outputs(), "N is {}, but there are {} outputs",
             op.attr_int("N"), op.outputs());
  return {.outputs = std::vector<TensorType>(static_cast<size_t>(op.outputs()), op.in(0))};
}

// Each output is the input of its number, or the only input.
template <bool kOneInput>
Status RunCopies(const Planned& plan, const KernelArgs& args) {
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    const uint64_t bytes = plan.outputs[i].bytes();
    if (bytes > 0) std::memcpy(args.out[i], args.in[kOneInput ? 0 : i], bytes);
  }
  return Status();
}

bool SameButForOneElementRank(const Shape& a, const Shape& b) {
  const auto one = [](const Shape& s) { return s.rank() == 0 || s == Shape{1}; };
  return a == b || (one(a) && one(b));
}

Planned PlanAssign(const OpContext& op, Check& check) {
  const TensorType &ref = op.in("ref"), &value = op.in("value");
  check.That(ref.dtype == value.dtype && SameButForOneElementRank(ref.shape, value.shape),
             "\"value\" is {} but \"ref\" is {}; Assign needs equal types and shapes", value, ref);
  return {.outputs = {ref}};
}

// The value may be a view of the storage it is written to.
Status RunAssign(const Planned& plan, const KernelArgs& args) {
  const uint64_t bytes = plan.outputs[0].bytes();
  if (bytes > 0) std::memmove(args.out[0], args.in[1], bytes);
  return Status();
}

// ---- Bitcast ----

// The dimensions of x when its elements become `factor` narrower ones each, or `factor` of them a
// wider one.
Shape Retyped(Check& check, const Shape& x, bool narrows, int64_t factor, bool keep) {
  Shape y = x;
  std::vector<int64_t>& dims = y.mutable_dims();
  if (narrows) {
    check.That(!keep || (!dims.empty() && dims.back() <= INT64_MAX / factor),
               "the last dimension of {} cannot grow {} times", x, factor);
    if (!keep) dims.push_back(factor);
    if (keep && check.ok()) dims.back() *= factor;
    return y;
  }
  check.That(!dims.empty() && (keep ? dims.back() % factor == 0 : dims.back() == factor),
             "the last dimension of {} must be {}{} to become wider elements", x,
             keep ? "a multiple of " : "", factor);
  if (!check.ok()) return y;
  dims.back() /= factor;
  if (!keep) dims.pop_back();
  return y;
}

Planned PlanBitcast(const OpContext& op, Check& check) {
  const DataType to = check.Take(op.attr_dtype("type"));
  const TensorType& x = op.in("x");
  const int from_bits = BitsOf(x.dtype), to_bits = BitsOf(to);
  const int wider = std::max(from_bits, to_bits), narrower = std::min(from_bits, to_bits);
  check.Supported(narrower > 0 && wider % narrower == 0, "{} cannot be read as {}", Name(x.dtype),
                  Name(to));
  if (!check.ok()) return {};
  const int64_t factor = wider / narrower;
  const bool keep = op.attr_bool("keep_dim");
  if (factor == 1) return {.outputs = {{to, x.shape}}};
  return {.outputs = {{to, Retyped(check, x.shape, from_bits > to_bits, factor, keep)}}};
}

// Operator::furniture. A Data node has an input port that nothing feeds, or no port.
constexpr std::string_view kFurniture[] = {
    "Data(x?; index=0) -> y",
    "RefData(x?; index=0) -> y",
    "Const(; value:tensor) -> y",
    "FileConstant(; file_path=\"\", file_id=\"\", shape:ints, dtype:type) -> y",
    "NetOutput(input...) -> ",
    "NoOp() -> "};

// ---- If, Case, While and calls of subgraphs: the engine runs them ----

// The subgraph decides.
Status InferUnknown(OpContext& op) {
  for (int i = 0; i < op.outputs(); ++i) {
    op.set_out(i, {op.node().output_descs[static_cast<size_t>(i)].dtype, Shape::UnknownRank()});
  }
  return Status();
}

constexpr std::string_view kFlows[] = {
    "If(cond, input...) -> output...",
    "StatelessIf(cond, input...) -> output...",
    "_If(cond, input...) -> output...",
    "Case(branch_index, input...) -> output...",
    "StatelessCase(branch_index, input...) -> output...",
    "While(input...; parallel_iterations=10) -> output...",
    "StatelessWhile(input...; parallel_iterations=10) -> output...",
    "_While(input...) -> output...",
    "PartitionedCall(args...; config=\"\", config_proto=\"\", executor_type=\"\") -> output...",
    "StatefulPartitionedCall(args...; config=\"\", config_proto=\"\", executor_type=\"\") -> "
    "output...",
};

}  // namespace

void RegisterStructureOps(OpRegistry& registry) {
  for (const std::string_view signature : kFurniture) {
    registry.Add({.schema = Signature(signature)});
  }
  registry.Alias("Constant", "Const");
  registry.Add(
      {.schema = Signature("Identity(x) -> y"), .infer = define::Infer<PlanSame>, .view = true});
  registry.Add(Define<PlanSame, RunCopies<false>>("IdentityN(x...) -> y..."));
  registry.Add(Define<PlanSame, RunCopies<false>>("TensorMove(x) -> y"));
  registry.Add(Define<PlanCopies, RunCopies<true>>("Copy(x; N:int) -> y..."));
  registry.Add(Define<PlanAssign, RunAssign>(
      "Assign(ref, value; validate_shape=true, use_locking=false) -> ref",
      {.in_place = {{0, 0}}, .axes = "[..]"}));
  registry.Add({.schema = Signature("Bitcast(x; type:type, keep_dim=false) -> y"),
                .infer = define::Infer<PlanBitcast>,
                .view = true,
                .retypes = true});
}

// What a branch does is only known when it runs, so each counts as something with an effect.
void RegisterControlFlowOps(OpRegistry& registry) {
  for (const std::string_view signature : kFlows) {
    registry.Add({.schema = Signature(signature),
                  .infer = InferUnknown,
                  .side_effect = true,
                  .control_flow = true});
  }
}

}  // namespace npumesh
