#include "graph/ops/toolbox/machine/elementwise.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "graph/ops/core/signature.h"
#include "graph/ops/toolbox/copy/broadcast.h"
#include "graph/ops/toolbox/machine/block_program.h"
#include "graph/ops/toolbox/values/cast.h"

namespace npumesh {
namespace {

// What an operator computes in, and what it gives.
struct ElementwiseTypes {
  LoopType compute = LoopType::kFloat;
  DataType output = DataType::kUndefined;
};

bool IsWholeType(LoopType type) {
  return type == LoopType::kInt || type == LoopType::kLong || type == LoopType::kUlong;
}
bool IsReal(LoopType type) {
  return type == LoopType::kFloat || type == LoopType::kDouble;
}

// Magnitudes of complex numbers are real.
DataType PartOf(DataType complex) {
  if (complex == DataType::kComplex128) return DataType::kDouble;
  return complex == DataType::kComplex32 ? DataType::kFloat16 : DataType::kFloat;
}

std::optional<ElementwiseTypes> TypesBy(const ElementwiseSpec& spec, DataType promoted) {
  const std::optional<LoopType> own = TypeOf(promoted, LoopTarget::kBlocks);
  if (!own) return std::nullopt;
  if (IsComplex(*own) && spec.op == LoopOp::kAbs) return {{*own, PartOf(promoted)}};
  switch (spec.rule) {
    case ResultRule::kCompare:
      return {{*own, DataType::kBool}};
    case ResultRule::kLogical:
      return {{IsComplex(*own) ? *own : LoopType::kBool, DataType::kBool}};
    case ResultRule::kQuotient:
      if (IsWholeType(*own)) return {{LoopType::kDouble, promoted}};
      if (*own == LoopType::kBool) return {{LoopType::kFloat, DataType::kFloat}};
      break;
    case ResultRule::kReal:
      if (!IsReal(*own) && !IsComplex(*own)) return {{LoopType::kFloat, DataType::kFloat}};
      break;
    case ResultRule::kSame:
      break;
  }
  return {{*own, promoted}};
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

// Integers of 32 bits and less wrap in 32 bits as in 64, but a scalar of 64 bits beside them has
// more to compare, and quotients, remainders and powers are computed in 64.
LoopType WidthFor(const OpContext& context, LoopOp op, LoopType type) {
  if (type != LoopType::kInt) return type;
  bool wide = !IsTaken(op, type);
  for (int slot = 0; slot < context.slots(); ++slot) {
    wide = wide || TypeOf(context.in(slot).dtype) == LoopType::kLong;
  }
  return wide ? LoopType::kLong : type;
}

Result<ElementwiseTypes> TypesOf(const OpContext& context, const ElementwiseSpec& spec) {
  std::vector<TensorType> operands;
  for (int slot = 0; slot < context.slots(); ++slot) operands.push_back(context.in(slot));
  std::optional<ElementwiseTypes> types = TypesBy(spec, Promote(operands));
  if (types) types->compute = WidthFor(context, spec.op, types->compute);
  if (types && IsTaken(spec.op, types->compute)) return *types;
  return Error(Code::kUnsupported, "{}: not defined for {}", context.Who(), DescribeSlots(context));
}

Status InferElementwise(OpContext& context, const ElementwiseSpec& spec) {
  NPUMESH_ASSIGN_OR_RETURN(const ElementwiseTypes types, TypesOf(context, spec));
  NPUMESH_ASSIGN_OR_RETURN(Shape shape, BroadcastSlots(context, context.slots()));
  context.set_out(0, {types.output, std::move(shape)});
  return Status();
}

bool HasBase(LoopOp op) {
  return op == LoopOp::kExp || op == LoopOp::kLog;
}

// kExp and kLog take a base; -1 stands for e.
Status CheckBase(const OpContext& context, const ElementwiseSpec& spec) {
  if (!HasBase(spec.op)) return Status();
  const float base = context.attr_float("base");
  if (base == -1.0f || base > 0.0f) return Status();
  return Error(Code::kInvalidArgument,
               "{}: attribute \"base\" is {}; expected -1 (for e) or more than 0", context.Who(),
               base);
}

LaneParams ParamsOf(const OpContext& context, LoopOp op, LoopType type) {
  LaneParams params = {};
  size_t next = 0;
  for (const AttrSpec& attr : context.schema().attrs) {
    const bool is_text = attr.pattern.get<std::string>() != nullptr;
    if (!is_text) params[next++] = static_cast<double>(context.attr_float(attr.name));
  }
  if (HasBase(op) && type == LoopType::kFloat) {
    params[0] = params[0] == -1 ? 1 : std::log(params[0]);
  }
  return params;
}

// The constant exponent of a power; nullopt: it is only known at run time.
std::optional<double> ExponentOf(const OpContext& context) {
  const Tensor* exponent = context.value(1);
  if (exponent == nullptr || exponent->type().shape.elements() != 1) return std::nullopt;
  const ConvertFn widen = FindConvert(exponent->dtype(), DataType::kDouble);
  if (widen == nullptr) return std::nullopt;
  double value = 0;
  widen(exponent->data(), &value, 1);
  return value;
}

// Squares and cubes are by far the most frequent powers; in double the C library computes them.
LoopOp SimplePower(const OpContext& context, LoopType type) {
  const std::optional<double> exponent = ExponentOf(context);
  if (type != LoopType::kDouble && exponent == 2) return LoopOp::kSquare;
  return type == LoopType::kFloat && exponent == 3 ? LoopOp::kCube : LoopOp::kPow;
}

void LoopElementwise(const OpContext& context, LoopBuilder& loop, const ElementwiseSpec& spec) {
  const Result<ElementwiseTypes> types = TypesOf(context, spec);
  const Result<LoopOp> chosen = spec.choose == nullptr ? spec.op : spec.choose(context);
  if (!types.ok() || !chosen.ok()) return;
  const LoopType type = types->compute;
  std::vector<LoopValue> operands;
  for (int slot = 0; slot < context.slots(); ++slot) {
    operands.push_back(loop.As(type, loop.In(slot)));
  }
  const LoopOp op = *chosen == LoopOp::kPow ? SimplePower(context, type) : *chosen;
  if (op != *chosen) operands.resize(1);
  const LoopValue y = loop.Emit(op, operands, ParamsOf(context, op, type));
  loop.Give(loop.To(context.out(0).dtype, y));
}

Result<std::unique_ptr<Kernel>> MakeElementwise(const OpContext& context,
                                                const ElementwiseSpec& spec) {
  NPUMESH_RETURN_IF_ERROR(CheckBase(context, spec));
  NPUMESH_RETURN_IF_ERROR(TypesOf(context, spec).status());
  if (spec.choose != nullptr) NPUMESH_RETURN_IF_ERROR(spec.choose(context).status());
  const std::optional<BlockProgram> blocks = BlocksOf(
      context, [&](const OpContext& op, LoopBuilder& loop) { LoopElementwise(op, loop, spec); });
  if (!blocks) {
    return Error(Code::kUnsupported, "{}: not defined for {}", context.Who(),
                 DescribeSlots(context));
  }
  return MakeBlockMachine(*blocks, {.threads = context.threads(), .who = context.Who()});
}

}  // namespace

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

void RegisterElementwise(OpRegistry& registry, std::span<const ElementwiseSpec> specs,
                         PrecisionClass precision) {
  for (const ElementwiseSpec& spec : specs) {
    registry.Add(
        {.schema = Signature(spec.signature),
         .infer = [spec](OpContext& context) { return InferElementwise(context, spec); },
         .make_kernel = [spec](const OpContext& context) { return MakeElementwise(context, spec); },
         .loop = [spec](const OpContext& context,
                        LoopBuilder& loop) { LoopElementwise(context, loop, spec); },
         .precision = precision,
         .axes = "[..]"});
  }
}

}  // namespace npumesh
