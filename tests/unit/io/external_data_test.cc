// Constants whose bytes stand beside the model file.
#include <gmock/gmock.h>

#include <filesystem>

#include "graph/io/weights.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

using ::testing::HasSubstr;

std::string ConstWith(std::string_view attrs) {
  return OneGraph(
      fmt::format("op {{ name: 'c' type: 'Const' output_desc {{ }} {} "
                  "attr {{ key: 'value' value {{ t {{ desc {{ dtype: DT_UINT8 shape {{ dim: 4 }} "
                  "}} }} }} }} }}",
                  attrs));
}

constexpr std::string_view kLocation = "attr { key: 'location' value { s: 'air_weight/w' } } ";

TEST(ExternalData, IsReadBesideTheModel) {
  const TemporaryFolder folder;
  PutFile(folder.Path("air_weight/w"), "abcdefgh");
  const auto model =
      Parse(ConstWith(std::string(kLocation) + "attr { key: 'length' value { i: 4 } }"),
            folder.Path("m.air"));
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const Node& node = NodeOf(model->graph, "c");
  EXPECT_EQ(*node.FindAttr("value")->get<TensorAttr>()->data, "abcd");
  EXPECT_EQ(node.FindAttr("location"), nullptr);
  EXPECT_EQ(node.FindAttr("length"), nullptr);
  const auto weight = LoadWeight(node, model->path);
  ASSERT_TRUE(weight.ok());
  EXPECT_EQ(weight->as<uint8_t>()[3], 'd');
}

TEST(ExternalData, OneAttributeAloneMeansNothing) {
  const Model model = Load(ConstWith(kLocation));
  EXPECT_NE(NodeOf(model.graph, "c").FindAttr("location"), nullptr);
}

TEST(ExternalData, ALinkMayNotLeaveTheFolder) {
  const TemporaryFolder folder;
  PutFile(folder.Path("outside"), "abcd");
  PutFile(folder.Path("mp/air_weight/inside"), "efgh");
  const std::string text =
      ConstWith(std::string(kLocation) + "attr { key: 'length' value { i: 4 } }");
  std::filesystem::create_symlink("../../outside", folder.Path("mp/air_weight/w"));
  const Status status = Parse(text, folder.Path("mp/m.air")).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a link that leaves the folder"));
  std::filesystem::remove(folder.Path("mp/air_weight/w"));
  std::filesystem::create_symlink("inside", folder.Path("mp/air_weight/w"));
  EXPECT_TRUE(Parse(text, folder.Path("mp/m.air")).ok());
}

TEST(ExternalData, Errors) {
  const TemporaryFolder folder;
  PutFile(folder.Path("air_weight/w"), "abc");
  struct Case {
    std::string attrs;
    Code code;
    std::string_view expected;
  };
  const std::string length = "attr { key: 'length' value { i: 4 } }";
  const Case cases[] = {
      {std::string(kLocation) + length, Code::kCorrupt, "length 4 of location"},
      {std::string(kLocation) + "attr { key: 'length' value { i: -1 } }", Code::kCorrupt, "-1"},
      {"attr { key: 'location' value { s: 'air_weight/none' } }" + length, Code::kNotFound,
       "air_weight/none"},
      {"attr { key: 'location' value { s: '../w' } }" + length, Code::kInvalidArgument,
       "leaves the folder"},
      {"attr { key: 'location' value { s: 'a/../../w' } }" + length, Code::kInvalidArgument,
       "leaves the folder"},
      {"attr { key: 'location' value { s: '/etc/passwd' } }" + length, Code::kInvalidArgument,
       "leaves the folder"},
      {"attr { key: 'location' value { s: '' } }" + length, Code::kInvalidArgument,
       "leaves the folder"},
  };
  for (const Case& c : cases) {
    const Status status = Parse(ConstWith(c.attrs), folder.Path("m.air")).status();
    EXPECT_EQ(status.code(), c.code) << c.attrs;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.expected));
    EXPECT_THAT(std::string(status.message()), HasSubstr("m.air: graph \"g\" node \"c\""));
  }
  EXPECT_THAT(
      LoadError(OneGraph("op { name: 'c' type: 'Const' " + std::string(kLocation) + length + "}")),
      HasSubstr("no tensor attribute \"value\""));
}

}  // namespace
}  // namespace npumesh::testing
