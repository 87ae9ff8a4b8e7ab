// One node of each operator with operands, attributes and outputs that fit nothing: an import gives
// a graph or an error that is fit for a terminal.
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/onnx/import.h"
#include "graph/onnx/node_form.h"
#include "graph/onnx/op_table.h"
#include "graph/ops/builtin_ops.h"
#include "tests/fuzz/engine/dice.h"
#include "tests/fuzz/targets.h"

namespace npumesh {
namespace {

using fuzz::Dice;
using Kind = OnnxAttribute::Kind;

constexpr uint64_t kNodes = 120;  // of each operator

const std::vector<int64_t> kNumbers = {
    0, 0, 0, 1,  1,  1,  1,   1,         2,         2,         0,  1,  1,   2,       2,        3,
    4, 5, 7, -1, -2, -5, 100, INT32_MAX, INT64_MAX, INT64_MIN, 16, 64, -64, 1 << 20, 1LL << 40};
const std::vector<std::string> kWords = {
    "SAME_UPPER", "SAME_LOWER", "VALID",  "reverse", "bidirectional", "linear",   "cubic",
    "nearest",    "reflect",    "edge",   "none",    "add",           "mul",      "max",
    "LEFT",       "Relu",       "Affine", "IDF",     "ij,jk->ik",     "...ii->i", "i,i->",
    "CRD",        "sum",        "",       "\x1b[31m"};
const std::vector<DataType> kTypes = {DataType::kFloat, DataType::kFloat,  DataType::kInt64,
                                      DataType::kInt64, DataType::kUint8,  DataType::kInt8,
                                      DataType::kBool,  DataType::kDouble, DataType::kString};

class WildModel {
 public:
  explicit WildModel(uint64_t seed) : dice_(seed) {}

  OnnxModel Make(const OnnxOp& op) {
    OnnxModel model;
    const int64_t version = std::max<int64_t>(dice_.Between(7, 23), op.since);
    model.opsets = {{"", version}, {std::string(kTrainingDomain), 1}};
    const NodeForm form = ParseForm(op.form);
    model.graph.name = "wild";
    OnnxNode node;
    node.name = "node";
    node.op = op.name;
    node.domain = op.domain;
    const auto wanted = static_cast<int64_t>(form.operands.size());
    const int64_t operands = dice_.Chance(90) ? wanted : dice_.Between(0, 6);
    kind_ = dice_.Pick(kTypes);
    for (int64_t i = 0; i < operands; ++i) {
      const bool has = i < wanted && dice_.Chance(85);
      node.inputs.push_back(
          Operand(model.graph, i, has ? form.operands[static_cast<size_t>(i)] : FormOperand()));
    }
    const int64_t results = dice_.Below(4);
    for (int64_t i = 0; i < results; ++i) node.outputs.push_back(fmt::format("y{}", i));
    if (!node.outputs.empty()) model.graph.outputs.push_back({node.outputs[0], {}});
    for (const FormAttribute& attribute : form.attributes) {
      const bool known = op.domain != "" || attribute.KnownIn(version);
      if (known && dice_.Chance(attribute.required ? 95 : 40)) {
        node.attributes.push_back(Attribute(attribute));
      }
    }
    model.graph.nodes.push_back(std::move(node));
    return model;
  }

 private:
  Shape AnyShape(bool open) {
    if (open && dice_.Chance(8)) return Shape::UnknownRank();
    std::vector<int64_t> dims(static_cast<size_t>(dice_.Below(6)));
    for (int64_t& dim : dims) {
      dim = dice_.Pick<int64_t>({0, 1, 1, 2, 2, 3, 4, 4});
      if (open && dice_.Chance(20)) dim = dice_.Chance(80) ? kUnknownDim : int64_t{1} << 33;
    }
    return Shape(dims);
  }

  Tensor AnyTensor() {
    Shape shape = AnyShape(false);
    if (shape.rank() > 2) shape = Shape({dice_.Below(5)});
    const DataType dtype = dice_.Chance(70) ? DataType::kInt64 : DataType::kFloat;
    Tensor tensor = Tensor::Allocate({dtype, shape});
    auto* ints = reinterpret_cast<int64_t*>(tensor.mutable_data());
    auto* floats = reinterpret_cast<float*>(tensor.mutable_data());
    for (int64_t i = 0; i < tensor.elements(); ++i) {
      if (dtype == DataType::kInt64) ints[i] = dice_.Pick(kNumbers);
      if (dtype == DataType::kFloat) floats[i] = static_cast<float>(dice_.Pick(kNumbers));
    }
    return tensor;
  }

  // Left out, an initialiser, or an input of the graph.
  std::string Operand(OnnxGraph& graph, int64_t number, const FormOperand& form) {
    if (dice_.Chance(12)) return "";
    const std::string name = fmt::format("x{}", number);
    if (dice_.Chance(35)) {
      graph.initialisers[name] = AnyTensor();
      return name;
    }
    OnnxType type;
    type.kind = OnnxKind::kTensor;
    DataType dtype = dice_.Chance(75) ? kind_ : dice_.Pick(kTypes);
    for (int i = 0; i < 20 && !Takes(form, dtype); ++i) dtype = dice_.Pick(kTypes);
    type.tensor = {dtype, AnyShape(true)};
    graph.inputs.push_back({name, type});
    return name;
  }

  // A graph of one node with some inputs and outputs.
  std::shared_ptr<const OnnxGraph> Body() {
    auto graph = std::make_shared<OnnxGraph>();
    graph->name = "body";
    OnnxNode node;
    node.op = dice_.Pick<std::string>({"Identity", "Add", "Shape", "SequenceEmpty"});
    const int64_t inputs = dice_.Below(4), outputs = dice_.Below(4);
    for (int64_t i = 0; i < inputs; ++i) {
      graph->inputs.push_back({fmt::format("b{}", i), {}});
      node.inputs.push_back(graph->inputs.back().name);
    }
    node.outputs = {"made"};
    if (inputs > 0 || node.op == "SequenceEmpty") graph->nodes.push_back(node);
    for (int64_t i = 0; i < outputs; ++i) {
      graph->outputs.push_back({dice_.Chance(50) ? "made" : fmt::format("b{}", i), {}});
    }
    return graph;
  }

  // Mostly of the kind that the operator asks for.
  OnnxAttribute Attribute(const FormAttribute& asked) {
    constexpr std::pair<std::string_view, Kind> kKinds[] = {
        {"float", Kind::kFloat},   {"int", Kind::kInt},    {"string", Kind::kString},
        {"floats", Kind::kFloats}, {"ints", Kind::kInts},  {"strings", Kind::kStrings},
        {"tensor", Kind::kTensor}, {"graph", Kind::kGraph}};
    OnnxAttribute attribute;
    attribute.name = asked.name;
    for (const auto& [name, kind] : kKinds) {
      const bool any = dice_.Chance(1);
      if (any || name == asked.kind) attribute.kind = kind;
    }
    attribute.i = dice_.Pick(kNumbers);
    attribute.f = static_cast<float>(dice_.Pick(kNumbers));
    attribute.s = dice_.Pick(kWords);
    const int64_t count = dice_.Below(8);
    for (int64_t i = 0; i < count && attribute.kind == Kind::kInts; ++i) {
      attribute.ints.push_back(dice_.Pick(kNumbers));
    }
    for (int64_t i = 0; i < count && attribute.kind == Kind::kFloats; ++i) {
      attribute.floats.push_back(static_cast<float>(dice_.Pick(kNumbers)));
    }
    if (attribute.kind == Kind::kStrings) attribute.strings.assign(2, dice_.Pick(kWords));
    if (attribute.kind == Kind::kTensor) attribute.tensor = AnyTensor();
    if (attribute.kind == Kind::kGraph) attribute.graph = Body();
    return attribute;
  }

  Dice dice_;
  DataType kind_ = DataType::kFloat;  // of most operands
};

// What is wrong with what becomes of a model; empty: nothing.
std::string FlawIn(const OnnxModel& model) {
  const Result<Model> imported = ImportOnnx(model, BuiltinOps());
  if (!imported.ok()) return fuzz::FlawOf(imported.status());
  const Status verified = imported->graph.Verify();
  return verified.ok() ? "" : "a damaged graph: " + verified.ToString();
}

class WildNodes : public ::testing::TestWithParam<size_t> {};

TEST_P(WildNodes, BecomeAGraphOrAnError) {
  const OnnxOp& op = OnnxOps()[GetParam()];
  for (uint64_t i = 0; i < kNodes; ++i) {
    const uint64_t seed = GetParam() * kNodes + i;
    ASSERT_EQ(FlawIn(WildModel(seed).Make(op)), "") << "seed " << seed;
  }
}

std::string NameOf(size_t row) {
  const OnnxOp& op = OnnxOps()[row];
  const std::string domain = op.domain == kMicrosoftDomain ? "Microsoft_" : "";
  return fmt::format("{}{}_{}", domain, op.name, op.since);
}

INSTANTIATE_TEST_SUITE_P(Rows, WildNodes, ::testing::Range<size_t>(0, OnnxOps().size()),
                         [](const auto& info) { return NameOf(info.param); });

TEST(WildModels, AreNotOnlyErrors) {
  uint64_t imported = 0, seed = 0;
  for (const OnnxOp& op : OnnxOps()) {
    for (int i = 0; i < 4; ++i) {
      imported += ImportOnnx(WildModel(seed++).Make(op), BuiltinOps()).ok() ? 1 : 0;
    }
  }
  EXPECT_GT(imported, seed / 20);
}

}  // namespace
}  // namespace npumesh
