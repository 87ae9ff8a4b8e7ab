// SoftmaxV2: exp(x - max) / sum over the axes. Ops reference 5.7.
//
// Rows are computed in float32 (double for double) and rounded once. Axes that are not the last
// ones are first brought to the end by a transposition into scratch.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/row_math.h"
#include "graph/ops/strided_copy.h"

namespace npumesh {
namespace {

// A row of nothing but -inf gives NaN, since -inf - -inf is.
void SoftmaxRow(const float* x, int64_t count, float* y) {
  ExponentialsOfRow(x, LargestInRow(x, count), count, y);
  ScaleRow(y, static_cast<float>(1.0 / SumOfRow(y, count)), count, y);
}

void SoftmaxRow(const double* x, int64_t count, double* y) {
  const double most = *std::max_element(x, x + count);
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    y[i] = std::exp(x[i] - most);
    sum += y[i];
  }
  for (int64_t i = 0; i < count; ++i) y[i] /= sum;
}

// Dimensions of x in an order in which the normalised ones come last.
struct AxisOrder {
  std::vector<int> order;
  int normalized = 0;  // how many of them
  bool moved = false;  // the order is not the one of x
};

Result<AxisOrder> OrderOf(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  std::vector<bool> chosen(static_cast<size_t>(x.rank()), false);
  const std::vector<int64_t> axes = op.attr_ints("axes");
  // A scalar is one row of one element.
  const bool scalar = x.rank() == 0 && std::all_of(axes.begin(), axes.end(), [](int64_t axis) {
                        return axis == 0 || axis == -1;
                      });
  for (const int64_t listed : scalar ? std::vector<int64_t>() : axes) {
    NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, listed, x.rank(), "axes"));
    chosen[static_cast<size_t>(axis)] = true;
  }
  AxisOrder result;
  result.order.resize(chosen.size());
  std::iota(result.order.begin(), result.order.end(), 0);
  const auto kept = [&](int axis) { return !chosen[static_cast<size_t>(axis)]; };
  const auto split = std::stable_partition(result.order.begin(), result.order.end(), kept);
  result.normalized = static_cast<int>(result.order.end() - split);
  result.moved = !std::is_sorted(result.order.begin(), result.order.end());
  return result;
}

Status InferSoftmax(OpContext& op) {
  const TensorType& x = op.in("x");
  if (!IsRowType(x.dtype) && x.dtype != DataType::kDouble) {
    return Error(Code::kUnsupported, "{}: x is {}, expected a floating type", op.Who(),
                 Name(x.dtype));
  }
  NPUMESH_RETURN_IF_ERROR(OrderOf(op).status());
  const bool widens = op.attr_bool("half_to_float") && x.dtype == DataType::kFloat16;
  return SetOutput(op, 0, widens ? DataType::kFloat : x.dtype, x.shape);
}

class SoftmaxKernel final : public Kernel {
 public:
  SoftmaxKernel(const OpContext& op, const AxisOrder& axes)
      : from_(op.in("x").dtype), to_(op.out(0).dtype), moved_(axes.moved) {
    const Shape& x = op.in("x").shape;
    for (size_t i = 0; i < axes.order.size(); ++i) {
      const bool normalized = i + static_cast<size_t>(axes.normalized) >= axes.order.size();
      (normalized ? columns_ : rows_) *= x[axes.order[i]];
    }
    if (!moved_) return;
    gather_ = StridedCopy(Moves(x, axes, ElementSize(from_), true), ElementSize(from_));
    scatter_ = StridedCopy(Moves(x, axes, ElementSize(to_), false), ElementSize(to_));
  }

  // Two rows of floats, then x and y with the normalised dimensions last.
  uint64_t scratch_bytes() const override {
    return moved_ ? MovedOffset() + elements() * (ElementSize(from_) + ElementSize(to_))
                  : MovedOffset();
  }

  Status Run(const KernelArgs& args) override {
    auto* scratch = static_cast<std::byte*>(args.scratch);
    if (!moved_) {
      RunRows(args.in[0], args.out[0], scratch);
      return Status();
    }
    std::byte* y = scratch + MovedOffset();
    std::byte* x = y + elements() * ElementSize(to_);
    gather_.Run(args.in[0], x);
    RunRows(x, y, scratch);
    scatter_.Run(y, args.out[0]);
    return Status();
  }

 private:
  static size_t ElementSize(DataType dtype) { return static_cast<size_t>(BitsOf(dtype)) / 8; }
  uint64_t elements() const { return static_cast<uint64_t>(rows_ * columns_); }
  uint64_t MovedOffset() const {
    return (2 * static_cast<uint64_t>(columns_) * sizeof(float) + 63) / 64 * 64;
  }

  // The copy between x and its transposition.
  static std::vector<CopyAxis> Moves(const Shape& x, const AxisOrder& axes, size_t element,
                                     bool forward) {
    const std::vector<int64_t> strides = ByteStrides(x, element);
    std::vector<CopyAxis> moves(axes.order.size());
    auto packed = static_cast<int64_t>(element);
    for (size_t i = axes.order.size(); i-- > 0;) {
      const int64_t stride = strides[static_cast<size_t>(axes.order[i])];
      const int64_t extent = x[axes.order[i]];
      moves[i] = forward ? CopyAxis{extent, stride, packed} : CopyAxis{extent, packed, stride};
      packed *= extent;
    }
    return moves;
  }

  void RunRows(const void* x, void* y, std::byte* scratch) const {
    if (elements() == 0) return;
    auto* room = reinterpret_cast<float*>(scratch);
    for (int64_t r = 0; r < rows_; ++r) {
      const int64_t first = r * columns_;
      if (from_ == DataType::kDouble) {
        SoftmaxRow(static_cast<const double*>(x) + first, columns_,
                   static_cast<double*>(y) + first);
        continue;
      }
      const float* row = LoadRow(from_, x, first, columns_, room);
      SoftmaxRow(row, columns_, room + columns_);
      StoreRow(to_, room + columns_, y, first, columns_);
    }
  }

  DataType from_;
  DataType to_;
  bool moved_;
  int64_t rows_ = 1;
  int64_t columns_ = 1;
  StridedCopy gather_;
  StridedCopy scatter_;
};

Result<std::unique_ptr<Kernel>> MakeSoftmax(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const AxisOrder axes, OrderOf(op));
  return std::unique_ptr<Kernel>(std::make_unique<SoftmaxKernel>(op, axes));
}

}  // namespace

void RegisterSoftmaxOps(OpRegistry& registry) {
  registry.Add(
      {.schema = {"SoftmaxV2",
                  {{"x"}},
                  {{"y"}},
                  {{"axes", AttrValue::Ints({-1})}, {"half_to_float", AttrValue::Bool(false)}}},
       .infer = InferSoftmax,
       .make_kernel = MakeSoftmax});
}

}  // namespace npumesh
