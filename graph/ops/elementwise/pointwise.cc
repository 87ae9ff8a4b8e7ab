#include "graph/ops/elementwise/pointwise.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/copy/block_operand.h"

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
int DataSlots(const OpContext& op, const PointwiseSpec& spec) {
  return spec.data == 0 ? op.slots() : std::min(spec.data, op.slots());
}

Result<PointwiseTypes> TypesOf(const OpContext& op, const PointwiseSpec& spec) {
  std::vector<TensorType> types;
  for (int slot = 0; slot < DataSlots(op, spec); ++slot) {
    if (op.has(slot)) types.push_back(op.in(slot));
  }
  const DataType promoted = Promote(types);
  DataType output = spec.like >= 0 ? op.in(spec.like).dtype : promoted;
  const bool whole = IsInteger(promoted) || promoted == DataType::kBool;
  DataType compute = DataType::kUndefined;
  if (IsFloating(promoted) && spec.real != nullptr) {
    compute = DataType::kDouble;
  } else if (IsInteger(promoted) && spec.integer != nullptr) {
    compute = promoted == DataType::kUint64 ? DataType::kUint64 : DataType::kInt64;
  } else if (whole && (spec.widens || spec.flags)) {
    compute = DataType::kDouble;
    output = DataType::kFloat;
  } else if (IsInteger(promoted) && spec.truncates && BitsOf(promoted) < 64) {
    compute = DataType::kDouble;
  }
  bool convertible = compute != DataType::kUndefined;
  for (int slot = 0; slot < op.slots() && convertible; ++slot) {
    convertible = !op.has(slot) || FindConvert(op.in(slot).dtype, compute) != nullptr;
  }
  if (!convertible || FindConvert(compute, output) == nullptr) {
    return Error(Code::kUnsupported, "{}: not defined for {}", op.Who(), DescribeInputs(op));
  }
  return PointwiseTypes{spec.flags ? DataType::kBool : output, compute, BitsOf(promoted)};
}

Result<Shape> SeenAs(const OpContext& op, const PointwiseSpec& spec, int slot) {
  if (spec.seen_as != nullptr) return spec.seen_as(op, slot);
  return op.in(slot).shape;
}

// The shape over which the formula is evaluated: that of the first updated input, or what the data
// inputs broadcast to. Every input has to broadcast to it.
Result<Shape> ShapeOf(const OpContext& op, const PointwiseSpec& spec) {
  Shape shape = op.in(spec.updates.empty() ? 0 : spec.updates[0]).shape;
  const int data = spec.updates.empty() ? DataSlots(op, spec) : 0;
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (!op.has(slot)) continue;
    NPUMESH_ASSIGN_OR_RETURN(const Shape other, SeenAs(op, spec, slot));
    if (slot >= data && other.elements() == 1) continue;
    const Result<Shape> wider = Broadcast(shape, other);
    const bool updated =
        std::find(spec.updates.begin(), spec.updates.end(), slot) != spec.updates.end();
    const bool fits =
        wider.ok() && (slot < data || *wider == shape) && !(updated && other != shape);
    if (!fits) {
      return Error(Code::kInvalidArgument, "{}: shapes do not fit together: {}", op.Who(),
                   DescribeInputs(op));
    }
    shape = *wider;
  }
  if (shape.rank() > BroadcastPlan::kMaxRank) {
    return Error(Code::kUnsupported, "{}: rank {} is more than {}", op.Who(), shape.rank(),
                 BroadcastPlan::kMaxRank);
  }
  NPUMESH_RETURN_IF_ERROR(shape.Check().WithContext(op.Who()));
  return shape;
}

// Place of the text attribute's value among the words.
Result<double> WordOf(const OpContext& op, const PointwiseSpec& spec) {
  const std::string value = op.attr_string(spec.text);
  const auto found = std::find(spec.words.begin(), spec.words.end(), value);
  if (found != spec.words.end()) return static_cast<double>(found - spec.words.begin());
  return Error(Code::kInvalidArgument, "{}: attribute \"{}\" is \"{}\"; expected one of {}",
               op.Who(), spec.text, value, fmt::join(spec.words, ", "));
}

double NumberOf(const OpContext& op, const AttrSpec& attr) {
  if (attr.pattern.get<bool>()) return op.attr_bool(attr.name) ? 1 : 0;
  if (attr.pattern.get<int64_t>()) {
    return static_cast<double>(op.attr_int(attr.name));
  }
  return static_cast<double>(op.attr_float(attr.name));
}

Result<PointwiseConstants> ConstantsOf(const OpContext& op, const PointwiseSpec& spec, int bits,
                                       int64_t elements) {
  PointwiseConstants constants;
  for (const AttrSpec& attr : spec.attrs) {
    double value = 0;
    if (attr.name == spec.text) {
      NPUMESH_ASSIGN_OR_RETURN(value, WordOf(op, spec));
    } else {
      value = NumberOf(op, attr);
    }
    constants.attr.push_back(value);
  }
  constants.bits = bits;
  constants.slots = op.slots();
  constants.elements = elements;
  return constants;
}

// How the elements are gathered, and the divisor of their sum.
struct Gathering {
  bool sums = false;
  double divisor = 1;
};

Result<Gathering> GatheringOf(const OpContext& op, const PointwiseSpec& spec, const Shape& shape) {
  if (spec.gathered == Gathered::kElements) return Gathering();
  if (spec.gathered == Gathered::kSum) return Gathering{true, 1};
  NPUMESH_ASSIGN_OR_RETURN(const double word, WordOf(op, spec));
  if (word == 0) return Gathering();
  if (word == 1) return Gathering{true, static_cast<double>(shape.elements())};
  if (word == 2) return Gathering{true, 1};
  return Gathering{true, shape.rank() == 0 ? 1.0 : static_cast<double>(shape[0])};
}

Status InferPointwise(OpContext& op, const PointwiseSpec& spec) {
  NPUMESH_ASSIGN_OR_RETURN(const PointwiseTypes types, TypesOf(op, spec));
  NPUMESH_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(op, spec));
  NPUMESH_RETURN_IF_ERROR(ConstantsOf(op, spec, types.bits, shape.elements()).status());
  NPUMESH_ASSIGN_OR_RETURN(const Gathering gathering, GatheringOf(op, spec, shape));
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const bool updates = i < spec.updates.size();
    const DataType dtype = updates ? op.in(spec.updates[i]).dtype : types.output;
    NPUMESH_RETURN_IF_ERROR(
        SetOutput(op, static_cast<int>(i), dtype, gathering.sums ? Shape() : shape));
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
  // `seen`: the shape of each slot, empty where it is not fed.
  PointwiseKernel(const OpContext& op, const PointwiseSpec& spec, const PointwiseTypes& types,
                  const Shape& shape, const std::vector<Shape>& seen, PointwiseConstants constants,
                  Gathering gathering)
      : real_(spec.real),
        integer_(spec.integer),
        divisor_(IsInteger(types.compute) ? spec.divisor : -1),
        compute_(types.compute),
        constants_(std::move(constants)),
        gathering_(gathering),
        ports_(static_cast<int>(spec.outputs.size())),
        who_(op.Who()) {
    for (int slot = 0; slot < op.slots(); ++slot) {
      if (!op.has(slot)) continue;
      fed_.push_back(slot);
      operands_.emplace_back(TensorType{op.in(slot).dtype, seen[static_cast<size_t>(slot)]},
                             compute_, shape);
    }
    blocks_.resize(fed_.size());
    const size_t results = std::max(spec.outputs.size(), spec.updates.size());
    for (size_t i = 0; i < results; ++i) {
      const int slot = i < spec.updates.size() ? spec.updates[i] : -1;
      if (slot >= 0 && !op.has(slot)) continue;
      const DataType dtype = slot >= 0 ? op.in(slot).dtype : types.output;
      destinations_.push_back(
          {static_cast<int>(i), slot, WidthOf(dtype), FindConvert(compute_, dtype)});
    }
    results_.resize(results);
    addresses_.resize(fed_.size());
    const size_t room = static_cast<size_t>(op.slots()) + results;
    reals_.assign(room, spec.absent);
    integers_.assign(room, static_cast<WideInt>(spec.absent));
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
  void Evaluate(void (*formula)(const Wide*, const PointwiseConstants&, Wide*), size_t count) {
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
    const auto* values = static_cast<const uint64_t*>(addresses_[static_cast<size_t>(divisor_)]);
    const auto at = std::find(values, values + count, 0u) - values;
    if (at == static_cast<int64_t>(count)) return Status();
    return Error(Code::kInvalidArgument,
                 "{}: integer division by zero at element {} of the output; give a divisor other "
                 "than 0 or divide in a floating type",
                 who_, begin + at);
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
  std::vector<BlockBuffer> blocks_;
  std::vector<BlockBuffer> results_;
  std::vector<Destination> destinations_;
  std::vector<const void*> addresses_;  // of the operands' current block
  std::vector<double> reals_;           // one element of every input, then of every result
  std::vector<WideInt> integers_;
};

Result<std::unique_ptr<Kernel>> MakePointwise(const OpContext& op, const PointwiseSpec& spec) {
  NPUMESH_ASSIGN_OR_RETURN(const PointwiseTypes types, TypesOf(op, spec));
  NPUMESH_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(op, spec));
  NPUMESH_ASSIGN_OR_RETURN(PointwiseConstants constants,
                           ConstantsOf(op, spec, types.bits, shape.elements()));
  NPUMESH_ASSIGN_OR_RETURN(const Gathering gathering, GatheringOf(op, spec, shape));
  std::vector<Shape> seen(static_cast<size_t>(op.slots()));
  for (int slot = 0; slot < op.slots(); ++slot) {
    if (!op.has(slot)) continue;
    NPUMESH_ASSIGN_OR_RETURN(seen[static_cast<size_t>(slot)], SeenAs(op, spec, slot));
  }
  return std::unique_ptr<Kernel>(std::make_unique<PointwiseKernel>(
      op, spec, types, shape, seen, std::move(constants), gathering));
}

}  // namespace

void RegisterPointwise(OpRegistry& registry, PointwiseSpec spec) {
  Operator op;
  op.schema = {spec.type, spec.inputs, spec.outputs, spec.attrs};
  for (size_t i = 0; i < spec.updates.size(); ++i) {
    op.in_place.push_back({static_cast<int>(i), spec.updates[i]});
  }
  op.elementwise =
      spec.updates.empty() && spec.outputs.size() == 1 && spec.gathered == Gathered::kElements;
  const auto shared = std::make_shared<const PointwiseSpec>(std::move(spec));
  op.infer = [shared](OpContext& context) { return InferPointwise(context, *shared); };
  op.make_kernel = [shared](const OpContext& context) { return MakePointwise(context, *shared); };
  registry.Add(std::move(op));
}

}  // namespace npumesh
