// Under which number the input of an operator stands in a dump.
//
// Dumps count the inputs that are fed, in the order of the operator's schema; an absent optional
// input has no number. Nodes list their inputs in the order of their file, with gaps.
#ifndef NPUMESH_GRAPH_COMPARE_SOURCES_INPUT_NUMBERS_H_
#define NPUMESH_GRAPH_COMPARE_SOURCES_INPUT_NUMBERS_H_

#include <vector>

#include "graph/ops/core/op_registry.h"

namespace npumesh {

// By number in the dump: the index in node.inputs. Nodes of unknown operators are taken to list
// their inputs as their schema does.
std::vector<size_t> DumpedInputs(const Node& node, const OpRegistry& registry);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_COMPARE_SOURCES_INPUT_NUMBERS_H_
