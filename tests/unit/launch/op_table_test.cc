#include "launch/catalog/op_table.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(OpTable, ShowsPortsAttributesAndTraits) {
  OpRegistry registry;
  Operator op;
  op.schema.type = "Mix";
  op.schema.inputs = {{"x"}, {"bias", PortKind::kOptional}, {"more", PortKind::kDynamic}};
  op.schema.outputs = {{"y"}};
  op.schema.attrs = {{"axis", AttrValue::Int(-1)},
                     {"axes", AttrValue::Ints({1, 2})},
                     {"mode", Required::kString},
                     AttrSpec::Only("seed", AttrValue::Int(0))};
  op.collective = CollectiveTrait();
  op.value_inputs = {"bias"};
  registry.Add(op);
  const std::string signature =
      "Mix(x, bias?, more...; axis=-1, axes=[1,2], mode:string, seed==0) -> y";
  EXPECT_EQ(OpsAsText(registry), signature + "  collective, needs bias\n");
  EXPECT_THAT(OpsAsMarkdown(registry),
              HasSubstr("\n## Operator libraries\n\n- `" + signature + "`\n"));
}

TEST(OpTable, APageSaysItRowByRow) {
  OpRegistry registry;
  Operator op;
  op.schema.type = "Mix";
  op.schema.inputs = {{"x"}, {"bias", PortKind::kOptional}, {"more", PortKind::kDynamic}};
  op.schema.outputs = {{"y"}};
  op.schema.attrs = {{"axis", AttrValue::Int(-1)}, {"mode", Required::kString}};
  op.view = true;
  EXPECT_EQ(OpPage(op),
            "Mix(x, bias?, more...; axis=-1, mode:string) -> y\n"
            "  family      an operator library\n"
            "  inputs      x\n"
            "              bias  optional\n"
            "              more  any number of tensors\n"
            "  attributes  axis  default -1\n"
            "              mode  required\n"
            "  outputs     y\n"
            "  traits      view\n");
}

TEST(OpTable, FiltersByNameFamilyAndTrait) {
  const auto types = [](const OpFilter& filter) {
    const Result<OpRegistry> fitting = Filtered(BuiltinOps(), filter);
    EXPECT_TRUE(fitting.ok()) << fitting.status().message();
    std::vector<std::string> names;
    if (!fitting.ok()) return names;
    for (const std::string_view type : fitting->Types()) names.emplace_back(type);
    return names;
  };
  EXPECT_EQ(types({}).size(), BuiltinOps().Types().size());
  EXPECT_THAT(types({.like = "hcomallre"}), testing::ElementsAre("HcomAllReduce"));
  EXPECT_THAT(types({.family = "matmul"}), testing::Contains("MatMulV2"));
  EXPECT_THAT(types({.family = "shape", .trait = "view"}), testing::Contains("Reshape"));
  EXPECT_FALSE(Filtered(BuiltinOps(), {.family = "matmul", .trait = "view"}).ok());
  for (const std::string& type : types({.trait = "needs"})) {
    EXPECT_FALSE(BuiltinOps().Find(type)->value_inputs.empty()) << type;
  }
  const Result<OpRegistry> none = Filtered(BuiltinOps(), {.family = "matmal"});
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()),
              testing::AllOf(HasSubstr("matmul"), HasSubstr("in place"), HasSubstr("collective")));
}

// Each operator is one line, in the section of its family.
TEST(OpTable, ThePageHasEachOperatorOnce) {
  const std::string page = OpsAsMarkdown(BuiltinOps());
  size_t lines = 0;
  for (size_t at = page.find("\n- `"); at != std::string::npos; at = page.find("\n- `", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, BuiltinOps().Types().size());
  EXPECT_THAT(page, Not(HasSubstr("## Operator libraries")));
  const size_t matmul = page.find("\n## matmul: ");
  const size_t quant = page.find("\n## quant: ");
  const size_t product = page.find("\n- `MatMulV2(");
  ASSERT_NE(quant, std::string::npos);
  EXPECT_LT(matmul, product);
  EXPECT_LT(product, quant);
}

// Mend with: npumesh ops --markdown > docs/operators.md
TEST(OpTable, ThePageIsWhatTheCommandPrints) {
  const Result<std::string> page = ReadFile(NPUMESH_OPERATORS_PAGE);
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(*page, OpsAsMarkdown(BuiltinOps())) << "npumesh ops --markdown > docs/operators.md";
}

}  // namespace
}  // namespace npumesh
