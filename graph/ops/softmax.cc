// SoftmaxV2: exp(x - max) / sum over the axes. Ops reference 5.7.
//
// Rows are computed in float32 (double for double) and rounded once. Axes that are not the last
// ones are first brought to the end by a transposition into scratch.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/op_families.h"
#include "graph/ops/strided_copy.h"

namespace npumesh {
namespace {

// e^x for x <= 0, good to 1 unit in the last place; NaN stays NaN, results below 2^-150 are 0.
// Without branches, so that the loop around it becomes vector code, and without fused operations,
// so that every processor gives the same bits.
//
// x = k ln 2 + r with |r| <= ln(2) / 2; e^r is its Taylor polynomial, whose first dropped term is
// below 2^-27 of the result; 2^k is applied in two factors because k goes down to -150, past the
// exponents of normal numbers.
inline float ExpOfNonPositive(float x) {
  constexpr float kRounder = 0x1.8p23f;    // adding it leaves the integer part in the low bits
  constexpr float kLn2High = 0x1.62ep-1f;  // 12 bits: its product with k is exact
  constexpr float kLn2Low = 0x1.0bfbe8p-15f;
  x = x < -104.0f ? -104.0f : x;
  const float shifted = x * 0x1.715476p+0f + kRounder;
  const float k = shifted - kRounder;
  const float r = (x - k * kLn2High) - k * kLn2Low;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r * r + r + 1.0f;
  const auto exponent =
      static_cast<int32_t>(std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRounder));
  const int32_t half = exponent >> 1;
  const float first = std::bit_cast<float>((half + 127) << 23);
  const float second = std::bit_cast<float>((exponent - half + 127) << 23);
  return p * first * second;
}

// The largest element; lanes for the same reason as in BlockedSum. A NaN may be missed here: it
// stays in the exponentials and spoils the sum, as it should.
float MaxOf(const float* x, int64_t count) {
  constexpr int64_t kLanes = 16;
  std::array<float, kLanes> lanes;
  lanes.fill(-std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      float& most = lanes[static_cast<size_t>(lane)];
      most = most < x[i + lane] ? x[i + lane] : most;
    }
  }
  for (; i < count; ++i) lanes[0] = std::max(lanes[0], x[i]);
  return *std::max_element(lanes.begin(), lanes.end());
}

// A row of nothing but -inf gives NaN, since -inf - -inf is.
void SoftmaxRow(const float* x, int64_t count, float* y) {
  const float most = MaxOf(x, count);
  for (int64_t i = 0; i < count; ++i) y[i] = ExpOfNonPositive(x[i] - most);
  const double sum = BlockedSum(y, count, [](float v) { return v; });
  const auto scale = static_cast<float>(1.0 / sum);
  for (int64_t i = 0; i < count; ++i) y[i] *= scale;
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
