#include <algorithm>

#include "graph/ops/float_rows.h"
#include "graph/ops/grouped_matmul.h"
#include "graph/ops/infer_checks.h"

namespace npumesh {
namespace {

// The tensors of a dynamic input; none when the list is a placeholder, one vector of no elements. A
// matrix without rows is none: that is a rank to which no token went.
std::vector<int> SlotsOf(const OpContext& op, std::string_view port) {
  std::vector<int> slots;
  for (int i = 0; i < op.count(port); ++i) slots.push_back(op.slot(port) + i);
  if (slots.size() != 1) return slots;
  const Shape& shape = op.in(slots[0]).shape;
  if (shape.rank() < 2 && shape.elements() == 0) slots.clear();
  return slots;
}

// The factors of each group: from a tensor for each, or equal parts of one.
Result<std::vector<Factors>> FactorsOf(const OpContext& op, std::string_view port, size_t groups) {
  const std::vector<int> slots = SlotsOf(op, port);
  std::vector<Factors> factors(groups);
  if (slots.empty()) return factors;
  if (slots.size() != 1 && slots.size() != groups) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" has {} tensors for {} groups", op.Who(), port,
                 slots.size(), groups);
  }
  for (size_t i = 0; i < groups; ++i) {
    NPUMESH_ASSIGN_OR_RETURN(factors[i], Factors::OfSlot(op, slots[slots.size() == 1 ? 0 : i]));
    if (slots.size() == 1 && groups > 1) {
      factors[i] = factors[i].Part(static_cast<int64_t>(i), static_cast<int64_t>(groups));
    }
  }
  return factors;
}

// ---- sizes ----

struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
};

// The last two dimensions, after transposition; dimensions in front become rows.
Result<Matrix> MatrixOf(const OpContext& op, int slot, bool transposed) {
  Shape shape = op.in(slot).shape;
  if (shape.rank() < 2) {
    return Error(Code::kInvalidArgument, "{}: input slot {} is {}, expected a matrix", op.Who(),
                 slot, op.in(slot).ToString());
  }
  const int64_t columns = shape.dims().back();
  Matrix matrix{ElementsBetween(shape, 0, shape.rank() - 1), columns};
  if (transposed) std::swap(matrix.rows, matrix.columns);
  return matrix;
}

// Weights: [K, N] each, or one [E, K, N].
Status AddWeights(const OpContext& op, Grouped& plan, const std::vector<int>& slots) {
  const bool stacked =
      plan.split == Split::kRows && slots.size() == 1 && op.in(slots[0]).shape.rank() == 3;
  const int64_t count = stacked ? op.in(slots[0]).shape[0] : static_cast<int64_t>(slots.size());
  for (int64_t i = 0; i < count; ++i) {
    Group group;
    group.w_slot = slots[stacked ? 0 : static_cast<size_t>(i)];
    Shape shape = op.in(group.w_slot).shape;
    if (stacked) shape.mutable_dims().erase(shape.mutable_dims().begin());
    if (shape.rank() != 2) {
      return Error(Code::kInvalidArgument, "{}: weight {} is {}, expected a matrix", op.Who(), i,
                   op.in(group.w_slot).ToString());
    }
    if (op.in(group.w_slot).dtype == DataType::kInt32) shape[1] *= 8;
    group.k = shape[plan.transposed_w ? 1 : 0];
    group.n = shape[plan.transposed_w ? 0 : 1];
    group.w_first = stacked ? i * group.k * group.n : 0;
    plan.groups.push_back(group);
  }
  return Status();
}

// Groups of the inner dimension share both operands; their number is that of group_list.
void RepeatForInner(const OpContext& op, Grouped& plan) {
  if (plan.groups.empty()) return;
  const int64_t entries = op.in(plan.list_slot).shape.elements();
  plan.groups.resize(static_cast<size_t>(plan.list_type == 2 ? entries / 2 : entries),
                     plan.groups[0]);
}

Status AddInputs(const OpContext& op, Grouped& plan, const std::vector<int>& slots) {
  const bool each = plan.split == Split::kTensors;
  if (each ? slots.size() != plan.groups.size() : slots.size() != 1) {
    return Error(
        Code::kUnsupported,
        "{}: group_type {} with {} tensors x and {} weights; expected as many, or one x to "
        "be split",
        op.Who(), op.attr_int("group_type"), slots.size(), plan.groups.size());
  }
  for (size_t i = 0; i < plan.groups.size(); ++i) {
    Group& group = plan.groups[i];
    group.x_slot = slots[each ? i : 0];
    NPUMESH_ASSIGN_OR_RETURN(const Matrix x, MatrixOf(op, group.x_slot, plan.transposed_x));
    group.m = x.rows;
    if (x.columns == group.k) continue;
    return Error(Code::kInvalidArgument, "{}: x {} and weight {} of group {} cannot be multiplied",
                 op.Who(), op.in(group.x_slot).ToString(), op.in(group.w_slot).ToString(), i);
  }
  return Status();
}

// ---- types and factors ----

// The private numbering of the attribute dtype.
Result<DataType> OutputType(const OpContext& op, const Grouped& plan) {
  if (!plan.integers) return plan.x_dtype;
  switch (op.attr_int("dtype")) {
    case -1:
      return plan.x_dtype;
    case 0:
      return DataType::kFloat16;
    case 1:
      return DataType::kBfloat16;
    case 2:
      return DataType::kInt32;
    case 3:
      return DataType::kFloat;
    default:
      return Error(Code::kInvalidArgument, "{}: dtype {}, expected -1 to 3", op.Who(),
                   op.attr_int("dtype"));
  }
}

bool IsSmallInteger(DataType dtype) {
  return dtype == DataType::kInt8 || dtype == DataType::kInt4;
}

Status SetWeightScale(const OpContext& op, const Grouped& plan, const Factors& scale,
                      const Factors& offset, Group& group) {
  WeightScale& to = group.weight_scale;
  to.scale = scale;
  to.offset = offset;
  const int64_t parts = group.n == 0 ? 1 : std::max<int64_t>(scale.count() / group.n, 1);
  const bool fits = scale.given() && scale.count() == parts * group.n && group.k % parts == 0 &&
                    (!offset.given() || offset.count() == scale.count());
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: {} antiquant scales and {} offsets for weights of {} x {}", op.Who(),
                 scale.count(), offset.count(), group.k, group.n);
  }
  to.rows = group.k / parts;
  to.by_column = plan.transposed_w ? parts : 1;
  to.by_rows = plan.transposed_w ? 1 : group.n;
  return Status();
}

Status ReadFactors(const OpContext& op, Grouped& plan) {
  const size_t count = plan.groups.size();
  NPUMESH_ASSIGN_OR_RETURN(const auto bias, FactorsOf(op, "bias", count));
  NPUMESH_ASSIGN_OR_RETURN(const auto scale, FactorsOf(op, "scale", count));
  NPUMESH_ASSIGN_OR_RETURN(const auto offset, FactorsOf(op, "offset", count));
  NPUMESH_ASSIGN_OR_RETURN(const auto weight_scale, FactorsOf(op, "antiquant_scale", count));
  NPUMESH_ASSIGN_OR_RETURN(const auto weight_offset, FactorsOf(op, "antiquant_offset", count));
  NPUMESH_ASSIGN_OR_RETURN(const Factors row_scale, Factors::Of(op, "per_token_scale"));
  for (size_t i = 0; i < count; ++i) {
    Group& group = plan.groups[i];
    Dequant& dequant = group.dequant;
    dequant.scale = scale[i];
    dequant.row_scale = row_scale;
    const bool integer_bias = bias[i].given() && bias[i].dtype() == DataType::kInt32;
    (integer_bias ? dequant.before : dequant.after) = bias[i];
    if (!dequant.after.given()) dequant.after = offset[i];
    NPUMESH_RETURN_IF_ERROR(CheckFactors(op, bias[i], "bias", group.n));
    NPUMESH_RETURN_IF_ERROR(CheckFactors(op, scale[i], "scale", group.n));
    NPUMESH_RETURN_IF_ERROR(CheckFactors(op, offset[i], "offset", group.n));
    if (plan.split == Split::kRows) {
      NPUMESH_RETURN_IF_ERROR(CheckFactors(op, row_scale, "per_token_scale", group.m));
    }
    if (IsRowType(plan.x_dtype) && IsSmallInteger(plan.w_dtype)) {
      NPUMESH_RETURN_IF_ERROR(SetWeightScale(op, plan, weight_scale[i], weight_offset[i], group));
    }
  }
  return Status();
}

Status ReadTypes(const OpContext& op, Grouped& plan, int x, int w) {
  plan.x_dtype = op.in(x).dtype;
  plan.w_dtype = op.in(w).dtype == DataType::kInt32 ? DataType::kInt4 : op.in(w).dtype;
  plan.integers = IsSmallInteger(plan.x_dtype) && IsSmallInteger(plan.w_dtype);
  const bool floats =
      IsRowType(plan.x_dtype) && (plan.w_dtype == plan.x_dtype || IsSmallInteger(plan.w_dtype));
  if (!plan.integers && !floats) {
    return Error(Code::kUnsupported, "{}: products of {} and {} are not available", op.Who(),
                 Name(plan.x_dtype), Name(plan.w_dtype));
  }
  plan.activation = op.attr_int("act_type");
  if (plan.activation < 0 || plan.activation > 5 || plan.activation == 3) {
    return Error(Code::kUnsupported, "{}: act_type {}, expected 0, 1, 2, 4 or 5", op.Who(),
                 plan.activation);
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, OutputType(op, plan));
  return Status();
}

Status ReadSplit(const OpContext& op, Grouped& plan) {
  const int64_t type = op.attr_int("group_type");
  const int64_t item = op.attr_int("split_item");
  plan.split = type == 0 ? Split::kRows : type == 2 ? Split::kInner : Split::kTensors;
  plan.joined = item >= 2 || plan.split == Split::kInner;
  plan.list_slot = SlotIfFed(op, "group_list");
  plan.list_type = op.attr_int("group_list_type");
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, plan.list_slot));
  const bool known = (type >= -1 && type <= 2 && type != 1) && item >= 0 && item <= 3 &&
                     plan.list_type >= 0 && plan.list_type <= 2;
  const bool listed = plan.split == Split::kTensors || plan.list_slot >= 0;
  const bool turned = (plan.split == Split::kRows && plan.transposed_x) ||
                      (plan.split == Split::kInner && plan.transposed_w);
  if (!known || !listed || turned || (plan.split == Split::kRows && !plan.joined)) {
    return Error(
        Code::kUnsupported,
        "{}: group_type {}, split_item {}, group_list_type {}{}{}; expected group_type -1, 0 "
        "or 2, for 0 a split_item of 2 or 3, a group_list where one tensor is split, and "
        "the split dimension not transposed away",
        op.Who(), type, item, plan.list_type, listed ? "" : " without group_list",
        turned ? " with a transposed operand" : "");
  }
  if (plan.list_slot >= 0) plan.list_dtype = op.in(plan.list_slot).dtype;
  return Status();
}

Status CheckList(const OpContext& op, const Grouped& plan) {
  if (plan.split == Split::kTensors) return Status();
  const int64_t entries = op.in(plan.list_slot).shape.elements();
  const auto groups = static_cast<int64_t>(plan.groups.size());
  if (plan.list_type == 2 ? entries % 2 == 0 : entries <= groups) return Status();
  return Error(Code::kInvalidArgument, "{}: group_list is {} for {} groups", op.Who(),
               op.in(plan.list_slot).ToString(), groups);
}

}  // namespace

Result<Grouped> PlanGrouped(const OpContext& op) {
  Grouped plan;
  plan.transposed_x = op.attr_bool("transpose_x");
  plan.transposed_w = op.attr_bool("transpose_weight");
  NPUMESH_RETURN_IF_ERROR(ReadSplit(op, plan));
  const std::vector<int> x = SlotsOf(op, "x");
  const std::vector<int> w = SlotsOf(op, "weight");
  if (x.empty() || w.empty() || (plan.split == Split::kInner && w.size() != 1)) {
    return Error(Code::kInvalidArgument, "{}: {} tensors x and {} weights", op.Who(), x.size(),
                 w.size());
  }
  NPUMESH_RETURN_IF_ERROR(ReadTypes(op, plan, x[0], w[0]));
  NPUMESH_RETURN_IF_ERROR(AddWeights(op, plan, w));
  if (plan.split == Split::kInner) RepeatForInner(op, plan);
  NPUMESH_RETURN_IF_ERROR(AddInputs(op, plan, x));
  NPUMESH_RETURN_IF_ERROR(CheckList(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadFactors(op, plan));
  if (!plan.groups.empty()) return plan;
  return Error(Code::kInvalidArgument, "{}: no groups", op.Who());
}

}  // namespace npumesh
