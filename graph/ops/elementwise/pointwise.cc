#include "graph/ops/elementwise/pointwise.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/copy/block_operand.h"
#include "graph/ops/toolbox/machine/block_machine.h"
#include "graph/ops/toolbox/machine/elementwise.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// Types of a call: the outputs and what the formula computes in.
struct PointwiseTypes {
  DataType output = DataType::kUndefined;   // of results without a slot
  DataType compute = DataType::kUndefined;  // double, int64 or uint64
  int bits = 0;                             // of the promoted type
};

std::string DescribeInputs(const OpContext& op) {
  std::vector<std::string> parts;
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (op.has(slot)) parts.push_back(op.in(slot).ToString());
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// Slots that decide type and shape.
int DataSlots(const OpContext& op, const PointwiseTraits& traits) {
  return traits.data == 0 ? op.slots() : std::min(traits.data, op.slots());
}

Result<PointwiseTypes> TypesOf(const OpContext& op, const PointwiseSpec& spec) {
  const PointwiseTraits& traits = spec.traits;
  std::vector<TensorType> types;
  for (int slot = 0; slot < DataSlots(op, traits); ++slot) {
    if (op.has(slot)) types.push_back(op.in(slot));
  }
  if (types.empty()) {
    return Error(Code::kInvalidArgument, "{}: has no inputs; expected at least one", op.Who());
  }
  const DataType promoted = Promote(types);
  DataType output = traits.like >= 0 ? op.in(traits.like).dtype : promoted;
  const bool whole = IsInteger(promoted) || promoted == DataType::kBool;
  DataType compute = DataType::kUndefined;
  if (IsFloating(promoted) && spec.real.given()) {
    compute = DataType::kDouble;
  } else if (IsInteger(promoted) && traits.integer.given()) {
    compute = promoted == DataType::kUint64 ? DataType::kUint64 : DataType::kInt64;
  } else if (whole && (traits.widens || traits.flags)) {
    compute = DataType::kDouble;
    output = DataType::kFloat;
  } else if (IsInteger(promoted) && traits.truncates && BitsOf(promoted) < 64) {
    compute = DataType::kDouble;
  }
  bool convertible = compute != DataType::kUndefined;
  for (int slot = 0; slot < op.slots() && convertible; ++slot) {
    convertible = !op.has(slot) || FindConvert(op.in(slot).dtype, compute) != nullptr;
  }
  if (!convertible || FindConvert(compute, output) == nullptr) {
    return Error(Code::kUnsupported, "{}: not defined for {}", op.Who(), DescribeInputs(op));
  }
  return PointwiseTypes{traits.flags ? DataType::kBool : output, compute, BitsOf(promoted)};
}

// The shape under which each slot takes part; empty where it is not fed.
Result<std::vector<Shape>> SeenShapes(const OpContext& op, const PointwiseTraits& traits) {
  std::vector<Shape> seen;
  for (int slot = 0; slot < op.slots(); ++slot) {
    seen.push_back(op.has(slot) ? op.in(slot).shape : Shape());
    if (!op.has(slot) || traits.seen_as == nullptr) continue;
    NPUMESH_ASSIGN_OR_RETURN(seen.back(), traits.seen_as(op, slot));
  }
  return seen;
}

// The shape over which the formula is evaluated: that of the first updated input, or what the data
// inputs broadcast to. Every input has to broadcast to it.
Result<Shape> ShapeOf(const OpContext& op, const PointwiseTraits& traits,
                      const std::vector<Shape>& seen) {
  const std::vector<int>& updates = traits.updates;
  Shape shape = op.in(updates.empty() ? 0 : updates[0]).shape;
  const int data = updates.empty() ? DataSlots(op, traits) : 0;
  for (int slot = 0; slot < op.slots(); ++slot) {
    const Shape& other = seen[static_cast<size_t>(slot)];
    if (!op.has(slot) || (slot >= data && other.elements() == 1)) continue;
    const Result<Shape> wider = Broadcast(shape, other);
    const bool updated = std::find(updates.begin(), updates.end(), slot) != updates.end();
    const bool fits =
        wider.ok() && (slot < data || *wider == shape) && !(updated && other != shape);
    if (!fits) {
      return Error(Code::kInvalidArgument, "{}: shapes do not fit together: {}", op.Who(),
                   DescribeInputs(op));
    }
    shape = *wider;
  }
  NPUMESH_RETURN_IF_ERROR(CheckBroadcast(op, shape));
  return shape;
}

// The value of an attribute as a formula sees it.
Result<double> ConstantOf(const OpContext& op, const AttrSpec& attr,
                          const PointwiseTraits& traits) {
  if (attr.pattern.get<bool>() != nullptr) return op.attr_bool(attr.name) ? 1.0 : 0.0;
  if (attr.pattern.get<int64_t>() != nullptr) return static_cast<double>(op.attr_int(attr.name));
  if (attr.pattern.get<std::string>() == nullptr) return double{op.attr_float(attr.name)};
  const std::string value = op.attr_string(attr.name);
  const auto found = std::find(traits.words.begin(), traits.words.end(), value);
  if (found != traits.words.end()) return static_cast<double>(found - traits.words.begin());
  return Error(Code::kInvalidArgument, "{}: attribute \"{}\" is \"{}\"; expected one of {}",
               op.Who(), attr.name, value, fmt::join(traits.words, ", "));
}

// What the sum of the elements is divided by; nullopt: they are not summed up.
std::optional<double> DivisorOfSum(const OpContext& op, const PointwiseTraits& traits,
                                   const PointwiseConstants& constants, const Shape& shape) {
  if (traits.gathered == Gathered::kElements) return std::nullopt;
  if (traits.gathered == Gathered::kSum) return 1.0;
  const std::vector<AttrSpec>& attrs = op.schema().attrs;
  size_t at = 0;
  while (attrs[at].name != "reduction") ++at;
  const double word = constants[at];
  if (word == 0) return std::nullopt;
  if (word == 1) return static_cast<double>(shape.elements());
  return word == 2 || shape.rank() == 0 ? 1.0 : static_cast<double>(shape[0]);
}

// One result of the formula and where it goes.
struct Destination {
  int port = 0;
  int slot = -1;  // the input that holds it when there is no such port
  size_t width = 0;
  ConvertFn convert = nullptr;
};

// What is known of a call before it runs.
struct PointwisePlan : Planned {
  RealFormula real;
  IntegerFormula integer;
  DataType compute = DataType::kUndefined;
  PointwiseConstants constants;
  Shape shape;                       // over which the formula is evaluated
  std::vector<int> fed;              // slots
  std::vector<TensorType> operands;  // what is fed to them, under the shapes that take part
  double absent = 0;                 // value of the other slots
  int divisor = -1;                  // slot that may hold no zero
  size_t results = 0;
  std::vector<Destination> destinations;
  std::optional<double> divisor_of_sum;
  int threads = 1;
};

Result<PointwisePlan> PlanPointwise(const OpContext& op, const PointwiseSpec& spec) {
  const PointwiseTraits& traits = spec.traits;
  NPUMESH_ASSIGN_OR_RETURN(const PointwiseTypes types, TypesOf(op, spec));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Shape> seen, SeenShapes(op, traits));
  PointwisePlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.shape, ShapeOf(op, traits, seen));
  plan.real = spec.real;
  plan.integer = traits.integer;
  plan.compute = types.compute;
  for (const AttrSpec& attr : op.schema().attrs) {
    NPUMESH_ASSIGN_OR_RETURN(const double value, ConstantOf(op, attr, traits));
    plan.constants.attr.push_back(value);
  }
  plan.threads = op.threads();
  plan.constants.bits = types.bits;
  plan.constants.slots = op.slots();
  plan.constants.elements = plan.shape.elements();
  plan.divisor_of_sum = DivisorOfSum(op, traits, plan.constants, plan.shape);
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (!op.has(slot)) continue;
    plan.fed.push_back(slot);
    plan.operands.push_back({op.in(slot).dtype, seen[static_cast<size_t>(slot)]});
  }
  plan.absent = traits.absent;
  if (IsInteger(types.compute)) plan.divisor = traits.divisor;
  const size_t ports = op.schema().outputs.size();
  plan.results = std::max(ports, traits.updates.size());
  for (size_t i = 0; i < plan.results; ++i) {
    const int slot = i < traits.updates.size() ? traits.updates[i] : -1;
    const DataType dtype = slot >= 0 ? op.in(slot).dtype : types.output;
    if (i < ports) plan.outputs.push_back({dtype, plan.divisor_of_sum ? Shape() : plan.shape});
    if (slot >= 0 && !op.has(slot)) continue;
    plan.destinations.push_back(
        {static_cast<int>(i), slot, WidthOf(dtype), FindConvert(types.compute, dtype)});
  }
  return plan;
}

class PointwiseKernel final : public Kernel {
 public:
  explicit PointwiseKernel(PointwisePlan plan)
      : plan_(std::move(plan)),
        parts_(static_cast<size_t>(WorthThreads(
            kElementWork * static_cast<double>(plan_.constants.elements), plan_.threads))) {
    for (const TensorType& stored : plan_.operands) {
      operands_.emplace_back(stored, plan_.compute, plan_.shape);
    }
    const auto slots = static_cast<size_t>(plan_.constants.slots);
    if (plan_.fed.size() < slots) FillAbsent();
    for (Part& part : parts_) {
      part.blocks.resize(plan_.fed.size());
      part.results.resize(plan_.results);
      part.in.assign(slots, absent_.bytes);
      for (BlockBuffer& result : part.results) part.out.push_back(result.bytes);
    }
    if (plan_.divisor_of_sum) {
      sums_.resize(static_cast<size_t>(CeilDiv(plan_.constants.elements, kBlock)));
    }
  }

  Status Run(const KernelArgs& args) override {
    RunRanges(static_cast<int>(parts_.size()), plan_.constants.elements, kBlock,
              [&](int part, int64_t begin, int64_t end) {
                Part& own = parts_[static_cast<size_t>(part)];
                own.status = RunRange(args, own, begin, end);
              });
    for (const Part& part : parts_) NPUMESH_RETURN_IF_ERROR(part.status);
    if (plan_.divisor_of_sum) {
      const double sum = std::accumulate(sums_.begin(), sums_.end(), 0.0);
      const double result = sum / *plan_.divisor_of_sum;
      plan_.destinations[0].convert(&result, args.out[0], 1);
    }
    return Status();
  }

 private:
  static constexpr int64_t kBlock = kBlockElements;

  // What one thread works in.
  struct Part {
    std::vector<BlockBuffer> blocks, results;
    std::vector<const void*> in;  // of the current block, by slot
    std::vector<void*> out;       // the results
    Status status;
  };

  // A block of the value of slots that are not fed.
  void FillAbsent() {
    const std::vector<double> values(kBlockElements, plan_.absent);
    FindConvert(DataType::kDouble, plan_.compute)(values.data(), absent_.bytes, values.size());
  }

  Status RunRange(const KernelArgs& args, Part& part, int64_t first, int64_t last) {
    const std::vector<int>& fed = plan_.fed;
    for (size_t i = 0; i < fed.size(); ++i)
      operands_[i].Start(args.in[fed[i]], part.blocks[i].bytes);
    for (int64_t begin = first; begin < last; begin += kBlock) {
      const auto count = static_cast<size_t>(std::min(kBlock, last - begin));
      for (size_t i = 0; i < fed.size(); ++i) {
        part.in[static_cast<size_t>(fed[i])] =
            operands_[i].Block(args.in[fed[i]], begin, count, part.blocks[i].bytes);
      }
      if (plan_.divisor >= 0) {
        const void* divisors = part.in[static_cast<size_t>(plan_.divisor)];
        NPUMESH_RETURN_IF_ERROR(RefuseZeros(plan_.who, divisors, begin, count));
      }
      Evaluate(part, count);
      if (plan_.divisor_of_sum) {
        sums_[static_cast<size_t>(begin / kBlock)] = SumOfBlock(part, count);
      } else {
        StoreBlock(args, part, begin, count);
      }
    }
    return Status();
  }

  void Evaluate(const Part& part, size_t count) const {
    const void* const* in = part.in.data();
    void* const* out = part.out.data();
    if (plan_.compute == DataType::kDouble) {
      plan_.real.operator()<double>(in, plan_.constants, out, count);
    } else if (plan_.compute == DataType::kInt64) {
      plan_.integer.operator()<int64_t>(in, plan_.constants, out, count);
    } else {
      plan_.integer.operator()<uint64_t>(in, plan_.constants, out, count);
    }
  }

  static double SumOfBlock(const Part& part, size_t count) {
    const auto* values = reinterpret_cast<const double*>(part.results[0].bytes);
    return std::accumulate(values, values + count, 0.0);
  }

  void StoreBlock(const KernelArgs& args, const Part& part, int64_t begin, size_t count) const {
    for (const Destination& to : plan_.destinations) {
      const auto port = static_cast<size_t>(to.port);
      // An operator that updates an input owns its storage while it runs (Operator::in_place).
      void* const data = port < plan_.outputs.size()
                             ? args.out[port]
                             : const_cast<void*>(args.in[to.slot]);  // NOLINT
      to.convert(part.results[port].bytes,
                 static_cast<std::byte*>(data) + static_cast<size_t>(begin) * to.width, count);
    }
  }

  const PointwisePlan plan_;
  std::vector<Operand> operands_;
  BlockBuffer absent_;
  std::vector<Part> parts_;
  std::vector<double> sums_;  // of the blocks, where they are summed up
};

// Elements of real numbers.
void LoopPointwise(const OpContext& op, LoopBuilder& loop, const PointwiseSpec& spec) {
  const Result<PointwisePlan> plan = PlanPointwise(op, spec);
  if (!plan.ok() || plan->compute != DataType::kDouble || plan->divisor_of_sum) {
    loop.Refuse("it computes in integers or sums its elements");
    return;
  }
  std::vector<LoopValue> in(static_cast<size_t>(op.slots()), -1);
  for (size_t slot = 0; slot < in.size(); ++slot) {
    if (!op.has(static_cast<int>(slot))) in[slot] = loop.Constant(plan->absent, LoopType::kDouble);
  }
  for (size_t i = 0; i < plan->fed.size(); ++i) {
    const int slot = plan->fed[i];
    in[static_cast<size_t>(slot)] =
        loop.As(LoopType::kDouble, loop.In(slot, plan->operands[i].shape));
  }
  if (std::any_of(in.begin(), in.end(), [](LoopValue value) { return value < 0; })) return;
  const std::vector<LoopValue> results = spec.real.Write(loop, in, plan->constants);
  for (int port = 0; port < op.outputs(); ++port) {
    const LoopValue y = results[static_cast<size_t>(port)];
    loop.Give(port, spec.traits.flags ? y : loop.To(op.out(port).dtype, y));
  }
}

Operator PointwiseOf(const PointwiseSpec& spec) {
  Operator op;
  op.schema = Signature(spec.signature);
  const std::vector<int>& updates = spec.traits.updates;
  for (size_t i = 0; i < updates.size(); ++i) {
    op.in_place.push_back({static_cast<int>(i), updates[i]});
  }
  op.precision = spec.traits.precision;
  const bool single = updates.empty() && op.schema.outputs.size() == 1;
  if (single && spec.traits.gathered == Gathered::kElements) op.axes = spec.traits.axes;
  const auto shared = std::make_shared<const PointwiseSpec>(spec);
  op.infer = [shared](OpContext& context) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const PointwisePlan plan, PlanPointwise(context, *shared));
    return define::SetOutputs(context, plan.outputs);
  };
  op.make_kernel = [shared](const OpContext& context) -> Result<std::unique_ptr<Kernel>> {
    NPUMESH_ASSIGN_OR_RETURN(PointwisePlan plan, PlanPointwise(context, *shared));
    plan.who = context.Who();
    return std::unique_ptr<Kernel>(std::make_unique<PointwiseKernel>(std::move(plan)));
  };
  if (spec.real.is_program() && updates.empty()) {
    op.loop = [shared](const OpContext& context, LoopBuilder& loop) {
      LoopPointwise(context, loop, *shared);
    };
  }
  return op;
}

}  // namespace

void RegisterPointwise(OpRegistry& registry, std::span<const PointwiseSpec> specs, int like,
                       void (*change)(Operator& op)) {
  for (PointwiseSpec spec : specs) {
    if (spec.traits.like < 0) spec.traits.like = like;
    Operator op = PointwiseOf(spec);
    if (change != nullptr) change(op);
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
