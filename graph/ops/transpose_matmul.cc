// TransposeBatchMatMul and TransposeQuantBatchMatMul: a batch of products whose operands and result
// lie transposed. Ops reference 5.6 and 5.19.
//
//   y = permute_y(permute_1(x1) permute_2(x2) (scaled) + bias)
#include <algorithm>
#include <array>

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/small_float.h"

namespace npumesh {
namespace {

using Three = std::array<int64_t, 3>;

// A permutation of three dimensions; an empty list keeps them.
Result<Three> PermutationOf(const OpContext& op, std::string_view attr) {
  const std::vector<int64_t> list = op.attr_ints(attr);
  if (list.empty()) return Three{0, 1, 2};
  std::vector<int64_t> sorted = list;
  std::sort(sorted.begin(), sorted.end());
  if (sorted == std::vector<int64_t>{0, 1, 2}) return Three{list[0], list[1], list[2]};
  return Error(Code::kInvalidArgument, "{}: {} is {}, expected a permutation of 0, 1, 2", op.Who(),
               attr, Shape(list).ToString());
}

// A batch of matrices in memory after its permutation.
struct PermutedSide {
  int64_t batch = 0;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t by_batch = 0;  // elements from matrix to matrix
  int64_t by_line = 0;   // from line to line, as stored
  bool transposed = false;
  DataType dtype = DataType::kUndefined;
};

Result<PermutedSide> SideOf(const OpContext& op, std::string_view port, std::string_view attr) {
  NPUMESH_ASSIGN_OR_RETURN(const Three perm, PermutationOf(op, attr));
  const TensorType& type = op.in(port);
  if (type.shape.rank() != 3) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected three dimensions", op.Who(),
                 port, type.ToString());
  }
  const Three own = {type.shape[1] * type.shape[2], type.shape[2], 1};
  Three dims, strides;
  for (size_t i = 0; i < 3; ++i) {
    dims[i] = type.shape[static_cast<int>(perm[i])];
    strides[i] = own[static_cast<size_t>(perm[i])];
  }
  if (perm[0] == 2) {
    return Error(Code::kUnsupported,
                 "{}: {} makes the last dimension of \"{}\" the batch, which is not supported",
                 op.Who(), attr, port);
  }
  const bool transposed = perm[1] == 2;
  return PermutedSide{dims[0],    dims[1],   dims[2], strides[0], strides[transposed ? 2 : 1],
                      transposed, type.dtype};
}

// Where the elements of the result go.
struct ResultPlace {
  int64_t by_batch = 0;
  int64_t by_row = 0;
  int64_t by_column = 0;
  int64_t split = 0;     // matrices of one part of the batch; 0: it is not split
  int64_t by_split = 0;  // elements of a part

  int64_t Element(int64_t b, int64_t row, int64_t column) const {
    const int64_t part = split == 0 ? 0 : b / split;
    const int64_t own = split == 0 ? b : b % split;
    return part * by_split + own * by_batch + row * by_row + column * by_column;
  }
};

struct TransposePlan {
  PermutedSide left;
  PermutedSide right;
  ResultPlace place;
  Shape y;
  DataType y_dtype = DataType::kUndefined;
  Dequant dequant;    // of one matrix or of all
  Factors out_scale;  // of int8 results, one for each column of every matrix
  bool mx = false;
  Factors left_scale;
  Factors right_scale;
};

Status PlanSides(const OpContext& op, TransposePlan& plan) {
  NPUMESH_ASSIGN_OR_RETURN(plan.left, SideOf(op, "x1", "perm_x1"));
  NPUMESH_ASSIGN_OR_RETURN(plan.right, SideOf(op, "x2", "perm_x2"));
  if (plan.left.batch == plan.right.batch && plan.left.columns == plan.right.rows) return Status();
  return Error(Code::kInvalidArgument,
               "{}: x1 {} and x2 {} cannot be multiplied: {} of {} x {} and {} of {} x {}",
               op.Who(), op.in("x1").ToString(), op.in("x2").ToString(), plan.left.batch,
               plan.left.rows, plan.left.columns, plan.right.batch, plan.right.rows,
               plan.right.columns);
}

// The result is [batch, rows, columns] permuted; parts of the batch, or what is quantised, join
// batch and columns.
Status PlanResult(const OpContext& op, TransposePlan& plan, bool joined) {
  NPUMESH_ASSIGN_OR_RETURN(const Three perm, PermutationOf(op, "perm_y"));
  const int64_t parts = op.attr_int("batch_split_factor");
  const int64_t batch = plan.left.batch, m = plan.left.rows, n = plan.right.columns;
  const Three dims = {batch, m, n};
  Three strides;
  int64_t stride = 1;
  for (size_t i = 3; i-- > 0;) {
    strides[static_cast<size_t>(perm[i])] = stride;
    stride *= dims[static_cast<size_t>(perm[i])];
  }
  plan.place = {strides[0], strides[1], strides[2], 0, 0};
  plan.y = Shape({dims[static_cast<size_t>(perm[0])], dims[static_cast<size_t>(perm[1])],
                  dims[static_cast<size_t>(perm[2])]});
  if (parts == 1 && !joined) return Status();
  if (parts < 1 || batch % parts != 0 || perm != Three{1, 0, 2} || (joined && parts != 1)) {
    return Error(Code::kUnsupported,
                 "{}: batch_split_factor {} for {} matrices with perm_y {}{}; expected a divisor "
                 "and perm_y 1,0,2",
                 op.Who(), parts, batch, Shape(op.attr_ints("perm_y")).ToString(),
                 joined ? " and a scale" : "");
  }
  const int64_t width = batch / parts * n;
  plan.place = {n, width, 1, batch / parts, m * width};
  plan.y = parts == 1 ? Shape({m, 1, width}) : Shape({parts, m, width});
  return Status();
}

Result<TransposePlan> PlanFloat(const OpContext& op) {
  TransposePlan plan;
  NPUMESH_RETURN_IF_ERROR(PlanSides(op, plan));
  NPUMESH_ASSIGN_OR_RETURN(plan.out_scale, Factors::Of(op, "scale"));
  NPUMESH_RETURN_IF_ERROR(PlanResult(op, plan, plan.out_scale.given()));
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  plan.y_dtype = plan.out_scale.given() ? DataType::kInt8 : plan.left.dtype;
  const int64_t n = plan.right.columns, all = plan.left.batch * n;
  if (!IsRowType(plan.left.dtype) || plan.right.dtype != plan.left.dtype ||
      plan.dequant.before.given()) {
    return Error(Code::kUnsupported,
                 "{}: x1 is {} and x2 {}, expected one float type, and a float type for the bias",
                 op.Who(), op.in("x1").ToString(), op.in("x2").ToString());
  }
  const int64_t bias = plan.dequant.after.count();
  if (bias != all) NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.after, "bias", n));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.out_scale, "scale", all));
  return plan;
}

Status PlanMx(const OpContext& op, TransposePlan& plan) {
  const int64_t m = plan.left.rows, n = plan.right.columns, k = plan.left.columns;
  const int64_t batch = plan.left.batch, pairs = k / (2 * kMxBlock);
  const Shape left({m, batch, pairs, 2});
  const Shape right =
      plan.right.transposed ? Shape({batch, n, pairs, 2}) : Shape({batch, pairs, n, 2});
  const bool stored =
      op.attr_ints("perm_x1") == std::vector<int64_t>{1, 0, 2} && op.attr_ints("perm_x2")[0] == 0;
  plan.mx = true;
  if (stored && k % (2 * kMxBlock) == 0 &&
      op.in("x1_scale") == TensorType{DataType::kFloat8E8M0, left} &&
      op.in("x2_scale") == TensorType{DataType::kFloat8E8M0, right}) {
    return Status();
  }
  return Error(Code::kUnsupported,
               "{}: x1_scale is {} and x2_scale {}, expected float8_e8m0 {} and {}, k in whole "
               "pairs of 32, perm_x1 1,0,2 and the batch of x2 in front",
               op.Who(), op.in("x1_scale").ToString(), op.in("x2_scale").ToString(),
               left.ToString(), right.ToString());
}

Result<TransposePlan> PlanQuant(const OpContext& op) {
  TransposePlan plan;
  NPUMESH_RETURN_IF_ERROR(PlanSides(op, plan));
  NPUMESH_RETURN_IF_ERROR(PlanResult(op, plan, false));
  NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("dtype"));
  if (!IsFloat8(plan.left.dtype) || !IsFloat8(plan.right.dtype) || !IsRowType(plan.y_dtype)) {
    return Error(Code::kUnsupported,
                 "{}: x1 is {}, x2 {} and dtype {}, expected 8-bit floats and a wider one",
                 op.Who(), op.in("x1").ToString(), op.in("x2").ToString(), Name(plan.y_dtype));
  }
  const int left = SlotIfFed(op, "x1_scale"), right = SlotIfFed(op, "x2_scale");
  if (SlotIfFed(op, "bias") >= 0 || left < 0 || right < 0) {
    return Error(Code::kUnsupported, "{}: expected x1_scale and x2_scale, and no bias", op.Who());
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.left_scale, Factors::Of(op, "x1_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.right_scale, Factors::Of(op, "x2_scale"));
  const int64_t group = op.attr_int("group_size");
  const bool mx = op.in(left).dtype == DataType::kFloat8E8M0;
  if (group > 0 && !(mx && (group & 0xffff) == kMxBlock)) {
    return Error(Code::kUnsupported, "{}: group_size is {}, expected 0{}", op.Who(), group,
                 mx ? " or 32" : "");
  }
  if (mx) {
    NPUMESH_RETURN_IF_ERROR(PlanMx(op, plan));
    return plan;
  }
  if (op.in(left).dtype != DataType::kFloat || op.in(right).dtype != DataType::kFloat) {
    return Error(Code::kUnsupported,
                 "{}: x1_scale is {} and x2_scale {}, expected float32 or float8_e8m0 for both",
                 op.Who(), op.in(left).ToString(), op.in(right).ToString());
  }
  plan.dequant.row_scale = plan.left_scale;
  plan.dequant.scale = plan.right_scale;
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.left_scale, "x1_scale", plan.left.rows));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.right_scale, "x2_scale", plan.right.columns));
  return plan;
}

Result<TransposePlan> PlanOf(const OpContext& op) {
  return op.schema().type == "TransposeBatchMatMul" ? PlanFloat(op) : PlanQuant(op);
}

Status InferTranspose(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const TransposePlan plan, PlanOf(op));
  return SetOutput(op, 0, plan.y_dtype, plan.y);
}

class TransposeKernel final : public Kernel {
 public:
  TransposeKernel(const OpContext& op, TransposePlan plan)
      : plan_(std::move(plan)), threads_(op.threads()), product_(plan_.left.columns, false) {}

  // The product's, and two segments: factors and results.
  uint64_t scratch_bytes() const override {
    return product_.scratch_bytes() + 2 * kBlockColumns * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(threads_);
    const PermutedSide &left = plan_.left, &right = plan_.right;
    for (int64_t b = 0; b < left.batch; ++b) {
      const BlockScale left_scale = LeftScale(b), right_scale = RightScale(b);
      const StoredMatrix x{left.dtype,      args.in[0],   b * left.by_batch,
                           left.transposed, left.by_line, plan_.mx ? &left_scale : nullptr};
      const StoredMatrix w{right.dtype,      args.in[1],    b * right.by_batch,
                           right.transposed, right.by_line, plan_.mx ? &right_scale : nullptr};
      const auto take = [&](const SumSegment& segment) { Store(args, b, segment); };
      NPUMESH_RETURN_IF_ERROR(product_.Run(args, left.rows, right.columns, x, w, {}, take));
    }
    return Status();
  }

 private:
  int64_t pairs() const { return plan_.left.columns / (2 * kMxBlock); }

  // x1_scale is [m, batch, pairs, 2].
  BlockScale LeftScale(int64_t b) const {
    const int64_t row = plan_.left.batch * pairs() * 2;
    return {plan_.left_scale, b * pairs() * 2, kMxBlock, 1, row, 2, 1};
  }
  // x2_scale is [batch, pairs, n, 2], or [batch, n, pairs, 2] where x2 is transposed.
  BlockScale RightScale(int64_t b) const {
    const int64_t n = plan_.right.columns, first = b * pairs() * n * 2;
    if (plan_.right.transposed) return {plan_.right_scale, first, kMxBlock, 1, pairs() * 2, 2, 1};
    return {plan_.right_scale, first, kMxBlock, 1, 2, n * 2, 1};
  }

  void Store(const KernelArgs& args, int64_t b, const SumSegment& segment) const {
    const int64_t n = plan_.right.columns;
    auto* room =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + product_.scratch_bytes());
    float* row = room + kBlockColumns;
    Dequant dequant = plan_.dequant;
    if (dequant.after.count() > n) dequant.after = dequant.after.Part(b, plan_.left.batch);
    dequant.Apply(args, segment, room, row);
    for (int64_t i = 0; plan_.out_scale.given() && i < segment.count; ++i) {
      const bool shared = plan_.out_scale.count() == 1;
      row[i] *= plan_.out_scale.At(args, shared ? 0 : b * n + segment.first + i);
    }
    const ResultPlace& place = plan_.place;
    const int64_t first = place.Element(b, segment.row, segment.first);
    if (place.by_column == 1) {
      StoreNumbers(plan_.y_dtype, row, args.out[0], first, segment.count);
      return;
    }
    for (int64_t i = 0; i < segment.count; ++i) {
      StoreNumbers(plan_.y_dtype, row + i, args.out[0], first + i * place.by_column, 1);
    }
  }

  TransposePlan plan_;
  int threads_;
  BlockedProduct product_;
};

Result<std::unique_ptr<Kernel>> MakeTranspose(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(TransposePlan plan, PlanOf(op));
  return std::unique_ptr<Kernel>(std::make_unique<TransposeKernel>(op, std::move(plan)));
}

AttrValue Ints(std::vector<int64_t> values) {
  return AttrValue::Ints(std::move(values));
}

}  // namespace

void RegisterTransposeMatmulOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add({.schema = {"TransposeBatchMatMul",
                           {{"x1"}, {"x2"}, optional("bias"), optional("scale")},
                           {{"y"}},
                           {{"perm_x1", Ints({})},
                            {"perm_x2", Ints({})},
                            {"perm_y", Ints({})},
                            {"enable_hf32", AttrValue::Bool(false)},
                            {"batch_split_factor", AttrValue::Int(1)}}},
                .infer = InferTranspose,
                .make_kernel = MakeTranspose});
  registry.Add(
      {.schema = {"TransposeQuantBatchMatMul",
                  {{"x1"}, {"x2"}, optional("bias"), optional("x1_scale"), optional("x2_scale")},
                  {{"y"}},
                  {{"dtype", Required::kInt},
                   {"group_size", AttrValue::Int(0)},
                   {"perm_x1", Ints({1, 0, 2})},
                   {"perm_x2", Ints({0, 1, 2})},
                   {"perm_y", Ints({1, 0, 2})},
                   {"batch_split_factor", AttrValue::Int(1)}}},
       .infer = InferTranspose,
       .make_kernel = MakeTranspose});
}

}  // namespace npumesh
