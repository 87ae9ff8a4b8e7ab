// The nodes that a graph split over ranks has besides those of the whole graph: they meet other
// ranks, take pieces, and change sizes.
//
// Thread-safety: everything may be called from several threads.
#ifndef NPUMESH_GRAPH_OPS_SHARD_NODES_H_
#define NPUMESH_GRAPH_OPS_SHARD_NODES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"

namespace npumesh {

// Adds a node to the graph in the making, gives its output 0.
using AddNodeFn = std::function<Result<Value>(Node)>;

// The sum of `value` over all ranks of `group`, left on each of them.
Node AllReduceNode(std::string name, Value value, std::string_view group);
// The pieces of all `ranks` ranks of `group` along axis 0.
Node AllGatherNode(std::string name, Value value, std::string_view group, int ranks);
// A constant.
Node ConstNode(std::string name, const Tensor& tensor);
// Equal parts of `value` along axis 0, an output each.
Node PartsNode(std::string name, Value value, int parts);
// `values` side by side along `axis`.
Node JoinNode(std::string name, const std::vector<Value>& values, int axis);
// Positions [begin, end) of one axis; all three are int64 vectors of one element.
Node SliceNode(std::string name, Value value, Value begin, Value end, Value axis);
// The quotient of integers, rounded down, so that -1 stays -1.
Node DivideDownNode(std::string name, Value sizes, Value divisors);
Node MultiplyNode(std::string name, Value sizes, Value factors);

// Which rows of a table a rank has.
struct TableRows {
  int64_t first = 0;
  int64_t count = 0;
  int64_t total = 0;       // of the whole table
  int positions_rank = 0;  // dimensions of the positions
  DataType positions_type = DataType::kInt64;
  TensorType row_type;  // a scalar of the table's type
  bool wraps = false;   // negative positions count from the end
};

// The lookup of `positions` in the rows that a rank has, `lookup` with its table connected at
// `table`: zeros for rows of other ranks. A position outside of the whole table stays an error of
// the lookup. Adds its nodes under names that begin with that of `lookup`.
Result<Value> LookUpRows(const AddNodeFn& add, Node lookup, int positions, const TableRows& rows);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_SHARD_NODES_H_
