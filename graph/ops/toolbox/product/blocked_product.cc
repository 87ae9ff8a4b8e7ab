#include "graph/ops/toolbox/product/blocked_product.h"

#include <algorithm>

#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

constexpr int64_t kBlockRows = 128;
constexpr int64_t kSums = kBlockRows * kBlockColumns;

// Lines of a matrix, or elements of a line.
struct Part {
  int64_t first = 0, count = 0;
};

// Some elements of some lines as stored. `width`: elements from line to line, unless the matrix has
// a stride.
void LoadLines(const StoredMatrix& matrix, int64_t width, Part lines, Part elements, float* to) {
  const int64_t stride = matrix.stride == 0 ? width : matrix.stride;
  const int64_t first = matrix.first + lines.first * stride + elements.first;
  const int64_t count = elements.count;
  if (stride == count) {
    return LoadNumbers(matrix.dtype, matrix.data, first, lines.count * count, to);
  }
  for (int64_t i = 0; i < lines.count; ++i) {
    LoadNumbers(matrix.dtype, matrix.data, first + i * stride, count, to + i * count);
  }
}

// row = (row + offset) * scale, with a factor for each element or one for all.
class RowFactors {
 public:
  void Load(const KernelArgs& args, const WeightScale& scale, int64_t index, int64_t factors) {
    shared_ = factors == 1;
    shifts_ = scale.offset.given();
    scale.scale.Load(args, index, factors, scale_);
    if (shifts_) scale.offset.Load(args, index, factors, offset_);
  }
  void Apply(int64_t count, float* row) const {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t at = shared_ ? 0 : i;
      row[i] = (shifts_ ? row[i] + offset_[at] : row[i]) * scale_[at];
    }
  }

 private:
  float scale_[kBlockColumns];
  float offset_[kBlockColumns];
  bool shared_ = false, shifts_ = false;
};

// `rows` of x[m, k].
void LoadLeft(const KernelArgs& args, const StoredMatrix& x, int64_t m, int64_t k, Part rows,
              float* to) {
  x.transposed ? LoadLines(x, m, {0, k}, rows, to) : LoadLines(x, k, rows, {0, k}, to);
  if (x.scale == nullptr) return;
  const int64_t by_row = x.transposed ? 1 : k, by_element = x.transposed ? rows.count : 1;
  x.scale->Apply(args, rows.first, rows.count, k, by_row, by_element, to);
}

// `columns` of w[k, n], dequantised.
void LoadRight(const KernelArgs& args, const StoredMatrix& w, const WeightScale& scale, int64_t n,
               int64_t k, Part columns, float* to) {
  const auto [first, count] = columns;
  w.transposed ? LoadLines(w, k, columns, {0, k}, to) : LoadLines(w, n, {0, k}, columns, to);
  const int64_t by_column = w.transposed ? k : 1, by_element = w.transposed ? 1 : count;
  if (w.scale != nullptr) w.scale->Apply(args, first, count, k, by_column, by_element, to);
  if (!scale.scale.given() || scale.scales_sums()) return;
  const int64_t rows = scale.rows == 0 ? std::max<int64_t>(k, 1) : scale.rows;
  RowFactors factors;
  for (int64_t j = 0; w.transposed && j < count; ++j) {
    for (int64_t i = 0; i < k; i += rows) {
      factors.Load(args, scale, scale.IndexOf(i / rows, first + j), 1);
      factors.Apply(std::min(rows, k - i), to + j * k + i);
    }
  }
  const int64_t own = scale.by_column == 0 ? 1 : count;
  for (int64_t i = 0; !w.transposed && i < k; ++i, to += count) {
    if (i % rows == 0) factors.Load(args, scale, scale.IndexOf(i / rows, first), own);
    factors.Apply(count, to);
  }
}

}  // namespace

WeightScale WeightScaleOf(Check& check, const OpContext& op, int64_t k, int64_t n,
                          bool transposed) {
  WeightScale weights;
  weights.scale = check.Take(Factors::Of(op, "antiquant_scale"));
  weights.offset = check.Take(Factors::Of(op, "antiquant_offset"));
  const int64_t group = op.attr_int("antiquant_group_size");
  const int64_t groups = group > 0 ? CeilDiv(k, group) : 1;
  const int64_t scales = weights.scale.count(), offsets = weights.offset.count();
  weights.rows = std::max<int64_t>(group, 0);
  if (scales != 1) {
    weights.by_column = transposed ? groups : 1;
    weights.by_rows = transposed ? 1 : n;
  }
  check.That(group >= 0 && (offsets == 0 || offsets == scales) && weights.scale.given() &&
                 (scales == 1 || scales == groups * n),
             "{} antiquant scales and {} offsets with group size {} for weights of {} x {}; "
             "expected 1 or {} x {}",
             scales, offsets, group, k, n, groups, n);
  return weights;
}

uint64_t BlockedProduct::scratch_bytes() const {
  const int64_t floats = (kBlockRows + kBlockColumns) * k_ + 2 * kSums;
  return static_cast<uint64_t>(floats) * sizeof(float);
}

Status BlockedProduct::Run(const KernelArgs& args, int64_t m, int64_t n, const StoredMatrix& x,
                           const StoredMatrix& w, const WeightScale& scale,
                           const TakeSums& take) const {
  auto* left = static_cast<float*>(args.scratch);
  float* right = left + kBlockRows * k_;
  float* sums = right + kBlockColumns * k_;
  auto* integers = reinterpret_cast<int32_t*>(sums + kSums);
  RowFactors of_sums;
  for (int64_t first = 0; first < n; first += kBlockColumns) {
    const int64_t columns = std::min(kBlockColumns, n - first);
    if (scale.scales_sums()) {
      of_sums.Load(args, scale, scale.IndexOf(0, first), scale.by_column == 0 ? 1 : columns);
    }
    LoadRight(args, w, scale, n, k_, {first, columns}, right);
    const FloatMatrix b = {right, w.transposed ? k_ : columns, w.transposed};
    for (int64_t top = 0; top < m; top += kBlockRows) {
      const int64_t rows = std::min(kBlockRows, m - top);
      LoadLeft(args, x, m, k_, {top, rows}, left);
      const FloatMatrix a = {left, x.transposed ? rows : k_, x.transposed};
      if (integers_) {
        NPUMESH_RETURN_IF_ERROR(MultiplyIntegers(rows, columns, k_, a, b, sums, integers));
      } else {
        NPUMESH_RETURN_IF_ERROR(Multiply(rows, columns, k_, a, b, false, sums, columns));
      }
      for (int64_t r = 0; r < rows; ++r) {
        if (scale.scales_sums()) of_sums.Apply(columns, sums + r * columns);
        take({top + r, first, columns, integers_ ? integers + r * columns : nullptr,
              integers_ ? nullptr : sums + r * columns});
      }
    }
  }
  return Status();
}

void Dequant::Apply(const KernelArgs& args, const SumSegment& segment, float* room,
                    float* to) const {
  const int64_t n = segment.count;
  if (segment.integers == nullptr) {
    if (to != segment.floats) std::copy_n(segment.floats, n, to);
    ScaleColumns(args, {}, before, segment.first, n, room, to);
  } else {
    auto* sums = reinterpret_cast<int32_t*>(room);
    AddIntegers(args, segment, sums);
    for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(sums[i]);
  }
  ScaleColumns(args, scale, {}, segment.first, n, room, to);
  if (twice) ScaleColumns(args, scale, {}, segment.first, n, room, to);
  if (row_scale.given()) ScaleRow(to, row_scale.For(args, segment.row, 1.0f), n, to);
  ScaleColumns(args, {}, after, segment.first, n, room, to);
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

void ReadBias(Check& check, const OpContext& op, Dequant& dequant,
              std::initializer_list<int64_t> counts) {
  const Factors bias = check.Take(Factors::Of(op, "bias"));
  if (!bias.given()) return;
  (bias.dtype() == DataType::kInt32 ? dequant.before : dequant.after) = bias;
  if (counts.size() > 0) check.Elements("bias", counts);
}

}  // namespace npumesh
