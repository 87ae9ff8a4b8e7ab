// Conditions: what they are for a call, and what is refused of them.
#include "graph/limits/condition.h"

#include <gmock/gmock.h>

#include <optional>
#include <random>

#include "graph/limits/rules.h"
#include "graph/ops/core/signature.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

// A call of Op(x, y?, list...; n=2, f=0.5, flag=false, text="TND", ints=[1,2]) -> z.
class Condition : public ::testing::Test {
 protected:
  Condition()
      : schema_(Signature(
            "Op(x, y?, list...; n=2, f=0.5, flag=false, text=\"TND\", ints=[1,2]) -> z")) {
    node_.name = "node";
    node_.type = "Op";
    node_.inputs = {Value{1, 0}, Value{2, 0}, Value{3, 0}};
    node_.input_descs.resize(3);
    node_.input_descs[0].name = "x";
    node_.input_descs[1].name = "list0";
    node_.input_descs[2].name = "list1";
    node_.output_descs.resize(1);
    node_.attrs.emplace("n", AttrValue::Int(7));
    Result<OpContext> bound = OpContext::Bind(node_, schema_);
    EXPECT_TRUE(bound.ok()) << bound.status().message();
    context_.emplace(*std::move(bound));
    context_->set_in(0, {DataType::kFloat16, {4, kUnknownDim, 80}});
    values_ = Tensor::FromVector<int64_t>({DataType::kInt64, {3}}, {5, 9, 2});
    context_->set_in(context_->slot("list"), values_.type());
    context_->set_value(context_->slot("list"), &values_);
  }

  std::string Of(std::string_view text) {
    const Result<Expr> expr = ParseExpression(text);
    if (!expr.ok()) return std::string(expr.status().message());
    const CardCall call{*context_, definitions_, **Chips().Find("ascend910b3")};
    return Evaluate(*expr, call).ToText();
  }

  std::string Wrong(std::string_view text) {
    const Result<Expr> expr = ParseExpression(text);
    if (!expr.ok()) return std::string(expr.status().message());
    return std::string(CheckCondition(*expr, schema_, definitions_).message());
  }

  OpSchema schema_;
  Node node_;
  Tensor values_;
  std::optional<OpContext> context_;
  CardDefinitions definitions_;
};

TEST_F(Condition, NamesAreAttributesWithTheirDefaults) {
  EXPECT_EQ(Of("n"), "7");
  EXPECT_EQ(Of("f"), "0.5");
  EXPECT_EQ(Of("flag"), "false");
  EXPECT_EQ(Of("text == \"TND\""), "true");
  EXPECT_EQ(Of("ints"), "[1, 2]");
  EXPECT_EQ(Of("ints[-1] + ints[0]"), "3");
}

TEST_F(Condition, FunctionsAskAboutInputs) {
  EXPECT_EQ(Of("has(x)"), "true");
  EXPECT_EQ(Of("has(y)"), "false");
  EXPECT_EQ(Of("type(x) == float16"), "true");
  EXPECT_EQ(Of("type(x) in [float32, bfloat16]"), "false");
  EXPECT_EQ(Of("rank(x)"), "3");
  EXPECT_EQ(Of("size(x, -1)"), "80");
  EXPECT_EQ(Of("tensors(list)"), "2");
  EXPECT_EQ(Of("values(list)"), "[5, 9, 2]");
  EXPECT_EQ(Of("max(values(list)) - min(values(list))"), "7");
  EXPECT_EQ(Of("value(list, 1)"), "9");
  EXPECT_EQ(Of("count(list)"), "3");
  EXPECT_EQ(Of("length(ints)"), "2");
  EXPECT_EQ(Of("card(cube_cores)"), "20");
}

TEST_F(Condition, WhatIsNotKnownIsNeitherTrueNorFalse) {
  EXPECT_EQ(Of("size(x, 1)"), "?");
  EXPECT_EQ(Of("size(x, 1) > 4"), "?");
  EXPECT_EQ(Of("not (size(x, 1) > 4)"), "?");
  EXPECT_EQ(Of("size(x, 1) > 4 and n == 8"), "false");
  EXPECT_EQ(Of("n == 8 and size(x, 1) > 4"), "false");
  EXPECT_EQ(Of("size(x, 1) > 4 or n == 7"), "true");
  EXPECT_EQ(Of("size(x, 1) > 4 or n == 8"), "?");
  EXPECT_EQ(Of("7 in [size(x, 1), n]"), "true");
  EXPECT_EQ(Of("8 in [size(x, 1), n]"), "?");
  EXPECT_EQ(Of("1 if size(x, 1) == 4 else 2"), "?");
  EXPECT_EQ(Of("type(y)"), "?");
  EXPECT_EQ(Of("size(x, 9)"), "?");
  EXPECT_EQ(Of("card(wheels)"), "?");
  EXPECT_EQ(Of("values(x)"), "?");
}

TEST_F(Condition, SignsCalculate) {
  EXPECT_EQ(Of("7 // 2"), "3");
  // Rounded down, for whole numbers and others alike.
  EXPECT_EQ(Of("(0 - 7) // 2"), "-4");
  EXPECT_EQ(Of("(0 - 7) % 2"), "1");
  EXPECT_EQ(Of("7 // (0 - 2)"), "-4");
  EXPECT_EQ(Of("7 % (0 - 2)"), "-1");
  EXPECT_EQ(Of("(0 - 6) // 2"), "-3");
  EXPECT_EQ(Of("7 // (0 - 1)"), "-7");
  EXPECT_EQ(Of("(0 - 7.5) // 2 == 0 - 4"), "true");
  EXPECT_EQ(Of("(0 - 7.5) % 2 == 0.5"), "true");
  EXPECT_EQ(Of("7 / 2"), "3.5");
  EXPECT_EQ(Of("7 % 4 * 2 - 1"), "5");
  EXPECT_EQ(Of("n // 0"), "?");
  EXPECT_EQ(Of("9223372036854775807 + n"), "?");
  EXPECT_EQ(Of("-n < 0"), "true");
  EXPECT_EQ(Of("n not in [1, 7]"), "false");
  EXPECT_EQ(Of("f * 2 == 1"), "true");
  EXPECT_EQ(Of("\"a\" < 1"), "?");
  EXPECT_EQ(Of("1 if flag else 2 if n == 7 else 3"), "2");
}

TEST_F(Condition, DefinitionsStandForExpressions) {
  definitions_.emplace("d", *ParseExpression("size(x, -1) // 2"));
  EXPECT_EQ(Of("d % 16 != 0"), "true");
  const CardCall call{*context_, definitions_, **Chips().Find("ascend910b3")};
  EXPECT_EQ(*Filled("heads of {d} and {n}", call), "heads of 40 and 7");
  EXPECT_THAT(Filled("heads of {d", call).status().message(), HasSubstr("without"));
}

TEST_F(Condition, MistakesAreNamed) {
  EXPECT_EQ(Wrong("has(x) and n == 2 and card(streams) > 1"), "");
  EXPECT_THAT(Wrong("m == 2"), HasSubstr("Op has no attribute m"));
  EXPECT_THAT(Wrong("x == 2"), HasSubstr("x is an input"));
  EXPECT_THAT(Wrong("has(n)"), HasSubstr("Op has no input n"));
  EXPECT_THAT(Wrong("size(x)"), HasSubstr("size takes 2 arguments"));
  EXPECT_THAT(Wrong("sizes(x, 1)"), HasSubstr("there is no function sizes"));
  EXPECT_THAT(Wrong("n =="), HasSubstr("expected a name"));
  EXPECT_THAT(Wrong("n == 2)"), HasSubstr("expected the end of the line in place of \")\""));
  EXPECT_THAT(Wrong(std::string(100'000, '(')), HasSubstr("nested too deeply"));
  std::string sum = "1";
  for (int i = 0; i < 100'000; ++i) sum += "+1";
  EXPECT_THAT(Wrong(sum), HasSubstr("terms in a row"));
}

// Words of conditions in any order do not crash.
TEST_F(Condition, AnyWordsAreReadOrRefused) {
  const std::vector<std::string> words = {
      "n",    "x",   "has", "size", "(",     ")",  "[",    "]",       ",",      "and",
      "or",   "not", "in",  "if",   "else",  "==", "<",    "+",       "-",      "*",
      "//",   "%",   "1",   "0.5",  "\"a\"", "{",  "}",    "float16", "values", "list",
      "card", "max", "1e",  "=",    "\"",    "#",  "text", "y"};
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    std::string text;
    for (uint64_t i = random() % 24; i > 0; --i) text += words[random() % words.size()] + " ";
    SCOPED_TRACE(text);
    const Result<Expr> expr = ParseExpression(text);
    if (!expr.ok()) continue;
    const CardCall call{*context_, definitions_, **Chips().Find("ascend910b3")};
    static_cast<void>(CheckCondition(*expr, schema_, definitions_));
    static_cast<void>(Evaluate(*expr, call).ToText());
  }
}

}  // namespace
}  // namespace npumesh
