// What the operators say about tensors that are split over ranks along one axis, beside their
// traits (elementwise, view, product, permutation): which axes an operator works along, and the
// nodes that put pieces together again.
//
// Thread-safety: everything may be called from several threads.
#ifndef NPUMESH_GRAPH_OPS_SPLIT_FACTS_H_
#define NPUMESH_GRAPH_OPS_SPLIT_FACTS_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"

namespace npumesh {

// An operator that works along some axes and treats all others alike.
struct SplitFacts {
  std::string_view type;
  // Where it says the axes it works along; both empty: those whose size it changes.
  std::string_view axes_port;
  std::string_view axes_attr;
  // The axis where the attribute is absent.
  int64_t default_axis = -1;
  // Outputs lose these axes unless the attribute keep_dims is true.
  bool reduces = false;
  // All inputs but axes_port are pieces of one tensor; otherwise input 0 is the data.
  bool many = false;
};

// Null: nothing is known of the type.
const SplitFacts* SplitFactsOf(std::string_view type);

// The sum of `value` over all ranks of `group`, left on each of them.
Node AllReduceNode(std::string name, Value value, std::string_view group);
// The pieces of all `ranks` ranks of `group` along axis 0.
Node AllGatherNode(std::string name, Value value, std::string_view group, int ranks);
// `value` with its axes permuted by the int64 vector `permutation`.
Node TransposeNode(std::string name, Value value, Value permutation);
// A constant.
Node ConstNode(std::string name, const Tensor& tensor);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_SPLIT_FACTS_H_
