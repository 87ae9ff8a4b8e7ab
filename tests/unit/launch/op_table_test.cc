#include "launch/view/op_table.h"

#include <gmock/gmock.h>

#include "runtime/base/secure_file.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(OpTable, ShowsPortsAttributesAndTraits) {
  OpRegistry registry;
  Operator op;
  op.schema.type = "Mix";
  op.schema.inputs = {{"x"}, {"bias", PortKind::kOptional}, {"more", PortKind::kDynamic}};
  op.schema.outputs = {{"y"}};
  op.schema.attrs = {{"axis", AttrValue::Int(-1)}, {"axes", AttrValue::Ints({1, 2})}, {"mode", {}}};
  op.collective = true;
  op.value_inputs = {"bias"};
  registry.Add(op);
  EXPECT_EQ(OpsAsText(registry),
            "Mix (x, bias?, more...) -> (y) {axis=-1, axes=[1,2], mode (required)}  collective, "
            "needs bias\n");
  EXPECT_THAT(OpsAsMarkdown(registry),
              HasSubstr("| Mix | x, bias?, more... | y | axis=-1, axes=[1,2], mode (required) | "
                        "collective, needs bias |\n"));
}

// Mend with: npumesh ops --markdown > docs/operators.md
TEST(OpTable, ThePageIsWhatTheCommandPrints) {
  const Result<std::string> page = ReadFile(NPUMESH_OPERATORS_PAGE);
  ASSERT_TRUE(page.ok()) << page.status().message();
  EXPECT_EQ(*page, OpsAsMarkdown(BuiltinOps())) << "npumesh ops --markdown > docs/operators.md";
}

}  // namespace
}  // namespace npumesh
