// What shape inference checks again and again. Every error names the node.
#ifndef NPUMESH_GRAPH_OPS_CORE_INFER_CHECKS_H_
#define NPUMESH_GRAPH_OPS_CORE_INFER_CHECKS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh {

// Sets the type of an output. Errors: kCorrupt when the node has no such output port,
// kInvalidArgument when the shape has a negative dimension or more elements than 63 bits count.
Status SetOutput(OpContext& op, int port, DataType dtype, Shape shape);

// Axis in [0, rank), counted from the end when negative. `what` is the port or attribute that holds
// it.
Result<int> AxisOf(const OpContext& op, int64_t axis, int rank, std::string_view what);

// Bytes of one element. Error: kUnsupported for strings and types narrower than a byte, which
// cannot be moved one by one.
Result<size_t> ElementBytes(const OpContext& op, DataType dtype);

// Product of dimensions [begin, end).
int64_t ElementsBetween(const Shape& shape, int begin, int end);

// Byte distance between neighbours along each dimension of a tensor in C order.
std::vector<int64_t> ByteStrides(const Shape& shape, size_t element_bytes);

// Asks for lists of `count` entries that inference or a kernel keeps on the host beside the
// tensors, before it makes them. For every operator with lists as long as attributes or values of
// inputs say. Error (kOutOfMemory): they would take more than a quarter of the host's memory, or of
// what the process may have.
Status AskForLists(const OpContext& op, int64_t count, size_t entry_bytes = sizeof(int64_t));

// Sum of the dimensions, at most INT64_MAX: entries of one list for each dimension.
int64_t SumOfDims(const Shape& shape);

// Error (kInvalidArgument) unless two inputs have equal dtypes.
Status ExpectSameDtype(const OpContext& op, int slot_a, int slot_b);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_INFER_CHECKS_H_
