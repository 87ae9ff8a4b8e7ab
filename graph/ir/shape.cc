#include "graph/ir/shape.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

namespace npumesh {

bool Shape::is_static() const {
  return std::all_of(dims_.begin(), dims_.end(), [](int64_t dim) { return dim >= 0; });
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int64_t dim : dims_) product *= dim;
  return product;
}

Status Shape::Check() const {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max() / 16;  // widest element: 16 bytes
  int64_t product = 1;
  for (int64_t dim : dims_) {
    if (dim < kUnknownRankDim || (dim == kUnknownRankDim && dims_.size() != 1)) {
      return Error(Code::kInvalidArgument, "dimension {} in shape {}; expected -1 or more", dim,
                   ToString());
    }
    if (dim <= 0) continue;  // a zero does not excuse the others
    if (product > kMax / dim) {
      return Error(Code::kInvalidArgument, "shape {} has more elements than 63 bits can count",
                   ToString());
    }
    product *= dim;
  }
  return Status();
}

std::string Shape::ToString() const {
  if (!has_rank()) return "[?]";
  return fmt::format("[{}]", fmt::join(dims_, ","));
}

Result<int> NormalizeAxis(int64_t axis, int rank) {
  const int64_t positive = axis < 0 ? axis + rank : axis;
  if (positive < 0 || positive >= rank) {
    return Error(Code::kInvalidArgument, "axis {} is outside a tensor of rank {}", axis, rank);
  }
  return static_cast<int>(positive);
}

Result<Shape> Broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<int64_t> dims(static_cast<size_t>(rank));
  for (int i = 0; i < rank; ++i) {  // from the right
    const int64_t x = i < a.rank() ? a[a.rank() - 1 - i] : 1;
    const int64_t y = i < b.rank() ? b[b.rank() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      return Error(Code::kInvalidArgument, "shapes {} and {} do not broadcast", a.ToString(),
                   b.ToString());
    }
    dims[static_cast<size_t>(rank - 1 - i)] = x == 1 ? y : x;
  }
  return Shape(std::move(dims));
}

uint64_t TensorType::bytes() const {
  return BytesOf(dtype, static_cast<uint64_t>(shape.elements())).value_or(0);
}

std::string TensorType::ToString() const {
  return fmt::format("{}{}", Name(dtype), shape.ToString());
}

}  // namespace npumesh
