#include "graph/ops/toolbox/product/blocked_product.h"

#include <algorithm>

namespace npumesh {
namespace {

constexpr int64_t kBlockRows = 128;
constexpr int64_t kSums = kBlockRows * kBlockColumns;

// `lines` lines of `width` elements, `stride` apart, from element `first` of the matrix on.
void LoadLines(const StoredMatrix& matrix, int64_t first, int64_t lines, int64_t width,
               int64_t stride, float* to) {
  if (stride == width) {
    LoadNumbers(matrix.dtype, matrix.data, matrix.first + first, lines * width, to);
    return;
  }
  for (int64_t i = 0; i < lines; ++i) {
    LoadNumbers(matrix.dtype, matrix.data, matrix.first + first + i * stride, width,
                to + i * width);
  }
}

// row = (row + offset) * scale with one factor for each element, `stride` apart (0: the same).
void ScaleRow(const KernelArgs& args, const WeightScale& scale, int64_t index, int64_t stride,
              int64_t count, float* row) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = index + i * stride;
    const float offset = scale.offset.given() ? scale.offset.At(args, at) : 0.0f;
    row[i] = (row[i] + offset) * scale.scale.At(args, at);
  }
}

// The same where the factors of many rows are equal: loaded once.
class ColumnScale {
 public:
  void Load(const KernelArgs& args, const WeightScale& scale, int64_t index, int64_t count) {
    const int64_t factors = scale.by_column == 0 ? 1 : count;
    scale.scale.Load(args, index, factors, scale_);
    if (scale.offset.given()) scale.offset.Load(args, index, factors, offset_);
    shared_ = scale.by_column == 0;
    shifts_ = scale.offset.given();
  }
  void Apply(int64_t count, float* row) const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = shared_ ? 0 : i;
      row[i] = (row[i] + (shifts_ ? offset_[at] : 0.0f)) * scale_[at];
    }
  }

 private:
  float scale_[kBlockColumns];
  float offset_[kBlockColumns];
  bool shared_ = false, shifts_ = false;
};

}  // namespace

uint64_t BlockedProduct::scratch_bytes() const {
  const int64_t floats = (kBlockRows + kBlockColumns) * k_ + 2 * kSums;
  return static_cast<uint64_t>(floats) * sizeof(float);
}

void BlockedProduct::LoadLeft(const KernelArgs& args, const StoredMatrix& x, int64_t m,
                              int64_t first, int64_t count, float* to) const {
  if (x.transposed) {
    const int64_t stride = x.stride == 0 ? m : x.stride;
    LoadLines(x, first, k_, count, stride, to);
  } else {
    const int64_t stride = x.stride == 0 ? k_ : x.stride;
    LoadLines(x, first * stride, count, k_, stride, to);
  }
  if (x.scale == nullptr) return;
  const int64_t by_row = x.transposed ? 1 : k_;
  x.scale->Apply(args, first, count, k_, by_row, x.transposed ? count : 1, to);
}

void BlockedProduct::LoadRight(const KernelArgs& args, const StoredMatrix& w,
                               const WeightScale& scale, int64_t n, int64_t first, int64_t count,
                               float* to) const {
  const int64_t rows = scale.rows == 0 ? std::max<int64_t>(k_, 1) : scale.rows;
  if (w.transposed) {
    const int64_t stride = w.stride == 0 ? k_ : w.stride;
    LoadLines(w, first * stride, count, k_, stride, to);
    if (w.scale != nullptr) w.scale->Apply(args, first, count, k_, k_, 1, to);
    for (int64_t j = 0; scale.scale.given() && j < count; ++j) {
      for (int64_t i = 0; i < k_; i += rows) {
        const int64_t index =
            scale.first + i / rows * scale.by_rows + (first + j) * scale.by_column;
        ScaleRow(args, scale, index, 0, std::min(rows, k_ - i), to + j * k_ + i);
      }
    }
    return;
  }
  LoadLines(w, first, k_, count, w.stride == 0 ? n : w.stride, to);
  if (w.scale != nullptr) w.scale->Apply(args, first, count, k_, 1, count, to);
  ColumnScale columns;
  for (int64_t i = 0; scale.scale.given() && i < k_; ++i, to += count) {
    const int64_t index = scale.first + i / rows * scale.by_rows + first * scale.by_column;
    if (scale.by_column > 1) {
      ScaleRow(args, scale, index, scale.by_column, count, to);
      continue;
    }
    if (i % rows == 0) columns.Load(args, scale, index, count);
    columns.Apply(count, to);
  }
}

Status BlockedProduct::Run(const KernelArgs& args, int64_t m, int64_t n, const StoredMatrix& x,
                           const StoredMatrix& w, const WeightScale& scale,
                           const TakeSums& take) const {
  auto* left = static_cast<float*>(args.scratch);
  float* right = left + kBlockRows * k_;
  float* sums = right + kBlockColumns * k_;
  auto* integers = reinterpret_cast<int32_t*>(sums + kSums);
  for (int64_t first = 0; first < n; first += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, n - first);
    LoadRight(args, w, scale, n, first, columns, right);
    const FloatMatrix b = {right, w.transposed ? k_ : columns, w.transposed};
    for (int64_t top = 0; top < m; top += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, m - top);
      LoadLeft(args, x, m, top, rows, left);
      const FloatMatrix a = {left, x.transposed ? rows : k_, x.transposed};
      if (integers_) {
        NPUMESH_RETURN_IF_ERROR(MultiplyIntegers(rows, columns, k_, a, b, sums, integers));
      } else {
        NPUMESH_RETURN_IF_ERROR(Multiply(rows, columns, k_, a, b, false, sums, columns));
      }
      for (int64_t r = 0; r < rows; ++r) {
        take({top + r, first, columns, integers_ ? integers + r * columns : nullptr,
              integers_ ? nullptr : sums + r * columns});
      }
    }
  }
  return Status();
}

void Dequant::Apply(const KernelArgs& args, const SumSegment& segment, float* room,
                    float* to) const {
  // Loads the factors of the segment into `room`; returns the step between them.
  const auto load = [&](const Factors& from) -> int64_t {
    const bool shared = from.count() == 1;
    from.Load(args, shared ? 0 : segment.first, shared ? 1 : segment.count, room);
    return shared ? 0 : 1;
  };
  const int64_t n = segment.count;
  if (segment.integers == nullptr) {
    std::copy_n(segment.floats, n, to);
    const int64_t step = before.given() ? load(before) : 0;
    for (int64_t i = 0; before.given() && i < n; ++i) to[i] += room[i * step];
  } else {
    auto* sums = reinterpret_cast<int32_t*>(room);
    AddIntegers(args, segment, sums);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(sums[i]);
  }
  if (scale.given()) {
    const int64_t step = load(scale);
    for (int64_t i = 0; i < n; ++i) to[i] *= room[i * step];
    for (int64_t i = 0; twice && i < n; ++i) to[i] *= room[i * step];
  }
  if (row_scale.given()) {
    const float factor = row_scale.For(args, segment.row, 1.0f);
    for (int64_t i = 0; i < n; ++i) to[i] *= factor;
  }
  if (after.given()) {
    const int64_t step = load(after);
    for (int64_t i = 0; i < n; ++i) to[i] += room[i * step];
  }
  for (int64_t i = 0; relu && i < n; ++i) to[i] = to[i] < 0 ? 0.0f : to[i];
}

void Dequant::AddIntegers(const KernelArgs& args, const SumSegment& segment, int32_t* to) const {
  std::copy_n(segment.integers, segment.count, to);
  if (!before.given()) return;
  const auto* bias = static_cast<const uint32_t*>(args.in[before.slot()]) + before.first();
  const int64_t step = before.count() == 1 ? 0 : 1;
  for (int64_t i = 0; i < segment.count; ++i) {
    const uint32_t shift = bias[(segment.first + i) * step];
    to[i] = static_cast<int32_t>(static_cast<uint32_t>(to[i]) + shift);
  }
}

Dequant Dequant::Part(int64_t index, int64_t parts) const {
  Dequant part = *this;
  for (Factors* factors : {&part.before, &part.scale, &part.after}) {
    if (factors->count() > 1) *factors = factors->Part(index, parts);
  }
  return part;
}

Status CheckFactors(const OpContext& op, const Factors& factors, std::string_view port,
                    int64_t count) {
  if (!factors.given() || factors.count() == 1 || factors.count() == count) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" has {} elements, expected 1 or {}", op.Who(),
               port, factors.count(), count);
}

Status ReadBias(const OpContext& op, std::string_view port, Dequant& dequant) {
  NPUMESH_ASSIGN_OR_RETURN(const Factors bias, Factors::Of(op, port));
  if (!bias.given()) return Status();
  (bias.dtype() == DataType::kInt32 ? dequant.before : dequant.after) = bias;
  return Status();
}

}  // namespace npumesh
