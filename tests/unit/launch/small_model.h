// A graph for the tests of what shows graphs: x + p, reduced over a group, then something unknown.
#ifndef NPUMESH_TESTS_UNIT_LAUNCH_SMALL_MODEL_H_
#define NPUMESH_TESTS_UNIT_LAUNCH_SMALL_MODEL_H_

#include "graph/ir/graph_builder.h"

namespace npumesh {

inline Model SmallModel() {
  GraphBuilder g("small");
  const TensorType type{DataType::kFloat, {2, 4}};
  const Value x = g.Data("x", type);
  const Value cache = g.RefData("cache", {DataType::kInt32, {-1}});
  const Value p = g.Const("p", Tensor::FromVector(type, std::vector<float>(8, 1.0f)));
  const Value w = g.FileConstant("w", type, "./w.bin");
  const Value reduced =
      g.Op("HcomAllReduce", {{"x", x}},
           {{"reduction", AttrValue::String("sum")}, {"group", AttrValue::String("tp")}}, "reduce");
  const Value sum = g.Op("Add", {{"x1", reduced}, {"x2", p}}, {}, "sum<1>");
  const Value more = g.Op("Add", {{"x1", sum}, {"x2", w}});
  g.Output({g.Op("Riddle", {{"x", more}, {"y", cache}})});
  return g.Build().value();
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_LAUNCH_SMALL_MODEL_H_
