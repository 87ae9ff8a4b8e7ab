// Comparing a tensor with its golden value.
//
// A value v matches a golden g when |v - g| <= atol + rtol * |g|; NaN matches NaN, an infinity
// matches itself, and integers and booleans must be equal.
#ifndef NPUMESH_LAUNCH_RUN_TENSOR_CHECK_H_
#define NPUMESH_LAUNCH_RUN_TENSOR_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "graph/ir/tensor.h"

namespace npumesh {

struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

// float64 1e-12, float32 1e-5 (atol 1e-6), float16 1e-3, bfloat16 1e-2; others exact.
Tolerance DefaultTolerance(DataType dtype);

// What the command line gave stands above the default of the dtype.
struct ToleranceOptions {
  std::optional<double> rtol;
  std::optional<double> atol;
  Tolerance For(DataType dtype) const;
};

struct Difference {
  bool matches = true;
  // Set when the tensors cannot be compared at all (dtype or shape).
  std::string reason;
  int64_t differing = 0;  // elements outside the tolerance
  double max_abs = 0;     // largest finite |v - g|
  int64_t where = 0;      // flat index of the largest difference outside the tolerance, or of
                          // the largest one when everything matches
  std::string value;      // v there
  std::string golden;     // g there
};

// A golden in the storage type of `actual` (uint16 for bfloat16) is taken as that type.
Difference CompareTensors(const Tensor& actual, const Tensor& golden,
                          const ToleranceOptions& options);

// Position of a flat index in C order: "[1,3]".
std::string PositionOf(int64_t flat, const Shape& shape);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_TENSOR_CHECK_H_
