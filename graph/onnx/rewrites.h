// Rewrites that several families of ONNX operators share.
#ifndef NPUMESH_GRAPH_ONNX_REWRITES_H_
#define NPUMESH_GRAPH_ONNX_REWRITES_H_

#include <optional>

#include "graph/onnx/lowering.h"

namespace npumesh {

// The product of matrices by NumPy's rules: vectors have a row or column for the time of the
// product, the dimensions before the last two are broadcast. Types without products of ours
// (integers, double) are multiplied and summed element by element.
Value GeneralProduct(Lowering& at, Value a, Value b);

// x (float) rounded to the nearest integer, ties to even, plus `zero` (of the result's type, or
// none), and limited to what `dtype`
// (an integer of 8 or 16 bits) holds.
Value Quantised(Lowering& at, Value x, std::optional<Value> zero, DataType dtype);

// A vector as a tensor of `rank` dimensions along `axis` (Lowering::Along); a scalar, or a vector
// of one element, as a scalar.
Value AlongAxis(Lowering& at, Value vector, int rank, int64_t axis);

// The product of bytes less their zeros, exact as int32: vectors and matrices as GeneralProduct.
// Zeros may be one for each row of a, or column of b.
Value ByteProduct(Lowering& at, Value a, std::optional<Value> a_zero, Value b,
                  std::optional<Value> b_zero);

// Whether a and b are bytes. Error: they are not.
bool AreBytes(Lowering& at, Value a, Value b);

// The numbers 0, 1, ... below `count` (an int64 scalar), as `dtype`.
Value CountTo(Lowering& at, Value count, DataType dtype);

// The positions of true in a vector, int64.
Value PlacesOfTrue(Lowering& at, Value condition);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_REWRITES_H_
