// Elements of bytes that stand for scale * (byte - zero), as one node instead of the way through
// float32.
#ifndef NPUMESH_GRAPH_ONNX_BYTE_NODES_H_
#define NPUMESH_GRAPH_ONNX_BYTE_NODES_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/onnx/lowering.h"

namespace npumesh {

// `y` are bytes. Where each hangs on one element of other bytes, and on nothing else but numbers
// that are known: those looked up in a table of 256, or the other bytes themselves where the table
// changes nothing. Else `y`.
Value LookedUp(Lowering& at, Value y);

// A tensor of bytes with its scale and zero.
struct ScaledBytes {
  Value bytes, scale, zero;
};

// The sum (QLinearAdd) or product (QLinearMul) of two, with the scale and zero of `y`, whose bytes
// are not read; nullopt: `type` takes other shapes or types.
std::optional<Value> CombinedBytes(Lowering& at, const std::string& type, const ScaledBytes& a,
                                   const ScaledBytes& b, const ScaledBytes& y);

// Parts one after the other along `axis`. Where all have been transposed alike, their sources are
// joined, and the result is transposed.
Value JoinedParts(Lowering& at, const std::vector<Value>& parts, int64_t axis);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_BYTE_NODES_H_
