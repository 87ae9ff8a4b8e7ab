// What is known of outputs when dimensions or ranks of inputs are not. That no claim is ever wrong
// is checked where operators are tested (op_unknown.h); here, that enough is claimed, and that no
// operator fails on shapes that mean nothing to it.
#include "graph/ops/builtin_ops.h"
#include "graph/ops/core/partial_inference.h"
#include "tests/unit/op_test.h"

namespace npumesh {
namespace {

using Attrs = std::vector<std::pair<std::string, AttrValue>>;

struct In {
  std::string port;
  Shape shape;
  DataType dtype = DataType::kFloat;
};

// Types of the outputs, "float32[2,-1]"; an input of int64 has the values 0, 1, ...
std::vector<std::string> Partly(const std::string& type, const std::vector<In>& inputs,
                                const Attrs& attrs = {}, int outputs = 0) {
  const Operator& op = *BuiltinOps().Find(type);
  OpCall call = {.type = type, .attrs = attrs, .outputs = outputs};
  for (const In& in : inputs) call.inputs.push_back({in.port, Tensor::Allocate({in.dtype, {1}})});
  const Node node = op_test::MakeNode(op, call);
  Result<OpContext> context = OpContext::Bind(node, op.schema);
  EXPECT_TRUE(context.ok()) << context.status().ToString();
  for (int slot = 0; slot < context->slots(); ++slot) {
    if (!context->has(slot)) continue;
    const In& in = inputs[static_cast<size_t>(context->input_index(slot))];
    context->set_in(slot, {in.dtype, in.shape});
  }
  const Result<std::vector<TensorType>> types = InferPartly(op, *context);
  EXPECT_TRUE(types.ok()) << types.status().ToString();
  std::vector<std::string> texts;
  for (const TensorType& found : *types) texts.push_back(found.ToString());
  return texts;
}

using Texts = std::vector<std::string>;
const Shape kUnranked = Shape::UnknownRank();

TEST(UnknownDims, BroadcastingFollowsTheRules) {
  const auto add = [](Shape a, Shape b) {
    return Partly("Add", {{"x1", std::move(a)}, {"x2", std::move(b)}});
  };
  EXPECT_EQ(add({-1, 4}, {2, 4}), Texts{"float32[2,4]"});
  EXPECT_EQ(add({-1, 4}, {1, 4}), Texts{"float32[-1,4]"});
  EXPECT_EQ(add({-1, 4}, {-1, 1}), Texts{"float32[-1,4]"});
  EXPECT_EQ(add({-1, -1}, {3}), Texts{"float32[-1,3]"});
  EXPECT_EQ(add(kUnranked, {3}), Texts{"float32[?]"});
}

TEST(UnknownDims, DimensionsThatAreEqualAreFoundSo) {
  EXPECT_EQ(Partly("MatMul", {{"x1", {-1, -1}}, {"x2", {5, 7}}}), Texts{"float32[-1,7]"});
  EXPECT_EQ(Partly("MatMul", {{"x1", {3, -1}}, {"x2", {-1, 7}}}), Texts{"float32[3,7]"});
  EXPECT_EQ(Partly("BatchMatMul", {{"x1", {-1, 2, -1}}, {"x2", {-1, -1, 5}}}),
            Texts{"float32[-1,2,5]"});
  EXPECT_EQ(Partly("MatMul", {{"x1", kUnranked}, {"x2", {5, 7}}}), Texts{"float32[?]"});
  const Attrs concat = {{"concat_dim", AttrValue::Int(0)}, {"N", AttrValue::Int(2)}};
  EXPECT_EQ(Partly("ConcatD", {{"x0", {-1, 3}}, {"x1", {2, -1}}}, concat), Texts{"float32[-1,3]"});
}

TEST(UnknownDims, OfLayers) {
  const Attrs group = {{"num_groups", AttrValue::Int(4)},
                       {"data_format", AttrValue::String("NCHW")}};
  EXPECT_EQ(Partly("GroupNormV2", {{"x", {-1, 8, -1, -1}}, {"gamma", {8}}, {"beta", {8}}}, group),
            (Texts{"float32[-1,8,-1,-1]", "float32[-1,4]", "float32[-1,4]"}));
  EXPECT_EQ(Partly("LayerNormGradV3", {{"dy", {-1, 16}},
                                       {"x", {-1, 16}},
                                       {"rstd", {-1, 1}},
                                       {"mean", {-1, 1}},
                                       {"gamma", {16}}}),
            (Texts{"float32[-1,16]", "float32[16]", "float32[16]"}));
  EXPECT_EQ(Partly("NLLLoss", {{"x", {-1, 10}}, {"target", {-1}, DataType::kInt32}}),
            (Texts{"float32[]", "float32[]"}));
  EXPECT_EQ(Partly("MaxPoolV3", {{"x", {-1, 3, -1, 8}}},
                   {{"ksize", AttrValue::Ints({1, 1, 2, 2})},
                    {"strides", AttrValue::Ints({1, 1, 2, 2})}}),
            Texts{"float32[-1,3,-1,4]"});
  // Channels that are not known are those that the groups need.
  EXPECT_EQ(Partly("Conv2D", {{"x", {1, -1, 4, 4}}, {"filter", {72, 1, 1, 2}}},
                   {{"strides", AttrValue::Ints({1, 1, 1, 1})},
                    {"pads", AttrValue::Ints({0, 0, 0, 0})},
                    {"groups", AttrValue::Int(36)},
                    {"data_format", AttrValue::String("NCHW")}}),
            Texts{"float32[1,72,4,3]"});
  EXPECT_EQ(Partly("ForeachAbs", {{"x0", {-1, 3}}, {"x1", {4}}}, {}, 2),
            (Texts{"float32[-1,3]", "float32[4]"}));
}

// What nothing is known of: the operator refuses every size.
TEST(UnknownDims, NothingIsClaimedOfWhatIsRefused) {
  EXPECT_EQ(Partly("MatMul", {{"x1", {-1, 4}}, {"x2", {5, 7}}}), Texts{"undefined[?]"});
}

// A size that the node knows is tried for the others; beside itself it may be more elements than
// can be counted (seen by the sanitizer, which stops at the product).
TEST(UnknownDims, LargeSizesAreNotTriedBesideThemselves) {
  constexpr int64_t kLarge = int64_t{1} << 33;
  EXPECT_EQ(Partly("Reshape", {{"x", {-1, kLarge}}, {"shape", {1}, DataType::kInt64}}),
            Texts{"undefined[?]"});
  EXPECT_EQ(Partly("Abs", {{"x", {-1, kLarge}}}), (Texts{"float32[-1,8589934592]"}));
}

// Known shapes are inferred as always, with the error where there is one.
TEST(UnknownDims, KnownShapesGiveTheOperatorsError) {
  const Operator& op = *BuiltinOps().Find("MatMul");
  const OpCall call = {.type = "MatMul",
                       .inputs = {{"x1", Tensor::Allocate({DataType::kFloat, {1}})},
                                  {"x2", Tensor::Allocate({DataType::kFloat, {1}})}}};
  const Node node = op_test::MakeNode(op, call);
  Result<OpContext> context = OpContext::Bind(node, op.schema);
  ASSERT_TRUE(context.ok());
  context->set_in(0, {DataType::kFloat, {2, 3}});
  context->set_in(1, {DataType::kFloat, {4, 5}});
  EXPECT_EQ(InferPartly(op, *context).status().code(), Code::kInvalidArgument);
}

// So that readers of the output may count its elements.
TEST(UnknownDims, AnOutputOfTooManyElementsIsAnError) {
  const Operator& op = *BuiltinOps().Find("Add");
  const OpCall call = {.type = "Add",
                       .inputs = {{"x1", Tensor::Allocate({DataType::kFloat, {1}})},
                                  {"x2", Tensor::Allocate({DataType::kFloat, {1}})}}};
  const Node node = op_test::MakeNode(op, call);
  Result<OpContext> context = OpContext::Bind(node, op.schema);
  ASSERT_TRUE(context.ok());
  context->set_in(0, {DataType::kFloat, {int64_t{1} << 33, 1}});
  context->set_in(1, {DataType::kFloat, {1, int64_t{1} << 38}});
  const Status status = InferPartly(op, *context).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("more elements than 63 bits can count"), std::string::npos)
      << status.ToString();
}

// A value of the kind of a required attribute: what an operator gets that knows nothing.
AttrValue Guess(const AttrSpec& attr, bool longer) {
  const auto* list = attr.pattern.get<ListAttr>();
  if (list != nullptr && list->kind == ListKind::kFloat) return AttrValue::Floats({0.5f});
  if (list != nullptr) {
    return longer ? AttrValue::Ints({1, 1, 1, 1}) : AttrValue::Ints({1});
  }
  if (attr.pattern.get<std::string>() != nullptr) return AttrValue::String("NCHW");
  if (attr.pattern.get<float>() != nullptr) return AttrValue::Float(0.5f);
  return attr.pattern.get<TensorAttr>() != nullptr ? attr.pattern : AttrValue::Int(1);
}

// A call with guessed attributes; lists of inputs have `listed` members.
OpCall GuessedCall(const Operator& op, int listed, bool longer) {
  OpCall call = {.type = std::string(op.schema.type)};
  for (const PortSpec& port : op.schema.inputs) {
    const bool list = port.kind == PortKind::kDynamic;
    for (int i = 0; i < (list ? listed : 1); ++i) {
      call.inputs.push_back({std::string(port.name) + (list ? std::to_string(i) : ""),
                             Tensor::Allocate({DataType::kFloat, {1}})});
    }
  }
  for (const AttrSpec& attr : op.schema.attrs) {
    if (!attr.fallback) call.attrs.emplace_back(attr.name, Guess(attr, longer));
  }
  return call;
}

// Every operator, with the same shape on all ports, no, one and two inputs in lists, and guessed
// attributes: it may refuse them all, but it answers.
TEST(UnknownDims, NoOperatorFails) {
  const Shape shapes[] = {{}, {2, 3}, {-1}, {-1, 4}, {2, -1, 3}, {-1, -1, -1, -1}, kUnranked};
  for (const std::string_view type : BuiltinOps().Types()) {
    const Operator& op = *BuiltinOps().Find(type);
    if (op.collective || op.control_flow || op.furniture()) continue;
    const bool guesses = std::any_of(op.schema.attrs.begin(), op.schema.attrs.end(),
                                     [](const AttrSpec& attr) { return !attr.fallback; });
    const bool lists = std::any_of(op.schema.inputs.begin(), op.schema.inputs.end(),
                                   [](auto& port) { return port.kind == PortKind::kDynamic; });
    for (int way = 0; way < 6; ++way) {
      const bool longer = way % 2 == 1;
      const int listed = way / 2;
      if ((longer && !guesses) || (listed != 1 && !lists)) continue;
      const Node node = op_test::MakeNode(op, GuessedCall(op, listed, longer));
      const Result<OpContext> bound = OpContext::Bind(node, op.schema);
      if (!bound.ok()) continue;
      for (const Shape& shape : shapes) {
        for (const DataType dtype : {DataType::kFloat, DataType::kInt64}) {
          OpContext context = *bound;
          for (int slot = 0; slot < context.slots(); ++slot) context.set_in(slot, {dtype, shape});
          const Result<std::vector<TensorType>> types = InferPartly(op, context);
          if (!types.ok()) continue;
          EXPECT_EQ(types->size(), node.output_descs.size()) << type;
        }
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
