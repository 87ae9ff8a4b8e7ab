// Comparison, logic and selection (ops reference 5.4).
#include "graph/ops/broadcast.h"
#include "graph/ops/cast.h"
#include "graph/ops/elementwise.h"

namespace npumesh {
namespace {

const std::vector<PortSpec> kOne = {{"x"}};
const std::vector<PortSpec> kTwo = {{"x1"}, {"x2"}};

// Element i of the operand in slot kThen where slot kMask is true, else of the one in slot kElse.
// Moves bits: a NaN that is not selected leaves no trace.
template <typename Element, int kMask, int kThen, int kElse>
void Select(const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
  const uint8_t* mask = static_cast<const uint8_t*>(in[kMask]);
  const Element* chosen = static_cast<const Element*>(in[kThen]);
  const Element* other = static_cast<const Element*>(in[kElse]);
  Element* y = static_cast<Element*>(out);
  for (size_t i = 0; i < count; ++i) y[i] = mask[i] != 0 ? chosen[i] : other[i];
}

// Null for elements that are not 1, 2, 4 or 8 bytes wide.
template <int kMask, int kThen, int kElse>
BlockFn SelectOf(DataType dtype) {
  switch (BitsOf(dtype)) {
    case 8:
      return Select<uint8_t, kMask, kThen, kElse>;
    case 16:
      return Select<uint16_t, kMask, kThen, kElse>;
    case 32:
      return Select<uint32_t, kMask, kThen, kElse>;
    case 64:
      return Select<uint64_t, kMask, kThen, kElse>;
    default:
      return nullptr;
  }
}

Status CheckMask(const OpContext& context, std::string_view port) {
  const TensorType& mask = context.in(port);
  if (mask.dtype == DataType::kBool) return Status();
  return Error(Code::kInvalidArgument, "{}: input \"{}\" is {}; expected bool", context.Who(), port,
               mask.ToString());
}

// ---- SelectV2: condition ? then : else ----

Status InferSelect(OpContext& context) {
  NPUMESH_RETURN_IF_ERROR(CheckMask(context, "condition"));
  const TensorType branches[] = {context.in("then"), context.in("else")};
  const DataType dtype = Promote(branches);
  if (SelectOf<0, 1, 2>(dtype) == nullptr) {
    return Error(Code::kUnsupported, "{}: cannot select between then {} and else {}", context.Who(),
                 branches[0].ToString(), branches[1].ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(Shape shape, BroadcastSlots(context, 3));
  context.set_out(0, {dtype, std::move(shape)});
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeSelect(const OpContext& context) {
  const DataType dtype = context.out(0).dtype;
  BlockPlan plan;
  plan.block = SelectOf<0, 1, 2>(dtype);
  plan.operands = {DataType::kBool, dtype, dtype};
  plan.result = dtype;
  return MakeBlockKernel(context, std::move(plan));
}

// ---- MaskedFill: x, with one value where mask is true ----

Status InferMaskedFill(OpContext& context) {
  NPUMESH_RETURN_IF_ERROR(CheckMask(context, "mask"));
  const TensorType& x = context.in("x");
  const TensorType& value = context.in("value");
  if (value.shape.elements() != 1) {
    return Error(Code::kInvalidArgument, "{}: input \"value\" is {}; expected one element",
                 context.Who(), value.ToString());
  }
  const bool castable = value.dtype == x.dtype || FindConvert(value.dtype, x.dtype) != nullptr;
  if (SelectOf<1, 2, 0>(x.dtype) == nullptr || !castable) {
    return Error(Code::kUnsupported, "{}: cannot fill x {} with value {}", context.Who(),
                 x.ToString(), value.ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(Shape shape, BroadcastSlots(context, 2));
  context.set_out(0, {x.dtype, std::move(shape)});
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeMaskedFill(const OpContext& context) {
  const DataType dtype = context.out(0).dtype;
  BlockPlan plan;
  plan.block = SelectOf<1, 2, 0>(dtype);
  plan.operands = {dtype, DataType::kBool, dtype};
  plan.result = dtype;
  return MakeBlockKernel(context, std::move(plan));
}

}  // namespace

void RegisterCompareOps(OpRegistry& registry) {
  const ElementwiseSpec specs[] = {
      {"Equal", Formula::kEqual, kTwo, ResultRule::kCompare},
      {"NotEqual", Formula::kNotEqual, kTwo, ResultRule::kCompare},
      {"Less", Formula::kLess, kTwo, ResultRule::kCompare},
      {"LessEqual", Formula::kLessEqual, kTwo, ResultRule::kCompare},
      {"Greater", Formula::kGreater, kTwo, ResultRule::kCompare},
      {"GreaterEqual", Formula::kGreaterEqual, kTwo, ResultRule::kCompare},
      {"LogicalAnd", Formula::kAnd, kTwo, ResultRule::kLogical},
      {"LogicalOr", Formula::kOr, kTwo, ResultRule::kLogical},
      {"LogicalNot", Formula::kNot, kOne, ResultRule::kLogical},
  };
  for (const ElementwiseSpec& spec : specs) RegisterElementwise(registry, spec);

  Operator select;
  select.schema = {"SelectV2", {{"condition"}, {"then"}, {"else"}}, {{"result"}}, {}};
  select.infer = InferSelect;
  select.make_kernel = MakeSelect;
  select.elementwise = true;
  registry.Add(std::move(select));

  Operator fill;
  fill.schema = {"MaskedFill", {{"x"}, {"mask"}, {"value"}}, {{"y"}}, {}};
  fill.infer = InferMaskedFill;
  fill.make_kernel = MakeMaskedFill;
  fill.elementwise = true;
  registry.Add(std::move(fill));
}

}  // namespace npumesh
