// Elements of a tensor as numbers, whatever its dtype.
#ifndef NPUMESH_GRAPH_COMPARE_MEASURES_ELEMENTS_H_
#define NPUMESH_GRAPH_COMPARE_MEASURES_ELEMENTS_H_

#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh {

// True for the dtypes that ElementsOf knows: booleans, integers, floating types, the 8-bit floats
// and, as their real parts, complex numbers.
bool HasNumbers(DataType dtype);

// All elements in C order. Every dtype but 64-bit integers, which are rounded to 53 bits, is exact.
// Error: kUnsupported names the dtype.
Result<std::vector<double>> ElementsOf(const Tensor& tensor);

// The same cast to float32, as msaccucmp does before it measures.
std::vector<float> AsFloats(const std::vector<double>& elements);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_MEASURES_ELEMENTS_H_
