// Stand-ins: types by the rule that TorchAir writes, zeros, and inputs that are outputs.
#include "graph/c_interface/stand_ins.h"

#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "tests/unit/op_test.h"

namespace npumesh {
namespace {

constexpr char kRule[] = "_inference_rule";

std::string Rule(const std::string& inputs, const std::string& outputs, const std::string& dtypes) {
  return R"({"shape": {"inputs": )" + inputs + R"(, "outputs": )" + outputs + R"(}, "dtype": )" +
         dtypes + "}";
}

// The dimension that an expression over s0 = 7 and s1 = 4 gives; an error as text.
std::string DimOf(const std::string& expression) {
  const auto types = TypesByRule(Rule(R"([["s0", "s1"]])", R"([[")" + expression + R"("]])", "[3]"),
                                 {{DataType::kFloat, {7, 4}}});
  return types.ok() ? (*types)[0].ToString() : types.status().ToString();
}

TEST(StandIns, ExpressionsOfDimensions) {
  const std::vector<std::pair<std::string, int>> cases = {
      {"s0", 7},
      {"12", 12},
      {"s0 + 2 * s1", 15},
      {"2*(s0 - s1)", 6},
      {"-(s1 - s0)", 3},
      {"Floor(Div(s0, 2))", 3},
      {"Ceil(Div(s0, 2))", 4},
      {"Mod(s0, s1)", 3},
      {"Pow(s1, 2) + Max(s0, s1) - Min(s0, s1)", 19},
  };
  for (const auto& [expression, expected] : cases) {
    EXPECT_EQ(DimOf(expression), "int32[" + std::to_string(expected) + "]") << expression;
  }
  for (const char* wrong : {"", "s2", "s0 +", "Div(s0, 2)", "s1 - s0", "Floor(s0", "Other(s0, 1)",
                            "Div(s0, 0)", "s0 s1", "99999999999"}) {
    EXPECT_THAT(DimOf(wrong), testing::HasSubstr("no dimension that can be computed")) << wrong;
  }
  EXPECT_THAT(DimOf(std::string(1000, '(') + "1"), testing::HasSubstr("no dimension"));
}

TEST(StandIns, RulesThatAreNotUnderstood) {
  const std::vector<TensorType> inputs = {{DataType::kFloat, {7, 4}}};
  for (const std::string& rule :
       {std::string("no json"), std::string("[]"), std::string(R"({"shape": {}})"),
        Rule("[]", "[[]]", "[]"), Rule("[5]", "[[]]", "[0]"), Rule("[null, []]", "[[]]", "[0]"),
        Rule("[]", "[[]]", "[1000]"), Rule("[]", "[7]", "[0]"), Rule("[]", "[[7]]", "[0]")}) {
    const auto types = TypesByRule(rule, inputs);
    ASSERT_FALSE(types.ok()) << rule;
    EXPECT_EQ(types.status().code(), Code::kCorrupt) << rule;
  }
  const auto types = TypesByRule(Rule(R"([["s0"]])", "[[]]", "[0]"), inputs);
  EXPECT_EQ(types.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(types.status().message()),
              testing::HasSubstr("input 0 has 2 dimensions, expected 1"));
}

TEST(StandIns, OpenDimensionsStayOpen) {
  const auto types = TypesByRule(Rule(R"([["s0", "s1"]])", R"([["s0 * 2", "s1 + 1", "3"]])", "[0]"),
                                 {{DataType::kFloat, {-1, 4}}});
  ASSERT_TRUE(types.ok()) << types.status().ToString();
  EXPECT_EQ((*types)[0].ToString(), "float32[-1,5,3]");
}

TEST(StandIns, StandForWhatIsMissing) {
  const std::string rule = Rule(R"([["s0", "s1"], null])", R"([["s0 + s1"], []])", "[1, 9]");
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {2, 3}});
  const Value y = g.Op("Foreign", {{"a", x}, {"b", x}},
                       {{kRule, AttrValue::String(rule)}, {"factor", AttrValue::Float(2)}}, "", 2);
  g.Output({g.Op("Relu", {{"x", y}})});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const StandIns made = StandInsFor(*model, BuiltinOps());
  EXPECT_THAT(made.types, testing::ElementsAre("Foreign"));
  EXPECT_NE(made.registry->Find("Relu"), nullptr);

  const Tensor two = Make<float>(DataType::kFloat, {2, 3}, {1, 2, 3, 4, 5, 6});
  const OpCall call = {.type = "Foreign",
                       .inputs = {{"a", two}, {"b", two}},
                       .attrs = {{kRule, AttrValue::String(rule)}}};
  const auto outputs = RunOp(*made.registry, call);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  EXPECT_EQ((*outputs)[0].type().ToString(), "float16[5]");
  EXPECT_THAT((*outputs)[0].as<uint16_t>(), testing::Each(0));
  EXPECT_EQ((*outputs)[1].type().ToString(), "int64[]");

  OpCall without = call;
  without.attrs.clear();
  EXPECT_THAT(std::string(FailOf(*made.registry, without).message()),
              testing::HasSubstr("its stand-in has to know the type of output 0"));
}

TEST(StandIns, OutputsThatAreInputsStay) {
  GraphBuilder g;
  const Value x = g.Data("x", {DataType::kFloat, {2}});
  // Two outputs of the builder are called y0 and y1.
  g.Output({g.Op("Update", {{"y0", x}, {"by", x}}, {}, "", 2)});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const StandIns made = StandInsFor(*model, BuiltinOps());
  const Operator* const op = made.registry->Find("Update");
  ASSERT_NE(op, nullptr);
  ASSERT_EQ(op->in_place.size(), 1u);
  EXPECT_EQ(op->in_place[0].output, 0);
  EXPECT_EQ(op->in_place[0].slot, 0);
}

}  // namespace
}  // namespace npumesh
