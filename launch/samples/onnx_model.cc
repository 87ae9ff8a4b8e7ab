// Two residual blocks x + relu(x w1 + b1) w2 + b2 for any number of rows, as an ONNX model.
#include "graph/ir/graph_builder.h"
#include "graph/onnx/writer.h"
#include "launch/samples/plain_table.h"
#include "launch/samples/sample_content.h"

namespace npumesh {
namespace {

constexpr int64_t kModelWidth = 16, kInnerWidth = 32;
constexpr int kBlocks = 2;

struct BlockWeights {
  Table w1, b1, w2, b2;
};

std::vector<BlockWeights> RandomBlocks() {
  std::vector<BlockWeights> blocks;
  for (uint64_t seed = 50; seed < 50 + 10 * kBlocks; seed += 10) {
    blocks.push_back({Table::Random(kModelWidth, kInnerWidth, 0.5, seed),
                      Table::Random(1, kInnerWidth, 0.25, seed + 1),
                      Table::Random(kInnerWidth, kModelWidth, 0.25, seed + 2),
                      Table::Random(1, kModelWidth, 0.25, seed + 3)});
  }
  return blocks;
}

Result<Model> BuildBlocks(const std::vector<BlockWeights>& blocks) {
  GraphBuilder g("blocks");
  Value x = g.Data("x", {DataType::kFloat, {-1, kModelWidth}});
  for (size_t i = 0; i < blocks.size(); ++i) {
    const std::string name = fmt::format("block{}.", i);
    const auto binary = [&](const char* type, Value a, Value b, const char* what) {
      return g.Op(type, {{"x1", a}, {"x2", b}}, {}, name + what);
    };
    const auto vector = [&](const char* what, const Table& row) {
      return g.Const(name + what, TensorOf(row, {row.columns}));
    };
    const Value up = binary("MatMul", x, g.Const(name + "w1", TensorOf(blocks[i].w1)), "up");
    const Value shifted = binary("Add", up, vector("b1", blocks[i].b1), "up_bias");
    const Value inner = g.Op("Relu", {{"x", shifted}}, {}, name + "relu");
    const Value down =
        binary("MatMul", inner, g.Const(name + "w2", TensorOf(blocks[i].w2)), "down");
    x = binary("Add", x, binary("Add", down, vector("b2", blocks[i].b2), "down_bias"), "residual");
  }
  g.Output({x});
  return g.Build();
}

}  // namespace

Result<SampleContent> MakeOnnx() {
  const std::vector<BlockWeights> blocks = RandomBlocks();
  NPUMESH_ASSIGN_OR_RETURN(const Model model, BuildBlocks(blocks));
  SampleContent content;
  NPUMESH_ASSIGN_OR_RETURN(content.onnx, WriteOnnx(model));
  const Table x = Table::Random(8, kModelWidth, 1, 49);
  Table y = x;
  for (const BlockWeights& block : blocks) {
    const Table inner = Each(SumOfRow(Product(y, block.w1), block.b1), Relu);
    y = Sum(y, SumOfRow(Product(inner, block.w2), block.b2));
  }
  content.steps.push_back({{{{0, TensorOf(x)}}}, {{{0, TensorOf(y)}}}});
  return content;
}

}  // namespace npumesh
