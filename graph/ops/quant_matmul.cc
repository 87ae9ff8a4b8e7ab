#include "graph/ops/quant_matmul.h"

#include <algorithm>

#include "graph/ops/infer_checks.h"
#include "graph/ops/int8_product.h"

namespace npumesh {
namespace {

// Number of the matrix of an operand that belongs to number `index` of the batch.
int64_t MatrixOf(const Shape& own, const Shape& batch, int64_t index) {
  int64_t matrix = 0;
  int64_t stride = 1;
  for (int i = 0; i < batch.rank(); ++i) {
    const int at = batch.rank() - 1 - i;
    const int own_at = own.rank() - 1 - i;
    const int64_t position = index % batch[at];
    index /= batch[at];
    if (own_at < 0) continue;
    if (own[own_at] != 1) matrix += position * stride;
    stride *= own[own_at];
  }
  return matrix;
}

class QuantMatmulKernel final : public Kernel {
 public:
  QuantMatmulKernel(const OpContext& op, QuantMatmul plan)
      : plan_(std::move(plan)),
        threads_(op.threads()),
        product_(plan_.left.columns, plan_.integers) {}

  // Packs int8 weights that are one constant matrix. Errors as Int8Product::Make.
  Status Prepare(const OpContext& op) {
    const Tensor* const weight = op.value(1);
    const bool plain = !plan_.left_scale.given() && !plan_.right_scale.given();
    const bool matrices = weight != nullptr && plan_.integers && plain &&
                          plan_.x_dtype == DataType::kInt8 && plan_.w_dtype == DataType::kInt8 &&
                          !plan_.transposed1 && Matrices(plan_.right.batch) == 1;
    if (!matrices) return Status();
    const int64_t rows = plan_.left.rows * Matrices(plan_.left.batch);
    if (rows != plan_.left.rows * Matrices(plan_.batch)) return Status();
    NPUMESH_ASSIGN_OR_RETURN(
        packed_, Int8Product::Make(op.Who(), *weight,
                                   {rows, plan_.right.columns, plan_.right.rows, plan_.transposed2},
                                   threads_, op.packed()));
    return Status();
  }

  bool reads(int slot) const override { return slot != 1 || packed_ == nullptr; }

  // The product's, and two segments: factors and results.
  uint64_t scratch_bytes() const override {
    return product_bytes() + 2 * kBlockColumns * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    if (packed_ != nullptr) return RunPacked(args);
    const ProductThreads threads(threads_);
    const int64_t batches = ElementsBetween(plan_.batch, 0, plan_.batch.rank());
    for (int64_t b = 0; b < batches; ++b) {
      const int64_t m = plan_.left.rows;
      const int64_t n = plan_.right.columns;
      const int64_t k = plan_.left.columns;
      const int64_t left = MatrixOf(plan_.left.batch, plan_.batch, b);
      const int64_t right = MatrixOf(plan_.right.batch, plan_.batch, b);
      BlockScale x_scale = plan_.left_scale, w_scale = plan_.right_scale;
      x_scale.first += left * plan_.left_factors;
      w_scale.first += right * plan_.right_factors;
      const StoredMatrix x{plan_.x_dtype,     args.in[0], left * m * k,
                           plan_.transposed1, 0,          x_scale.given() ? &x_scale : nullptr};
      const StoredMatrix w{plan_.w_dtype,     args.in[1], right * k * n,
                           plan_.transposed2, 0,          w_scale.given() ? &w_scale : nullptr};
      const auto take = [&](const SumSegment& segment) { Store(args, b, segment); };
      NPUMESH_RETURN_IF_ERROR(product_.Run(args, m, n, x, w, plan_.weight_scale, take));
    }
    return Status();
  }

 private:
  static int64_t Matrices(const Shape& batch) { return ElementsBetween(batch, 0, batch.rank()); }
  uint64_t product_bytes() const {
    return packed_ != nullptr ? packed_->scratch_bytes() : product_.scratch_bytes();
  }

  // All rows of all batches in one product.
  Status RunPacked(const KernelArgs& args) const {
    const int64_t n = plan_.right.columns;
    return packed_->Run(args.in[0], args.scratch, [&](int64_t row, const int32_t* sums) {
      for (int64_t first = 0; first < n; first += kBlockColumns) {
        SumSegment segment{row % plan_.left.rows, first, std::min(kBlockColumns, n - first)};
        segment.integers = sums + first;
        Store(args, row / plan_.left.rows, segment);
      }
    });
  }

  void Store(const KernelArgs& args, int64_t batch, const SumSegment& segment) const {
    const int64_t n = plan_.right.columns;
    const int64_t first = (batch * plan_.left.rows + segment.row) * n + segment.first;
    const Dequant dequant = DequantOf(batch);
    if (plan_.y_dtype == DataType::kInt32 && !dequant.row_scale.given()) {
      dequant.AddIntegers(args, segment, static_cast<int32_t*>(args.out[0]) + first);
      return;
    }
    auto* room = reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + product_bytes());
    float* row = room + kBlockColumns;
    dequant.Apply(args, segment, room, row);
    for (const auto& [factors, adds] :
         {std::pair(&plan_.out_scale, false), std::pair(&plan_.out_offset, true)}) {
      if (!factors->given()) continue;
      const bool shared = factors->count() == 1;
      factors->Load(args, shared ? 0 : segment.first, shared ? 1 : segment.count, room);
      for (int64_t i = 0; i < segment.count; ++i) {
        const float factor = room[shared ? 0 : i];
        row[i] = adds ? row[i] + factor : row[i] * factor;
      }
    }
    if (plan_.adds) {
      const float* y = static_cast<const float*>(args.out[0]) + first;
      for (int64_t i = 0; i < segment.count; ++i) row[i] += y[i];
    }
    StoreNumbers(plan_.y_dtype, row, args.out[0], first, segment.count);
  }

  // A bias may have a row for each matrix of the batch.
  Dequant DequantOf(int64_t batch) const {
    Dequant dequant = plan_.dequant;
    const int64_t batches = ElementsBetween(plan_.batch, 0, plan_.batch.rank());
    for (Factors* bias : {&dequant.before, &dequant.after}) {
      if (bias->count() > plan_.right.columns) *bias = bias->Part(batch, batches);
    }
    return dequant;
  }

  QuantMatmul plan_;
  int threads_;
  BlockedProduct product_;
  std::unique_ptr<Int8Product> packed_;  // null: the weights are read in each run
};

}  // namespace

Result<MatmulSide> SideOf(const OpContext& op, std::string_view port, bool transposed) {
  const TensorType& type = op.in(port);
  Shape shape = type.shape;
  if (shape.rank() < 2) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected a matrix", op.Who(), port,
                 type.ToString());
  }
  if (type.dtype == DataType::kInt32) shape.mutable_dims().back() *= 8;
  MatmulSide side;
  side.rows = shape[shape.rank() - 2];
  side.columns = shape[shape.rank() - 1];
  if (transposed) std::swap(side.rows, side.columns);
  side.batch = Shape(std::vector<int64_t>(shape.dims().begin(), shape.dims().end() - 2));
  return side;
}

Status JoinSides(const OpContext& op, QuantMatmul& plan) {
  Result<Shape> batch = Broadcast(plan.left.batch, plan.right.batch);
  if (!batch.ok() || plan.left.columns != plan.right.rows) {
    return Error(Code::kInvalidArgument, "{}: {}{} and {}{} cannot be multiplied", op.Who(),
                 op.in(0).ToString(), plan.transposed1 ? " transposed" : "", op.in(1).ToString(),
                 plan.transposed2 ? " transposed" : "");
  }
  plan.batch = *batch;
  return Status();
}

Status CheckBias(const OpContext& op, const QuantMatmul& plan) {
  const int64_t columns = plan.right.columns;
  for (const Factors& bias : {plan.dequant.before, plan.dequant.after}) {
    const int64_t batches = ElementsBetween(plan.batch, 0, plan.batch.rank());
    if (!bias.given() || bias.count() == columns || bias.count() == columns * batches) continue;
    return Error(Code::kInvalidArgument, "{}: bias has {} elements, expected {} for each batch",
                 op.Who(), bias.count(), columns);
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeQuantMatmulKernel(const OpContext& op, QuantMatmul plan) {
  auto kernel = std::make_unique<QuantMatmulKernel>(op, std::move(plan));
  NPUMESH_RETURN_IF_ERROR(kernel->Prepare(op));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

}  // namespace npumesh
