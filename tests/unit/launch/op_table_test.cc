#include "launch/pages/op_table.h"
#include "graph/ops/builtin_ops.h"

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
              HasSubstr("| `" + signature + "` | collective, needs bias |\n"));
}

// Mend with: npumesh ops --markdown > docs/operators.md; what follows is made by
// tests/operator_evidence.py.
TEST(OpTable, ThePageBeginsWithWhatTheCommandPrints) {
  const Result<std::string> page = ReadFile(NPUMESH_OPERATORS_PAGE);
  ASSERT_TRUE(page.ok()) << page.status().message();
  const std::string printed = OpsAsMarkdown(BuiltinOps());
  EXPECT_EQ(page->substr(0, printed.size()), printed)
      << "npumesh ops --markdown > docs/operators.md";
  EXPECT_THAT(page->substr(printed.size()),
              testing::StartsWith("\n## How each operator is tested\n"))
      << "tests/operator_evidence.py build/ci >> docs/operators.md";
}

}  // namespace
}  // namespace npumesh
