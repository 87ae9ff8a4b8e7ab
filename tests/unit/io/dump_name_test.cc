// Names of graph dumps of all generations.
#include "graph/io/dump_name.h"

#include <gtest/gtest.h>

namespace npumesh {
namespace {

TEST(DumpName, ReadsAllGenerations) {
  struct Case {
    std::string_view name;
    DumpName expected;
  };
  const Case cases[] = {
      {"ge_proto_00000012_graph_1_PreRunBegin.txt", {"proto", 12, 1, "PreRunBegin"}},
      {"ge_proto_00000003_aclop_graph_2_Build.txt", {"proto", 3, 2, "Build"}},
      {"ge_onnx_00000001_aclop_graph_11_Build.pbtxt", {"onnx", 1, 11, "Build"}},
      {"ge_onnx_00000001_graph_11_Build.pbtxt", {"onnx", 1, 11, "Build"}},
      {"ge_readable_00000004_graph_0_AfterInfershape.txt", {"readable", 4, 0, "AfterInfershape"}},
      {"ge_proto_00000062_Build.txt", {"proto", 62, std::nullopt, "Build"}},
      {"ge_proto_00056_Build.txt", {"proto", 56, std::nullopt, "Build"}},
      {"ge_proto_00000001_graph_1_OptimizeSubGraphAfter_sub_graph_3.txt",
       {"proto", 1, 1, "OptimizeSubGraphAfter_sub_graph_3"}},
      {"ge_proto_00000001_graph_x_y.txt", {"proto", 1, std::nullopt, "graph_x_y"}},
  };
  for (const Case& c : cases) {
    const auto name = ParseDumpName(c.name);
    ASSERT_TRUE(name.has_value()) << c.name;
    EXPECT_EQ(*name, c.expected) << c.name;
  }
}

TEST(DumpName, RefusesOtherNames) {
  for (std::string_view name :
       {"", "ge_", "ge_proto_", "ge_proto_x_Build.txt", "ge_proto_1_Build.json", "ge_proto_1_.txt",
        "ge_proto_1.txt", "ge_text_1_Build.txt", "dynamo.pbtxt",
        "ge_proto_99999999999999999999_Build.txt"}) {
    EXPECT_FALSE(ParseDumpName(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace npumesh
