// TensorDistance: how far two tensors are apart, element by element, and whether that is allowed.
#ifndef NPUMESH_GRAPH_COMPARE_MEASURES_DISTANCE_H_
#define NPUMESH_GRAPH_COMPARE_MEASURES_DISTANCE_H_

#include <cstdint>
#include <functional>
#include <string>

#include "graph/compare/sources/tensor_source.h"
#include "graph/ir/tensor.h"

namespace npumesh {

// x may stand for y when |x - y| <= absolute + relative * |y| + of_peak * max|y|. All zero: x == y.
// NaN stands for NaN, an infinity for itself; integers and booleans must always be equal.
struct Allowance {
  double absolute = 0;
  double relative = 0;
  double of_peak = 0;
};

// What sums of the same numbers in another order may differ by, as a part of the largest value:
// float64 1e-10, float32 1e-4, float16 2e-2, bfloat16 1e-1.
Allowance ReorderAllowance(DataType dtype);

struct TensorDistance {
  // Set when elements were not compared: dtype or shape differ, or only statistics are there, and
  // those differ.
  std::string reason;
  int64_t differing = 0;  // elements outside the allowance
  int64_t first = -1;     // the first of them, in C order
  double max_abs = 0;     // largest |x - y| where both are finite
  int64_t where = 0;      // of max_abs
  // Largest number of representable values between x and y, in the coarser of both floating types;
  // 0 for other types, and where x or y is NaN.
  uint64_t max_ulp = 0;
  int64_t nan_x = 0, nan_y = 0;  // number of NaNs
  int64_t inf_x = 0, inf_y = 0;  // and of infinities

  bool same() const { return reason.empty() && differing == 0; }
};

// float32 and the type a tensor is converted to for NumPy (float32 of bfloat16 and of 8-bit floats,
// uint8 of bool) are compared by value.
TensorDistance DistanceOf(const Tensor& x, const Tensor& y, const Allowance& allowance = {});

// What statistics say: `reason` names each number outside the allowance, "Max 4.41 against 4.91",
// and the checksum if only it differs, which no allowance forgives but one that is not zero.
// Numbers that one side lacks say nothing.
TensorDistance DistanceOf(const DumpedStatistics& x, const DumpedStatistics& y,
                          const Allowance& allowance = {});

// An element outside the allowance. 64-bit integers are rounded to 53 bits.
struct DifferingElement {
  int64_t flat = 0;  // in C order
  double x = 0;
  double y = 0;
};

// Calls `visit` for each element that DistanceOf counts as differing, in C order. Never for tensors
// that cannot be compared, and for dtypes without numbers.
void VisitDiffering(const Tensor& x, const Tensor& y, const Allowance& allowance,
                    const std::function<void(const DifferingElement&)>& visit);

// "17 ULP"; of numbers so far apart that counting says nothing "more than 65536 ULP".
std::string UlpText(uint64_t ulp);

// "[1,0,3]": the element at `flat` in C order.
std::string PositionText(int64_t flat, const Shape& shape);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_MEASURES_DISTANCE_H_
