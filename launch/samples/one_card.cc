// y = relu(x w + b).
#include "graph/ir/graph_builder.h"
#include "launch/samples/plain_table.h"
#include "launch/samples/sample_content.h"

namespace npumesh {

Result<SampleContent> MakeOneCard() {
  constexpr int64_t kTokens = 4, kIn = 16, kOut = 8;
  const Table x = Table::Random(kTokens, kIn, 1, 11);
  const Table w = Table::Random(kIn, kOut, 0.5, 12);
  const Table b = Table::Random(1, kOut, 0.25, 13);

  GraphBuilder g("one_card");
  const Value in = g.Data("x", {DataType::kFloat, {kTokens, kIn}});
  const Value product =
      g.Op("MatMul", {{"x1", in}, {"x2", g.Const("weight", TensorOf(w))}}, {}, "product");
  const Value sum =
      g.Op("Add", {{"x1", product}, {"x2", g.Const("bias", TensorOf(b, {kOut}))}}, {}, "sum");
  g.Output({g.Op("Relu", {{"x", sum}}, {}, "y")});

  SampleContent content;
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  content.models.push_back(std::move(model));
  const Table y = Each(SumOfRow(Product(x, w), b), Relu);
  content.steps.push_back({{{{0, TensorOf(x)}}}, {{{0, TensorOf(y)}}}});
  return content;
}

}  // namespace npumesh
