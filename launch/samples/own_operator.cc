// y = 1 + 2 x + 3 x^2, by the operator Polynomial of examples/polynomial_operator.cc.
#include "graph/ir/graph_builder.h"
#include "launch/samples/plain_table.h"
#include "launch/samples/sample_content.h"

namespace npumesh {

Result<SampleContent> MakeOwnOperator() {
  constexpr int64_t kRows = 4, kColumns = 8;
  const Table x = Table::Random(kRows, kColumns, 1, 21);

  GraphBuilder g("own_operator");
  const Value in = g.Data("x", {DataType::kFloat, {kRows, kColumns}});
  g.Output({g.Op("Polynomial", {{"x", in}}, {{"coefficients", AttrValue::Floats({1, 2, 3})}},
                 "polynomial")});

  SampleContent content;
  NPUMESH_ASSIGN_OR_RETURN(Model model, g.Build());
  content.models.push_back(std::move(model));
  const Table y = Each(x, [](double at) { return 1 + 2 * at + 3 * at * at; });
  content.steps.push_back({{{{0, TensorOf(x)}}}, {{{0, TensorOf(y)}}}});
  return content;
}

}  // namespace npumesh
