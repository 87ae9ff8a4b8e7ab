// TensorDifference: where in a tensor two values part, for a person who looks for the reason: the
// first elements that differ, and a coarse map of all of them. Its size does not grow with the
// tensor.
#ifndef NPUMESH_GRAPH_COMPARE_MEASURES_DIFFERENCE_H_
#define NPUMESH_GRAPH_COMPARE_MEASURES_DIFFERENCE_H_

#include <cstdint>
#include <vector>

#include "graph/compare/measures/distance.h"

namespace npumesh {

inline constexpr size_t kMostSamples = 8;
inline constexpr int64_t kMostCells = 32;  // of the map along one side

struct DifferenceSample {
  int64_t flat = 0;  // in C order
  double mine = 0;
  double golden = 0;
};

// First and last of the indexes at which something differs.
struct DifferingRange {
  int64_t first = 0;
  int64_t last = -1;  // below `first`: nothing differs
};

// The tensor is seen as a matrix: the last axis is its columns, all axes before it are its rows. A
// cell of the map holds the rows i with i * map_rows / rows == the cell's, and columns likewise.
struct TensorDifference {
  std::vector<DifferenceSample> samples;  // the first kMostSamples in C order
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t map_rows = 0;  // at most kMostCells
  int64_t map_columns = 0;
  std::vector<int64_t> map;  // elements that differ, by cell, row after row; empty: no map
  DifferingRange in_rows;
  DifferingRange in_columns;
};

// Of the elements that DistanceOf counts. Empty when dtype or shape forbid a comparison, and for
// dtypes without numbers.
TensorDifference DifferenceOf(const Tensor& mine, const Tensor& golden,
                              const Allowance& allowance = {});

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_MEASURES_DIFFERENCE_H_
