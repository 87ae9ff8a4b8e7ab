// A model of layers that repeat, as decoders are: a norm, two branches that meet, a residual.
#ifndef NPUMESH_TESTS_UNIT_LAUNCH_LAYERED_MODEL_H_
#define NPUMESH_TESTS_UNIT_LAUNCH_LAYERED_MODEL_H_

#include <fmt/format.h>

#include "graph/ir/graph_builder.h"

namespace npumesh {

// Operators of one layer.
inline constexpr size_t kLayerOperators = 8;

// `named`: nodes are called "model.layers.<i>.<part>", else as their types. Each layer gives one
// separate output, as caches are.
inline Model LayeredModel(int layers, bool named = true) {
  GraphBuilder g("layered");
  const TensorType type{DataType::kFloat, {4, 4}};
  const Tensor weight = Tensor::FromVector<float>(type, std::vector<float>(16, 0.5f));
  const auto name = [&](int layer, const char* part) {
    return named ? fmt::format("model.layers.{}.{}", layer, part) : std::string();
  };
  Value hidden = g.Op("Relu", {{"x", g.Data("x", type)}}, {}, "embed");
  std::vector<Value> outputs;
  for (int i = 0; i < layers; ++i) {
    const Value norm = g.Op("SoftmaxV2", {{"x", hidden}}, {}, name(i, "norm"));
    const Value left =
        g.Op("MatMul", {{"x1", norm}, {"x2", g.Const(fmt::format("l{}", i), weight)}}, {},
             name(i, "left"));
    const Value right =
        g.Op("MatMul", {{"x1", norm}, {"x2", g.Const(fmt::format("r{}", i), weight)}}, {},
             name(i, "right"));
    const Value gate = g.Op("Sigmoid", {{"x", left}}, {}, name(i, "gate"));
    const Value product = g.Op("Mul", {{"x1", gate}, {"x2", right}}, {}, name(i, "product"));
    const Value down = g.Op("Tanh", {{"x", product}}, {}, name(i, "down"));
    const Value kept = g.Op("Neg", {{"x", right}}, {}, name(i, "kept"));
    hidden = g.Op("Add", {{"x1", hidden}, {"x2", down}}, {}, name(i, "residual"));
    outputs.push_back(kept);
  }
  outputs.push_back(g.Op("Exp", {{"x", hidden}}, {}, "head"));
  g.Output(outputs);
  return g.Build().value();
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_LAUNCH_LAYERED_MODEL_H_
