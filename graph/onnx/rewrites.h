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

// What is multiplied, and what becomes of the sums: as int32 they stay what they are; else they are
// multiplied by the scale and, as bytes, rounded and added to y_zero. The bias is added to the
// sums.
struct ByteMatrices {
  Value a, b;
  std::optional<Value> a_zero, b_zero, bias, scale;
  DataType dtype = DataType::kInt32;
  std::optional<Value> y_zero;
  bool transposed_b = false;
};
// The product as one node (QLinearMatMul); nullopt: that takes other shapes, or one zero or scale
// for each row of a.
std::optional<Value> MultipliedBytes(Lowering& at, const ByteMatrices& form);

// The rows of x, which begin at dimension `first`, less their mean and with a variance of 1, times
// gamma plus beta. In float32 for halves; the caller casts the result. Mean and 1 / deviation have
// rows of 1.
struct NormedRows {
  Value y, mean, scale;
};
NormedRows LayerNorm(Lowering& at, Value x, int first, Value gamma, std::optional<Value> beta,
                     float epsilon);

// What a node of another operator of ONNX, of the standard domain, makes of these operands: for
// operators that are defined by others. One value for each output.
std::vector<Value> AsNode(Lowering& at, std::string_view op, int64_t version,
                          const std::vector<std::optional<Value>>& operands,
                          std::vector<OnnxAttribute> attributes = {}, int outputs = 1);
// Its attributes.
OnnxAttribute IntAttribute(std::string name, int64_t value);
OnnxAttribute FloatAttribute(std::string name, float value);
OnnxAttribute IntsAttribute(std::string name, std::vector<int64_t> values);
// Those of the node of `at` that are among `names`.
std::vector<OnnxAttribute> AttributesOf(const Lowering& at,
                                        const std::vector<std::string_view>& names);

inline bool IsByte(DataType dtype) {
  return dtype == DataType::kInt8 || dtype == DataType::kUint8;
}
// Whether a and b are bytes. Error: they are not.
bool AreBytes(Lowering& at, Value a, Value b);

// Images with their channels last, as those of ONNX stand, and back.
Value ChannelsSecond(Lowering& at, Value x);
Value ChannelsLast(Lowering& at, Value x);

// The numbers 0, 1, ... below `count` (an int64 scalar), as `dtype`.
Value CountTo(Lowering& at, Value count, DataType dtype);

// The positions of true in a vector, int64.
Value PlacesOfTrue(Lowering& at, Value condition);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_REWRITES_H_
