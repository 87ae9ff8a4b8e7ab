// What the compiler says when a graph and its inputs do not fit.
#include <gmock/gmock.h>

#include "graph/engine/analyse/bound_type.h"
#include "tests/unit/engine/engine_fixture.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class CompileErrorTest : public EngineTest {
 protected:
  void ExpectError(const std::vector<Tensor>& inputs, Code code, std::string_view message) {
    const Status status = CompileFor(inputs).status();
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_EQ(status.message(), message);
  }

  // The descriptor of graph output `index`, to be edited after Build.
  TensorDesc& DeclaredOutput(size_t index) {
    model_ = std::make_unique<Model>(g_.Build().value());
    Graph& graph = model_->graph;
    return graph.node(graph.NetOutput()).input_descs[index];
  }
};

TEST_F(CompileErrorTest, InputTypes) {
  g_.Output({g_.Data("x", IntType({-1, 4}))});
  ExpectError({}, Code::kInvalidArgument, "the graph has 1 inputs, 0 were given");
  ExpectError({IntTensor({2, 3}, std::vector<int64_t>(6))}, Code::kInvalidArgument,
              "input 0 \"x\": expected int64[-1,4], seen int64[2,3]: dimension 1 is 3, expected 4");
  ExpectError({IntTensor({1, 2})}, Code::kInvalidArgument,
              "input 0 \"x\": expected int64[-1,4], seen int64[2]: the rank is 1, expected 2");
  ExpectError({Tensor::Allocate({DataType::kFloat, {2, 4}})}, Code::kInvalidArgument,
              "input 0 \"x\": expected int64[-1,4], seen float32[2,4]: the dtype is float32, "
              "expected int64");
  EXPECT_EQ(Compile({IntType({-1, 4})}).status().message(),
            "input 0 \"x\": int64[-1,4] has unknown dimensions");
  EXPECT_EQ(Compile({{DataType::kString, Shape({1, 4})}}).status().message(),
            "input 0 \"x\": dtype string has no fixed width");
}

TEST_F(CompileErrorTest, UnknownRankTakesAnything) {
  g_.Output({g_.Data("x", IntType(Shape::UnknownRank()))});
  EXPECT_TRUE(CompileFor({IntTensor({1, 2})}).ok());
  EXPECT_TRUE(CompileFor({IntTensor(Shape(), {1})}).ok());
}

TEST_F(CompileErrorTest, ValueOfAnotherTypeThanItsInput) {
  const Value n = g_.Data("n", IntType(Shape::UnknownRank()));
  g_.Output({g_.Op("Zeros", {{"dims", n}})});
  EXPECT_THAT(Compile({IntType({1})}, {IntTensor({1, 2})}).status().message(),
              HasSubstr("its type is int64[1], but its value is int64[2]"));
}

TEST_F(CompileErrorTest, AllOperatorsThatCannotBeCompiled) {
  const Value x = g_.Data("x", IntType({2}));
  const Value a = g_.Op("NoKernel", {{"x", x}}, {}, "a");
  const Value b = g_.Op("NoKernel", {{"x", a}}, {}, "b");
  g_.Output({b});
  ExpectError({IntTensor({1, 2})}, Code::kUnsupported,
              "graph \"graph_1\" cannot be compiled: 2 errors:\n"
              "  node \"a\" (NoKernel): no kernel for int64[2]\n"
              "  node \"b\" (NoKernel): no kernel for int64[2]");
}

// As a damaged file may.
TEST_F(CompileErrorTest, ReadsWhatItsSourceDoesNotGive) {
  g_.Output({g_.Op("Negate", {{"x", g_.Op("NoOp", {})}})});
  ExpectError({}, Code::kCorrupt,
              "node \"Negate\" (Negate): it reads output 0 of \"NoOp\" (NoOp), which has 0");
}

TEST_F(CompileErrorTest, GivesWhatItsSourceDoesNot) {
  g_.Output({g_.Op("NoOp", {})});
  ExpectError({}, Code::kCorrupt,
              "node \"NetOutput\" (NetOutput): it reads output 0 of \"NoOp\" (NoOp), which has 0");
}

TEST_F(CompileErrorTest, InferenceErrorsDoNotCascade) {
  const Value x = g_.Data("x", IntType({2}));
  const Value a = g_.Op("NoInfer", {{"x", x}}, {}, "a");
  const Value b = g_.Op("Negate", {{"x", a}}, {}, "b");
  g_.Output({b});
  ExpectError({IntTensor({1, 2})}, Code::kUnsupported, "node \"a\" (NoInfer): cannot tell");
}

TEST_F(CompileErrorTest, ShapeThatOnlyRunTimeKnows) {
  const Value x = g_.RefData("x", IntType({1}));
  g_.Output({g_.Op("Zeros", {{"dims", x}}, {}, "zeros")});
  EXPECT_THAT(CompileFor({IntTensor({1})}).status().message(),
              HasSubstr("node \"zeros\" (Zeros): the value of input \"dims\" must be known"));
}

TEST_F(CompileErrorTest, FoldedKernelsFailWithTheirNode) {
  g_.Output({g_.Op("Pick", {{"x", g_.Ints({1, 2})}, {"i", g_.Int(2)}}, {}, "pick")});
  ExpectError({}, Code::kInvalidArgument, "node \"pick\" (Pick): no element 2");
}

TEST_F(CompileErrorTest, ViewOfAnotherSize) {
  const Value x = g_.Data("x", IntType({2}));
  g_.Output({g_.Op("Reshape", {{"x", x}, {"shape", g_.Ints({3})}}, {}, "r")});
  ExpectError({IntTensor({1, 2})}, Code::kInvalidArgument,
              "node \"r\" (Reshape): output 0 shares the storage of input slot 0: int64[3] and "
              "int64[2] differ in size");
}

TEST_F(CompileErrorTest, TwoInputsWithOneIndex) {
  g_.Output({g_.Data("x", IntType({2})), g_.Data("y", IntType({2}))});
  Model model = g_.Build().value();
  model.graph.node(model.graph.Find("y")).attrs["index"] = AttrValue::Int(0);
  EXPECT_EQ(InputsOf(model).status().message(),
            "graph \"graph_1\": inputs \"x\" and \"y\" both have index 0");
}

TEST_F(CompileErrorTest, DeclaredOutputs) {
  struct Case {
    DataType dtype;
    std::optional<Shape> shape;
    bool fits;
  };
  const std::vector<Case> cases = {
      {DataType::kInt64, Shape({2}), true},
      {DataType::kInt64, Shape({-1}), true},
      {DataType::kUndefined, Shape::UnknownRank(), true},
      {DataType::kFloat, std::nullopt, true},  // what writers put where they know nothing
      {DataType::kFloat, Shape({2}), false},
      {DataType::kInt64, Shape({3}), false},
      {DataType::kInt64, Shape({2, 1}), false},
      {DataType::kInt64, Shape(), false},
  };
  g_.Output({g_.Op("Negate", {{"x", g_.Data("x", IntType({2}))}}, {}, "n")});
  TensorDesc& declared = DeclaredOutput(0);
  for (const Case& c : cases) {
    declared.dtype = c.dtype;
    declared.shape = c.shape;
    EXPECT_EQ(CompileFor({IntTensor({1, 2})}).ok(), c.fits)
        << TensorType{c.dtype, c.shape.value_or(Shape())}.ToString();
  }
  declared.dtype = DataType::kInt32;
  declared.shape = Shape({-1});
  ExpectError({IntTensor({1, 2})}, Code::kInvalidArgument,
              "node \"NetOutput\" (NetOutput): graph output 0 (output 0 of \"n\"): int32[-1] is "
              "declared, int64[2] is inferred");
}

TEST_F(CompileErrorTest, GraphWithoutNetOutput) {
  g_.Output({g_.Data("x", IntType({2}))});
  model_ = std::make_unique<Model>(g_.Build().value());
  model_->graph.Remove(model_->graph.NetOutput());
  ExpectError({IntTensor({1, 2})}, Code::kCorrupt, "graph \"graph_1\" has no NetOutput");
}

TEST(InputsOfTest, SortsByIndexAndReadsOriginShapes) {
  GraphBuilder g;
  const Value x = g.Data("x", IntType({2}));
  const Value y = g.RefData("y", IntType({-1}));
  const Value z = g.Data("z", {DataType::kFloat16, Shape()});
  g.Output({x, y, z});
  Model model = g.Build().value();
  Graph& graph = model.graph;
  graph.node(x.node).attrs["index"] = AttrValue::Int(7);
  graph.node(z.node).attrs["index"] = AttrValue::Int(3);
  graph.node(z.node).output_descs[0].attrs["origin_shape"] = AttrValue::Ints({16, 32});
  graph.node(x.node).output_descs[0].device_type = "CPU";
  graph.node(y.node).output_descs[0].shape.reset();
  graph.node(y.node).input_descs[0].shape.reset();
  const std::vector<InputSpec> inputs = InputsOf(model).value();
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(inputs[0].name, "y");
  EXPECT_TRUE(inputs[0].ref);
  EXPECT_FALSE(inputs[0].declared.shape.has_rank());
  EXPECT_EQ(inputs[1].name, "z");
  EXPECT_EQ(inputs[1].declared, (TensorType{DataType::kFloat16, {16, 32}}));
  EXPECT_EQ(inputs[2].index, 7);
  EXPECT_TRUE(inputs[2].host);
  EXPECT_FALSE(inputs[2].ref);
}

// As for an int argument that a graph also uses as a float: TorchAir changes the output's dtype.
TEST(InputsOfTest, TrustsTheDescriptorOfTheInput) {
  GraphBuilder g;
  g.Output({g.Data("n", IntType({})), g.Data("m", IntType({3}))});
  Model model = g.Build().value();
  model.graph.node(0).output_descs[0].dtype = DataType::kFloat;
  model.graph.node(1).input_descs[0].dtype = DataType::kUndefined;
  model.graph.node(1).input_descs[0].shape = Shape();
  const std::vector<InputSpec> inputs = InputsOf(model).value();
  EXPECT_EQ(inputs[0].declared, IntType({}));
  EXPECT_EQ(inputs[1].declared, IntType({3})) << "the input's descriptor says nothing";
}

TEST(InputsOfTest, OneElementBindsToAScalar) {
  InputSpec input;
  input.declared = IntType({});
  EXPECT_EQ(BoundType(input, IntType({1})), IntType({}));
  EXPECT_EQ(BoundType(input, IntType({2})), IntType({2}));
  EXPECT_EQ(BoundType(input, IntType({1, 1})), IntType({1, 1}));
  EXPECT_FALSE(CheckInputTypes({input}, {IntType({2})}).ok());
  input.declared = IntType({-1});
  EXPECT_EQ(BoundType(input, IntType({1})), IntType({1}));
}

TEST(GroupsOfTest, EachOnceSorted) {
  GraphBuilder g;
  const Value x = g.Data("x", IntType({2}));
  const Value a = g.Op("Meet", {{"x", x}}, {{"group", AttrValue::String("tp")}});
  const Value b = g.Op("Meet", {{"x", a}}, {{"group", AttrValue::String("dp")}});
  const Value c = g.Op("Meet", {{"x", b}}, {{"group", AttrValue::String("tp")}});
  g.Output({g.Op("Meet", {{"x", c}})});
  const OpRegistry registry = TinyOps();
  EXPECT_THAT(GroupsOf(g.Build().value(), registry),
              ElementsAre("dp", std::string(kWorldGroup), "tp"));
}

}  // namespace
}  // namespace npumesh
