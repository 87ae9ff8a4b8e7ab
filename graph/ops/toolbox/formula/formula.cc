#include "graph/ops/toolbox/formula/formula.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "graph/ops/core/signature.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/formula/formula_loop.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

class BlockKernel final : public Kernel {
 public:
  BlockKernel(const OpContext& context, BlockPlan plan)
      : plan_(std::move(plan)),
        elements_(context.out(0).shape.elements()),
        threads_(context.threads()),
        width_(WidthOf(context.out(0).dtype)),
        convert_(plan_.result == context.out(0).dtype
                     ? nullptr
                     : FindNumberConvert(plan_.result, context.out(0).dtype)),
        who_(context.Who()) {
    for (int slot = 0; slot < context.slots(); ++slot) {
      operands_.emplace_back(context.in(slot), plan_.operands[static_cast<size_t>(slot)],
                             context.out(0).shape);
    }
  }

  const BlockPlan& plan() const { return plan_; }

  Status Run(const KernelArgs& args) override {
    if (plan_.divisor >= 0) return RunRange(args, 0, elements_);  // the first zero is reported
    const double work = kElementWork * static_cast<double>(elements_);
    RunRanges(WorthThreads(work, threads_), elements_, kBlock,
              [&](int /*part*/, int64_t begin, int64_t end) {
                static_cast<void>(RunRange(args, begin, end));  // nothing else can fail
              });
    return Status();
  }

 private:
  static constexpr int64_t kBlock = kBlockElements;

  // Elements [begin, end) of the output.
  Status RunRange(const KernelArgs& args, int64_t begin, int64_t end) const {
    if (begin == end) return Status();
    BlockBuffer buffers[kMostOperands];
    BlockBuffer result;
    for (size_t i = 0; i < operands_.size(); ++i) operands_[i].Start(args.in[i], buffers[i]);
    auto* out = static_cast<std::byte*>(args.out[0]) + static_cast<size_t>(begin) * width_;
    for (; begin < end; begin += kBlock) {
      const auto count = static_cast<size_t>(std::min(kBlock, end - begin));
      const void* in[kMostOperands];
      for (size_t i = 0; i < operands_.size(); ++i) {
        in[i] = operands_[i].Block(args.in[i], begin, count, buffers[i]);
      }
      if (plan_.divisor >= 0) {
        NPUMESH_RETURN_IF_ERROR(RefuseZeros(who_, in[plan_.divisor], begin, count));
      }
      if (convert_ == nullptr) {
        plan_.block(in, out, count, plan_.params);
      } else {
        plan_.block(in, result.bytes, count, plan_.params);
        convert_(result.bytes, out, count);
      }
      out += count * width_;
    }
    return Status();
  }

  BlockPlan plan_;
  std::vector<Operand> operands_;
  int64_t elements_;
  int threads_;
  size_t width_;
  ConvertFn convert_;  // from the formula's type to the output's; null: the same
  std::string who_;
};

// Types of operands, result and output of a formula.
struct FormulaTypes {
  DataType operand = DataType::kUndefined, result = DataType::kUndefined;
  DataType output = DataType::kUndefined;
};

bool IsComplex(DataType dtype) {
  return dtype == DataType::kComplex32 || dtype == DataType::kComplex64 ||
         dtype == DataType::kComplex128;
}

// Complex numbers stay so, but for magnitudes and comparisons.
FormulaTypes ComplexTypes(const ElementwiseSpec& spec, DataType promoted) {
  const DataType complex = ComputeTypeOf(promoted);
  if (spec.rule == ResultRule::kCompare) return {complex, DataType::kBool, DataType::kBool};
  if (spec.formula != Formula::kAbs) return {complex, complex, promoted};
  const bool wide = complex == DataType::kComplex128, half = promoted == DataType::kComplex32;
  return {complex, wide ? DataType::kDouble : DataType::kFloat,
          wide   ? DataType::kDouble
          : half ? DataType::kFloat16
                 : DataType::kFloat};
}

FormulaTypes TypesBy(ResultRule rule, DataType promoted) {
  const DataType compute = ComputeTypeOf(promoted);
  const bool real = IsFloating(promoted);
  switch (rule) {
    case ResultRule::kSame:
      return {compute, compute, promoted};
    case ResultRule::kCompare:
      return {compute, DataType::kBool, DataType::kBool};
    case ResultRule::kLogical:
      return {DataType::kBool, DataType::kBool, DataType::kBool};
    case ResultRule::kQuotient:
      if (real) return {compute, compute, promoted};
      if (promoted == DataType::kBool) break;
      return {DataType::kDouble, DataType::kDouble, promoted};
    case ResultRule::kReal:
      if (real) return {compute, compute, promoted};
      break;
  }
  return {DataType::kFloat, DataType::kFloat, DataType::kFloat};
}

// "x1 float32[2,4], x2 float32[3]"
std::string DescribeSlots(const OpContext& context) {
  std::vector<std::string> parts;
  for (int slot = 0; slot < context.slots(); ++slot) {
    const std::string_view port = context.schema().inputs[static_cast<size_t>(slot)].name;
    parts.push_back(fmt::format("{} {}", port, context.in(slot).ToString()));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Result<FormulaTypes> TypesOf(const OpContext& context, const ElementwiseSpec& spec) {
  std::vector<TensorType> operands;
  for (int slot = 0; slot < context.slots(); ++slot) operands.push_back(context.in(slot));
  const DataType promoted = Promote(operands);
  const FormulaTypes types =
      IsComplex(promoted) ? ComplexTypes(spec, promoted) : TypesBy(spec.rule, promoted);
  if (ComputeTypeOf(promoted) == DataType::kUndefined ||
      FindBlock(spec.formula, types.operand) == nullptr) {
    return Error(Code::kUnsupported, "{}: not defined for {}", context.Who(),
                 DescribeSlots(context));
  }
  return types;
}

Status InferElementwise(OpContext& context, const ElementwiseSpec& spec) {
  NPUMESH_ASSIGN_OR_RETURN(const FormulaTypes types, TypesOf(context, spec));
  NPUMESH_ASSIGN_OR_RETURN(Shape shape, BroadcastSlots(context, context.slots()));
  context.set_out(0, {types.output, std::move(shape)});
  return Status();
}

// kExp and kLog take a base; -1 stands for e.
Status CheckBase(const OpContext& context, const ElementwiseSpec& spec) {
  if (spec.formula != Formula::kExp && spec.formula != Formula::kLog) return Status();
  const float base = context.attr_float("base");
  if (base == -1.0f || base > 0.0f) return Status();
  return Error(Code::kInvalidArgument,
               "{}: attribute \"base\" is {}; expected -1 (for e) or more than 0", context.Who(),
               base);
}

FormulaParams ParamsOf(const OpContext& context) {
  FormulaParams params = {};
  size_t next = 0;
  for (const AttrSpec& attr : context.schema().attrs) {
    const bool is_text = attr.pattern.get<std::string>() != nullptr;
    if (!is_text) params[next++] = static_cast<double>(context.attr_float(attr.name));
  }
  return params;
}

Result<std::unique_ptr<Kernel>> MakeElementwise(const OpContext& context,
                                                const ElementwiseSpec& spec) {
  NPUMESH_RETURN_IF_ERROR(CheckBase(context, spec));
  NPUMESH_ASSIGN_OR_RETURN(const FormulaTypes types, TypesOf(context, spec));
  Formula formula = spec.formula;
  if (spec.choose != nullptr) {
    NPUMESH_ASSIGN_OR_RETURN(formula, spec.choose(context));
  }
  BlockPlan plan;
  plan.block = FindBlock(formula, types.operand);
  plan.operands.assign(static_cast<size_t>(context.slots()), types.operand);
  plan.result = types.result;
  plan.params = ParamsOf(context);
  const bool divides =
      formula == Formula::kDiv || formula == Formula::kFloorDiv || formula == Formula::kFloorMod;
  if (divides && IsInteger(types.operand)) plan.divisor = 1;
  return MakeBlockKernel(context, std::move(plan));
}

// Squares are by far the most frequent powers.
bool IsSquare(const OpContext& context, Formula formula) {
  const Tensor* exponent = formula == Formula::kPow ? context.value(1) : nullptr;
  if (exponent == nullptr || exponent->type().shape.elements() != 1) return false;
  const ConvertFn widen = FindConvert(exponent->dtype(), DataType::kDouble);
  double value = 0;
  if (widen != nullptr) widen(exponent->data(), &value, 1);
  return value == 2;
}

// What a loop computes a formula in; nullopt: there is no such loop. Integers of 32 bits and less
// wrap in 32 bits as in 64, but a scalar of 64 bits beside them has more to compare.
std::optional<LoopType> LoopTypeOf(const OpContext& context, const FormulaTypes& types) {
  if (types.operand != DataType::kInt64) return TypeOf(types.operand);
  for (int slot = 0; slot < context.slots(); ++slot) {
    if (TypeOf(context.in(slot).dtype) == LoopType::kLong) return LoopType::kLong;
  }
  return LoopType::kInt;
}

void LoopElementwise(const OpContext& context, LoopBuilder& loop, const ElementwiseSpec& spec) {
  const Result<FormulaTypes> types = TypesOf(context, spec);
  if (!types.ok()) return;
  const std::optional<LoopType> type = LoopTypeOf(context, *types);
  if (!type || (type == LoopType::kBool && spec.rule != ResultRule::kLogical)) return;
  const Result<Formula> chosen = spec.choose == nullptr ? spec.formula : spec.choose(context);
  if (!chosen.ok()) return;
  std::vector<LoopValue> operands;
  for (int slot = 0; slot < context.slots(); ++slot) {
    operands.push_back(loop.As(*type, loop.In(slot)));
  }
  const bool square = type != LoopType::kDouble && IsSquare(context, *chosen);
  if (square) operands.resize(1);
  const LoopValue y =
      LoopOfFormula(loop, square ? Formula::kSquare : *chosen, *type, operands, ParamsOf(context));
  loop.Give(loop.To(context.out(0).dtype, y));
}

}  // namespace

DataType ComputeTypeOf(DataType dtype) {
  if (dtype == DataType::kDouble || dtype == DataType::kUint64 || dtype == DataType::kBool ||
      dtype == DataType::kComplex64 || dtype == DataType::kComplex128) {
    return dtype;
  }
  if (dtype == DataType::kComplex32) return DataType::kComplex64;
  if (IsFloating(dtype)) return DataType::kFloat;
  return IsInteger(dtype) ? DataType::kInt64 : DataType::kUndefined;
}

BlockFn FindBlock(Formula formula, DataType compute) {
  switch (compute) {
    case DataType::kFloat:
      return FloatBlock(formula);
    case DataType::kDouble:
      return DoubleBlock(formula);
    case DataType::kInt64:
    case DataType::kUint64:
      return IntegerBlock(formula, compute == DataType::kInt64);
    case DataType::kBool:
      return BoolBlock(formula);
    case DataType::kComplex64:
    case DataType::kComplex128:
      return ComplexBlock(formula, compute == DataType::kComplex128);
    default:
      return nullptr;
  }
}

std::unique_ptr<Kernel> MakeBlockKernel(const OpContext& context, BlockPlan plan) {
  assert(static_cast<size_t>(context.slots()) <= kMostOperands);
  return std::make_unique<BlockKernel>(context, std::move(plan));
}

const BlockPlan* BlockPlanOf(const Kernel& kernel) {
  const auto* block = dynamic_cast<const BlockKernel*>(&kernel);
  return block == nullptr ? nullptr : &block->plan();
}

Result<Shape> BroadcastSlots(const OpContext& context, int slots) {
  Shape shape = context.in(0).shape;
  for (int slot = 1; slot < slots; ++slot) {
    Result<Shape> wider = Broadcast(shape, context.in(slot).shape);
    if (!wider.ok()) {
      return Error(Code::kInvalidArgument, "{}: shapes do not broadcast: {}", context.Who(),
                   DescribeSlots(context));
    }
    shape = std::move(*wider);
  }
  NPUMESH_RETURN_IF_ERROR(CheckBroadcast(context, shape));
  return shape;
}

Status CheckBroadcast(const OpContext& context, const Shape& shape) {
  if (shape.rank() <= BroadcastPlan::kMaxRank) return shape.Check().WithContext(context.Who());
  return Error(Code::kUnsupported, "{}: rank {} is more than {}", context.Who(), shape.rank(),
               BroadcastPlan::kMaxRank);
}

Status RefuseZeros(const std::string& who, const void* block, int64_t begin, size_t count) {
  const uint64_t* values = static_cast<const uint64_t*>(block);
  const auto at = std::find(values, values + count, 0u) - values;
  if (at == static_cast<int64_t>(count)) return Status();
  return Error(Code::kInvalidArgument,
               "{}: integer division by zero at element {} of the output; give a divisor other "
               "than 0 or divide in a floating type",
               who, begin + at);
}

void RegisterElementwise(OpRegistry& registry, std::span<const ElementwiseSpec> specs,
                         PrecisionClass precision) {
  for (const ElementwiseSpec& spec : specs) {
    registry.Add(
        {.schema = Signature(spec.signature),
         .infer = [spec](OpContext& context) { return InferElementwise(context, spec); },
         .make_kernel = [spec](const OpContext& context) { return MakeElementwise(context, spec); },
         .elementwise = spec.rule == ResultRule::kSame || spec.rule == ResultRule::kLogical,
         .loop = [spec](const OpContext& context,
                        LoopBuilder& loop) { LoopElementwise(context, loop, spec); },
         .precision = precision,
         .split = SplitTrait{.form = SplitForm::kElementwise}});
  }
}

}  // namespace npumesh
