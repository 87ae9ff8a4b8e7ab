// Comparing a tensor with its golden value.
//
// NaN matches NaN, an infinity matches itself, and integers and booleans must be equal, whatever
// the tolerance.
#ifndef NPUMESH_LAUNCH_RUN_TENSOR_CHECK_H_
#define NPUMESH_LAUNCH_RUN_TENSOR_CHECK_H_

#include <cstdint>
#include <string>

#include "graph/ir/tensor.h"
#include "launch/run/tolerance.h"

namespace npumesh {

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
  // The least atol, beside the rtol that was applied, with which all elements match; infinite when
  // none does.
  double needs_atol = 0;
};

// A golden in the storage type of `actual` (uint16 for bfloat16) is taken as that type.
Difference CompareTensors(const Tensor& actual, const Tensor& golden, Tolerance tolerance);

// Position of a flat index in C order: "[1,3]".
std::string PositionOf(int64_t flat, const Shape& shape);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_TENSOR_CHECK_H_
