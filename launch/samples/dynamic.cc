// x = rms_norm(x + x w), four times, for any number of rows.
#include "graph/ir/graph_builder.h"
#include "launch/samples/plain_table.h"
#include "launch/samples/sample_content.h"

namespace npumesh {

Result<SampleContent> MakeDynamic() {
  constexpr int64_t kColumns = 16;
  constexpr int kLayers = 4;
  constexpr float kEpsilon = 1e-6f;
  constexpr int64_t kHeights[] = {3, 1, 8};  // by step
  const Table ones = Each(Table::Zeros(1, kColumns), [](double) { return 1.0; });

  GraphBuilder g("dynamic");
  Value x = g.Data("x", {DataType::kFloat, {-1, kColumns}});
  std::vector<Table> weights;
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::string name = fmt::format("layer{}.", layer);
    weights.push_back(Table::Random(kColumns, kColumns, 0.25, 20 + static_cast<uint64_t>(layer)));
    const Value w = g.Const(name + "weight", TensorOf(weights.back()));
    const Value gamma = g.Const(name + "gamma", TensorOf(ones, {kColumns}));
    const Value product = g.Op("MatMul", {{"x1", x}, {"x2", w}}, {}, name + "product");
    const Value sum = g.Op("Add", {{"x1", x}, {"x2", product}}, {}, name + "sum");
    x = g.Op("RmsNorm", {{"x", sum}, {"gamma", gamma}}, {{"epsilon", AttrValue::Float(kEpsilon)}},
             name + "norm", 2);
  }
  g.Output({x});

  SampleContent content;
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  content.models.push_back(std::move(model));
  for (const int64_t height : kHeights) {
    const Table input = Table::Random(height, kColumns, 1, 30 + static_cast<uint64_t>(height));
    Table y = input;
    for (const Table& w : weights) y = RmsNormOf(Sum(y, Product(y, w)), ones, kEpsilon);
    content.steps.push_back({{{{0, TensorOf(input)}}}, {{{0, TensorOf(y)}}}});
  }
  return content;
}

}  // namespace npumesh
