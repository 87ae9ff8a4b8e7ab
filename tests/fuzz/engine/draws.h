// What the generator can add to a graph: one draw for each kind of operator or pattern.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_DRAWS_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_DRAWS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/engine/graph_writer.h"

namespace npumesh::fuzz {

// False: nothing in the graph fits, and nothing was added but constants.
using DrawFunction = std::function<bool(GraphWriter& w)>;

struct Draw {
  std::vector<std::string> types;  // that it may emit
  int weight = 1;
  DrawFunction draw;
};

std::vector<Draw> PointwiseDraws();
std::vector<Draw> LayoutDraws();
std::vector<Draw> ShapingDraws();
std::vector<Draw> ReduceDraws();
std::vector<Draw> GatherDraws();
std::vector<Draw> ProductDraws();  // products with bias and activation, attention, norms
std::vector<Draw> InPlaceDraws();
std::vector<Draw> ControlFlowDraws();

// A value of this type that is in the graph, or else a new constant.
Value Operand(GraphWriter& w, DataType dtype, const Extents& dims);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_DRAWS_H_
