#include "graph/ops/elementwise/pointwise.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/signature.h"
#include "graph/ops/toolbox/copy/block_operand.h"
#include "graph/ops/toolbox/formula/formula.h"

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

// How the elements are gathered, and the divisor of their sum.
struct Gathering {
  bool sums = false;
  double divisor = 1;
};

Gathering GatheringOf(const OpContext& op, const PointwiseTraits& traits,
                      const PointwiseConstants& constants, const Shape& shape) {
  if (traits.gathered == Gathered::kElements) return Gathering();
  if (traits.gathered == Gathered::kSum) return Gathering{true, 1};
  const std::vector<AttrSpec>& attrs = op.schema().attrs;
  size_t at = 0;
  while (attrs[at].name != "reduction") ++at;
  const double word = constants[at];
  if (word == 0) return Gathering();
  if (word == 1) return Gathering{true, static_cast<double>(shape.elements())};
  if (word == 2) return Gathering{true, 1};
  return Gathering{true, shape.rank() == 0 ? 1.0 : static_cast<double>(shape[0])};
}

// What is known of a call before it runs.
struct PointwisePlan {
  PointwiseTypes types;
  std::vector<Shape> seen;  // by slot
  Shape shape;
  PointwiseConstants constants;
  Gathering gathering;
};

Result<PointwisePlan> PlanPointwise(const OpContext& op, const PointwiseSpec& spec) {
  PointwisePlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.types, TypesOf(op, spec));
  NPUMESH_ASSIGN_OR_RETURN(plan.seen, SeenShapes(op, spec.traits));
  NPUMESH_ASSIGN_OR_RETURN(plan.shape, ShapeOf(op, spec.traits, plan.seen));
  for (const AttrSpec& attr : op.schema().attrs) {
    NPUMESH_ASSIGN_OR_RETURN(const double value, ConstantOf(op, attr, spec.traits));
    plan.constants.attr.push_back(value);
  }
  plan.constants.bits = plan.types.bits;
  plan.constants.slots = op.slots();
  plan.constants.elements = plan.shape.elements();
  plan.gathering = GatheringOf(op, spec.traits, plan.constants, plan.shape);
  return plan;
}

Status InferPointwise(OpContext& op, const PointwiseSpec& spec) {
  NPUMESH_ASSIGN_OR_RETURN(const PointwisePlan plan, PlanPointwise(op, spec));
  const std::vector<int>& updates = spec.traits.updates;
  for (size_t i = 0; i < op.schema().outputs.size(); ++i) {
    const DataType dtype = i < updates.size() ? op.in(updates[i]).dtype : plan.types.output;
    NPUMESH_RETURN_IF_ERROR(
        SetOutput(op, static_cast<int>(i), dtype, plan.gathering.sums ? Shape() : plan.shape));
  }
  return Status();
}

// One result of the formula and where it goes.
struct Destination {
  int port = 0;
  int slot = -1;  // the input that holds it when there is no such port
  size_t width = 0;
  ConvertFn convert = nullptr;

  std::byte* Address(const KernelArgs& args, int ports) const {
    // An operator that updates an input owns its storage while it runs (Operator::in_place).
    if (port < ports) return static_cast<std::byte*>(args.out[port]);
    return static_cast<std::byte*>(const_cast<void*>(args.in[slot]));  // NOLINT
  }
};

class PointwiseKernel final : public Kernel {
 public:
  PointwiseKernel(const OpContext& op, const PointwiseSpec& spec, PointwisePlan plan)
      : real_(spec.real),
        integer_(spec.traits.integer),
        divisor_(IsInteger(plan.types.compute) ? spec.traits.divisor : -1),
        compute_(plan.types.compute),
        constants_(std::move(plan.constants)),
        gathering_(plan.gathering),
        ports_(static_cast<int>(op.schema().outputs.size())),
        who_(op.Who()) {
    for (int slot = 0; slot < op.slots(); ++slot) {
      if (!op.has(slot)) continue;
      fed_.push_back(slot);
      operands_.emplace_back(TensorType{op.in(slot).dtype, plan.seen[static_cast<size_t>(slot)]},
                             compute_, plan.shape);
    }
    blocks_.resize(fed_.size());
    const std::vector<int>& updates = spec.traits.updates;
    const size_t results = std::max(op.schema().outputs.size(), updates.size());
    for (size_t i = 0; i < results; ++i) {
      const int slot = i < updates.size() ? updates[i] : -1;
      if (slot >= 0 && !op.has(slot)) continue;
      const DataType dtype = slot >= 0 ? op.in(slot).dtype : plan.types.output;
      destinations_.push_back(
          {static_cast<int>(i), slot, WidthOf(dtype), FindConvert(compute_, dtype)});
    }
    results_.resize(results);
    addresses_.resize(fed_.size());
    const size_t room = static_cast<size_t>(op.slots()) + results;
    reals_.assign(room, spec.traits.absent);
    integers_.assign(room, static_cast<WideInt>(spec.traits.absent));
  }

  Status Run(const KernelArgs& args) override {
    for (size_t i = 0; i < fed_.size(); ++i) operands_[i].Start(args.in[fed_[i]], blocks_[i]);
    double sum = 0;
    for (int64_t begin = 0; begin < constants_.elements; begin += kBlock) {
      const auto count = static_cast<size_t>(std::min(kBlock, constants_.elements - begin));
      for (size_t i = 0; i < fed_.size(); ++i) {
        addresses_[i] = operands_[i].Block(args.in[fed_[i]], begin, count, blocks_[i]);
      }
      if (compute_ == DataType::kDouble) {
        Evaluate<double>(real_, count);
      } else if (compute_ == DataType::kInt64) {
        NPUMESH_RETURN_IF_ERROR(CheckDivisor(begin, count));
        Evaluate<int64_t>(integer_, count);
      } else {
        NPUMESH_RETURN_IF_ERROR(CheckDivisor(begin, count));
        Evaluate<uint64_t>(integer_, count);
      }
      if (gathering_.sums) {
        sum += SumOfBlock(count);
      } else {
        StoreBlock(args, begin, count);
      }
    }
    if (gathering_.sums) {
      const double result = sum / gathering_.divisor;
      destinations_[0].convert(&result, destinations_[0].Address(args, ports_), 1);
    }
    return Status();
  }

 private:
  static constexpr int64_t kBlock = kBlockElements;

  // Calls the formula for each element of a block. `Stored` is what operands are delivered as,
  // `Wide` what the formula computes in.
  template <typename Stored, typename Wide>
  void Evaluate(const PointwiseFormula<Wide>& formula, size_t count) {
    std::vector<Wide>& in = Room<Wide>();
    Wide* out = in.data() + constants_.slots;
    for (size_t i = 0; i < count; ++i) {
      for (size_t operand = 0; operand < fed_.size(); ++operand) {
        in[static_cast<size_t>(fed_[operand])] = static_cast<const Stored*>(addresses_[operand])[i];
      }
      formula(in.data(), constants_, out);
      for (size_t result = 0; result < results_.size(); ++result) {
        reinterpret_cast<Stored*>(results_[result].bytes)[i] = static_cast<Stored>(out[result]);
      }
    }
  }

  template <typename Wide>
  std::vector<Wide>& Room() {
    if constexpr (std::is_same_v<Wide, double>) {
      return reals_;
    } else {
      return integers_;
    }
  }

  double SumOfBlock(size_t count) const {
    const auto* values = reinterpret_cast<const double*>(results_[0].bytes);
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += values[i];
    return sum;
  }

  void StoreBlock(const KernelArgs& args, int64_t begin, size_t count) const {
    for (const Destination& to : destinations_) {
      std::byte* address = to.Address(args, ports_) + static_cast<size_t>(begin) * to.width;
      to.convert(results_[static_cast<size_t>(to.port)].bytes, address, count);
    }
  }

  Status CheckDivisor(int64_t begin, size_t count) const {
    if (divisor_ < 0) return Status();
    return RefuseZeros(who_, addresses_[static_cast<size_t>(divisor_)], begin, count);
  }

  RealFormula real_;
  IntegerFormula integer_;
  int divisor_;
  DataType compute_;
  PointwiseConstants constants_;
  Gathering gathering_;
  int ports_;
  std::string who_;
  std::vector<int> fed_;  // slots that are fed, as `operands_` and `blocks_`
  std::vector<Operand> operands_;
  std::vector<BlockBuffer> blocks_, results_;
  std::vector<Destination> destinations_;
  std::vector<const void*> addresses_;  // of the operands' current block
  std::vector<double> reals_;           // one element of every input, then of every result
  std::vector<WideInt> integers_;
};

}  // namespace

void RegisterPointwise(OpRegistry& registry, const PointwiseSpec& spec) {
  Operator op;
  op.schema = Signature(spec.signature);
  const std::vector<int>& updates = spec.traits.updates;
  for (size_t i = 0; i < updates.size(); ++i) {
    op.in_place.push_back({static_cast<int>(i), updates[i]});
  }
  op.elementwise = updates.empty() && op.schema.outputs.size() == 1 &&
                   spec.traits.gathered == Gathered::kElements;
  const auto shared = std::make_shared<const PointwiseSpec>(spec);
  op.infer = [shared](OpContext& context) { return InferPointwise(context, *shared); };
  op.make_kernel = [shared](const OpContext& context) -> Result<std::unique_ptr<Kernel>> {
    NPUMESH_ASSIGN_OR_RETURN(PointwisePlan plan, PlanPointwise(context, *shared));
    return std::unique_ptr<Kernel>(
        std::make_unique<PointwiseKernel>(context, *shared, std::move(plan)));
  };
  registry.Add(std::move(op));
}

void RegisterPointwise(OpRegistry& registry, std::span<const PointwiseSpec> specs, int like) {
  for (PointwiseSpec spec : specs) {
    if (spec.traits.like < 0) spec.traits.like = like;
    RegisterPointwise(registry, spec);
  }
}

}  // namespace npumesh
