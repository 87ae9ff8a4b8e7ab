#include "launch/view/graph_facts.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "launch/view/collective_sizes.h"
#include "launch/view/value_types.h"
#include "tests/unit/launch/small_model.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

TEST(Examine, CountsWhatAGraphHolds) {
  const GraphFacts facts = Examine(SmallModel(), BuiltinOps());
  EXPECT_EQ(facts.name, "small");
  EXPECT_EQ(facts.nodes, 9u);
  EXPECT_EQ(facts.operators.front(), (std::pair<std::string, int>("Add", 2)));
  EXPECT_THAT(facts.unknown, ElementsAre("Riddle"));
  EXPECT_EQ(facts.parameters, 2);
  EXPECT_EQ(facts.parameter_bytes, 64u);
  EXPECT_THAT(facts.files, ElementsAre(Pair("./w.bin", 32u)));
  ASSERT_EQ(facts.inputs.size(), 2u);
  EXPECT_EQ(facts.inputs[0].type.ToString(), "float32[2,4]");
  EXPECT_TRUE(facts.inputs[1].ref);
  ASSERT_EQ(facts.outputs.size(), 1u);
  EXPECT_EQ(facts.outputs[0].name, "Riddle:0");
  const CollectiveFacts& reduce = facts.collectives.at("tp").at("HcomAllReduce");
  EXPECT_EQ(reduce.count, 1);
  EXPECT_EQ(reduce.bytes, 32u);
}

TEST(CollectiveInputs, AreInferredFromDeclaredInputs) {
  GraphBuilder g("two");
  const Value x = g.Data("x", {DataType::kFloat, {2, 4}});
  const Value doubled = g.Op("Add", {{"x1", x}, {"x2", x}});
  const Value reduced = g.Op(
      "HcomAllReduce", {{"x", doubled}},
      {{"reduction", AttrValue::String("sum")}, {"group", AttrValue::String("hccl_world_group")}});
  g.Output({reduced});
  const Model model = g.Build().value();
  const auto types = CollectiveInputs(model, BuiltinOps(), {}, 2);
  ASSERT_EQ(types.size(), 1u);
  EXPECT_EQ(types.begin()->second.ToString(), "float32[2,4]");
  const GraphFacts facts = Examine(model, BuiltinOps(), types);
  EXPECT_EQ(facts.collectives.at("hccl_world_group").at("HcomAllReduce").bytes, 32u);
  // An unknown operator: nothing is inferred, and that is no error.
  EXPECT_TRUE(CollectiveInputs(SmallModel(), BuiltinOps(), {}, 2).empty());
}

TEST(ToText, NamesEverything) {
  const std::string text = ToText(Examine(SmallModel(), BuiltinOps()));
  for (const char* part :
       {"graph small: 9 nodes", "x  ", "int32[-1]  updated in place", "parameters 2, 64 B",
        "./w.bin 32 B", "group tp", "Riddle  unknown: npumesh cannot run it"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
}

TEST(ToText, NamesForgeNoLinesAndMoveNoCursor) {
  const std::string evil = "n\nnpumesh run: fake\x1b[2J" + std::string(1, '\0');
  GraphBuilder g(evil + "g");
  const Value x = g.Data(evil + "x", {DataType::kFloat, {4}});
  const Value y = g.Op(evil + "Type", {{"x", x}}, {}, evil + "y");
  g.Output({g.Op("HcomAllReduce", {{"x", y}}, {{"group", AttrValue::String(evil)}}, evil)});
  Model model = g.Build().value();
  std::string text = ToText(Examine(model, BuiltinOps()));
  text += ToText(InferTypes(BuiltinOps(), nullptr, model));
  for (const char c : text) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c != 0x7f)) << text;
  EXPECT_THAT(text, Not(HasSubstr("\nnpumesh run")));
  EXPECT_THAT(text, HasSubstr("n\\nnpumesh run: fake\\x1b[2J\\x00x"));
}

TEST(HumanBytes, PowersOf1024) {
  EXPECT_EQ(HumanBytes(0), "0 B");
  EXPECT_EQ(HumanBytes(1023), "1023 B");
  EXPECT_EQ(HumanBytes(1536), "1.5 KiB");
  EXPECT_EQ(HumanBytes(uint64_t{3} << 40), "3.0 TiB");
}

}  // namespace
}  // namespace npumesh
