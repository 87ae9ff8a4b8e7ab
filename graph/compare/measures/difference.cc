#include "graph/compare/measures/difference.h"

#include <algorithm>

namespace npumesh {
namespace {

void Extend(DifferingRange& range, int64_t index) {
  if (range.last < range.first) range = {index, index};
  range.first = std::min(range.first, index);
  range.last = std::max(range.last, index);
}

// An empty map of a tensor's matrix.
TensorDifference MatrixOf(const Shape& shape) {
  TensorDifference difference;
  difference.columns = shape.rank() == 0 ? 1 : std::max<int64_t>(shape[shape.rank() - 1], 1);
  difference.rows = shape.elements() / difference.columns;
  difference.map_rows = std::min(difference.rows, kMostCells);
  difference.map_columns = std::min(difference.columns, kMostCells);
  return difference;
}

void Count(const DifferingElement& element, TensorDifference& difference) {
  if (difference.samples.size() < kMostSamples) {
    difference.samples.push_back({element.flat, element.x, element.y});
  }
  const int64_t row = element.flat / difference.columns;
  const int64_t column = element.flat % difference.columns;
  Extend(difference.in_rows, row);
  Extend(difference.in_columns, column);
  if (difference.map.empty()) {
    difference.map.resize(static_cast<size_t>(difference.map_rows * difference.map_columns));
  }
  const int64_t cell = row * difference.map_rows / difference.rows * difference.map_columns +
                       column * difference.map_columns / difference.columns;
  ++difference.map[static_cast<size_t>(cell)];
}

}  // namespace

TensorDifference DifferenceOf(const Tensor& mine, const Tensor& golden,
                              const Allowance& allowance) {
  TensorDifference difference = MatrixOf(mine.shape());
  VisitDiffering(mine, golden, allowance,
                 [&](const DifferingElement& element) { Count(element, difference); });
  return difference;
}

}  // namespace npumesh
