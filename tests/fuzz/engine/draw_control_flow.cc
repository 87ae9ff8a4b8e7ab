// Branches, loops and calls, with small bodies.
#include <algorithm>

#include "tests/fuzz/engine/draws.h"

namespace npumesh::fuzz {
namespace {

bool IsSmallFloat(const PlainTensor& x) {
  return x.dtype == DataType::kFloat &&
         std::all_of(x.v.begin(), x.v.end(), [](Number v) { return v <= 16 && v >= -16; });
}

Graph Finished(GraphBuilder& g) {
  return std::move(g.Build()->graph);
}

TensorType AnyShape(DataType dtype) {
  return {dtype, Shape::UnknownRank()};
}

// A few element-wise operators that keep the dtype and shape.
Value Body(Dice& dice, GraphBuilder& g, Value x) {
  static const std::vector<std::string> types = {"Neg", "Abs", "Relu", "Floor", "Identity"};
  const int64_t length = dice.Between(0, 3);
  for (int64_t i = 0; i < length; ++i) {
    x = dice.Chance(30) ? g.Op("Maximum", {{"x1", x}, {"x2", x}})
                        : g.Op(dice.Pick(types), {{"x", x}});
  }
  return x;
}

Graph UnaryGraph(GraphWriter& w, const std::string& name, DataType dtype) {
  GraphBuilder g(name);
  g.Output({Body(w.dice(), g, g.Data("x", AnyShape(dtype)))});
  return Finished(g);
}

// Both branches or all cases.
std::vector<Graph> Branches(GraphWriter& w, int count, DataType dtype) {
  std::vector<Graph> graphs;
  for (int i = 0; i < count; ++i) {
    graphs.push_back(UnaryGraph(w, w.SubgraphName() + "_" + std::to_string(i), dtype));
  }
  return graphs;
}

bool DrawIf(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsSmallFloat);
  if (x == nullptr) return false;
  const Value condition = Operand(w, DataType::kBool, {});
  return w.Emit("If", {{"cond", condition}, {"input0", x->value}}, {}, 1,
                Branches(w, 2, x->now.dtype));
}

bool DrawCase(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsSmallFloat);
  if (x == nullptr) return false;
  const KnownValue* held =
      w.Pick([](const PlainTensor& y) { return y.dtype == DataType::kInt32 && y.rank() == 0; });
  const Value branch =
      held != nullptr ? held->value : w.AddInput(w.Random(DataType::kInt32, {}), false).value;
  return w.Emit("Case", {{"branch_index", branch}, {"input0", x->value}}, {}, 1,
                Branches(w, 3, x->now.dtype));
}

bool DrawCall(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsSmallFloat);
  return x != nullptr &&
         w.Emit("PartitionedCall", {{"args0", x->value}}, {}, 1, Branches(w, 1, x->now.dtype));
}

// A counter beside the value: as many turns as its first number leaves.
bool DrawWhile(GraphWriter& w) {
  const KnownValue* x = w.Pick(IsSmallFloat);
  if (x == nullptr) return false;
  const std::string name = w.SubgraphName();
  PlainTensor number = Zeros(DataType::kInt32, {});
  number.at(0) = 2;
  GraphBuilder test(name + "_test");
  const Value seen = test.Data("i", AnyShape(DataType::kInt32));
  test.Data("x", AnyShape(x->now.dtype));
  test.Output({test.Op("Less", {{"x1", seen}, {"x2", test.Const("limit", ToTensor(number))}})});
  number.at(0) = 1;
  GraphBuilder body(name + "_turn");
  const Value i = body.Data("i", AnyShape(DataType::kInt32));
  const Value y = Body(w.dice(), body, body.Data("x", AnyShape(x->now.dtype)));
  body.Output({body.Op("Add", {{"x1", i}, {"x2", body.Const("one", ToTensor(number))}}), y});
  std::vector<Graph> graphs;
  graphs.push_back(Finished(test));
  graphs.push_back(Finished(body));
  const Value start = w.AddInput(w.Random(DataType::kInt32, {}), false).value;
  return w.Emit("While", {{"input0", start}, {"input1", x->value}}, {}, 2, std::move(graphs));
}

}  // namespace

std::vector<Draw> ControlFlowDraws() {
  return {{{"If"}, 1, DrawIf},
          {{"Case"}, 1, DrawCase},
          {{"PartitionedCall"}, 1, DrawCall},
          {{"While"}, 1, DrawWhile}};
}

}  // namespace npumesh::fuzz
