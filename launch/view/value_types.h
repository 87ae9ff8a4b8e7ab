// What is known of the types of a graph's values before inputs are given.
#ifndef NPUMESH_LAUNCH_VIEW_VALUE_TYPES_H_
#define NPUMESH_LAUNCH_VIEW_VALUE_TYPES_H_

#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

struct ValueTypes {
  struct Line {
    std::string name;  // "<node>:<output>"
    TensorType type;   // open dimensions -1; dtype kUndefined: nothing is known
  };
  std::vector<Line> values;  // outputs of operators, in the order of the graph
  // How many have every dimension known, some, and none at all.
  size_t known = 0;
  size_t partly = 0;
  size_t unknown = 0;
  bool open_inputs = false;   // an input has open dimensions
  std::string contradiction;  // why the graph cannot run for any input; empty: nothing shows that
};

// Types of all operators of the main graph, found with InferPartly and written into its
// descriptors. `groups` may be null. A graph whose nodes have no order has none.
ValueTypes InferTypes(const OpRegistry& registry, GroupProvider* groups, Model& model);

// A line for each value, under a line that counts them.
std::string ToText(const ValueTypes& types);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_VIEW_VALUE_TYPES_H_
