#include "graph/ir/node_origin.h"

#include <gtest/gtest.h>

namespace npumesh {
namespace {

Node Mm(std::initializer_list<std::pair<const char*, const char*>> attrs) {
  Node node;
  node.name = "MatMulV2_1";
  node.type = "MatMulV2";
  for (const auto& [name, text] : attrs) node.attrs.emplace(name, AttrValue::String(text));
  return node;
}

TEST(NodeOriginTest, ANodeThatTellsNothingHasNone) {
  EXPECT_EQ(NodeOrigin(Mm({})), "");
  EXPECT_EQ(WhoIs(Mm({{"transpose", "no"}})), "node \"MatMulV2_1\" (MatMulV2)");
}

TEST(NodeOriginTest, SaysFxNodeModuleAndLine) {
  const Node node =
      Mm({{"_fx_node", "mm_1"},
          {"_stack_trace", "File \"/m/model.py\", line 12, in forward"},
          {"nn_module_stack",
           "{'L__self___layer_0': (\"L['self'].layer[0]\", <class '__main__.Layer'>), "
           "'L__self___layer_0_proj': (\"L['self'].layer[0].proj\", "
           "<class 'torch.nn.modules.linear.Linear'>)}"}});
  EXPECT_EQ(WhoIs(node),
            "node \"MatMulV2_1\" (MatMulV2) of FX node \"mm_1\", module layer[0].proj (Linear), "
            "File \"/m/model.py\", line 12, in forward");
}

TEST(NodeOriginTest, AnOutputNamesTheFxNode) {
  Node node = Mm({});
  node.output_descs.emplace_back();
  EXPECT_EQ(NodeOrigin(node), "");
  node.output_descs[0].attrs.emplace("_fx_tensor_name",
                                     AttrValue::String("mm_1-aten.mm.default.OUTPUT.0"));
  EXPECT_EQ(NodeOrigin(node), "FX node \"mm_1\"");
}

TEST(NodeOriginTest, TheModelItselfIsNoModuleOfIt) {
  EXPECT_EQ(NodeOrigin(Mm({{"nn_module_stack", "{'L__self__': (\"L['self']\", <class 'M'>)}"}})),
            "");
  EXPECT_EQ(NodeOrigin(Mm({{"nn_module_stack", "{'': ('', <class 'M'>)}"}})), "");
}

// A stack comes from a file: whatever it holds, there is a text.
TEST(NodeOriginTest, OtherTextsAreNoModules) {
  for (const char* stack : {"", "{", ": (", "{'a': (", "{'a': ('b", "{'a': (b, <class 'C'>)}"}) {
    EXPECT_EQ(NodeOrigin(Mm({{"nn_module_stack", stack}})), "") << stack;
  }
  EXPECT_EQ(NodeOrigin(Mm({{"nn_module_stack", "{'a': ('b.c', <class "}})), "module b.c ()");
  EXPECT_EQ(NodeOrigin(Mm({{"nn_module_stack", "{'a': ('b.c', 3)}"}})), "module b.c");
}

}  // namespace
}  // namespace npumesh
