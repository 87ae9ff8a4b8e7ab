// Binary ModelDef to Model: examples, edges, ports, inputs, errors.
#include <gmock/gmock.h>

#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kProducer =
    "op { name: 'a' type: 'A' output_desc { } output_desc { } }"
    "op { name: 'b:c:d' type: 'A' output_desc { } }";

TEST(AirReader, ReadsWhatTorchAirBuilds) {
  const Model model = Load(kRawExample);
  const Graph& graph = model.graph;
  EXPECT_EQ(graph.name(), "graph_1");
  EXPECT_EQ(graph.nodes().size(), 8u);
  EXPECT_THAT(Inputs(graph, "Add"), ElementsAre("arg2_1:0", "arg3_1:0"));
  EXPECT_THAT(Inputs(graph, "Add_2"), ElementsAre("Add_1:0", "arg1_1:0"));
  EXPECT_THAT(Inputs(graph, "arg2_1"), ElementsAre(""));  // no entry in the file
  EXPECT_EQ(graph.node(graph.NetOutput()).name, "NetOutput");
  EXPECT_EQ(graph.DataNodes().size(), 2u);

  const TensorDesc& x = NodeOf(graph, "arg2_1").output_descs[0];
  EXPECT_EQ(x.name, "y");
  EXPECT_EQ(x.dtype, DataType::kFloat);
  EXPECT_EQ(x.shape, Shape({2, 4}));
  EXPECT_EQ(x.device_type, "NPU");
  EXPECT_EQ(*x.attrs.at("_meta").get<std::string>(),
            "Tensor(dtype=torch.float32, shape=torch.Size([2, 4])");
  EXPECT_EQ(NodeOf(graph, "Add").output_descs[0].shape, std::nullopt);  // not a scalar
  EXPECT_EQ(NodeOf(graph, "arg0_1").output_descs[0].name, "");

  const AttrValue* value = NodeOf(graph, "arg0_1").FindAttr("value");
  ASSERT_NE(value, nullptr);
  const TensorAttr* tensor = value->get<TensorAttr>();
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->desc->shape, Shape({2, 4}));
  EXPECT_EQ(tensor->data->size(), 32u);
  for (const Node& node : graph.nodes()) {
    EXPECT_EQ(node.FindAttr("_input_name_key"), nullptr);
    EXPECT_EQ(node.FindAttr("_output_name_value"), nullptr);
  }
}

TEST(AirReader, ReadsTheTwoDtypeNumberings) {
  const Model model = Load(kAllReduceExample);
  const Node& weight = NodeOf(model.graph, "arg0_1");
  EXPECT_EQ(weight.FindAttr("dtype")->get<DataTypeAttr>()->number, 0);  // float
  EXPECT_EQ(NodeOf(model.graph, "arg2_1").output_descs[0].dtype, DataType::kInt32);
  EXPECT_EQ(NodeOf(model.graph, "Cast").IntAttr("dst_type", -1), 0);
  EXPECT_EQ(NodeOf(model.graph, "HcomAllReduce").StringAttr("group", ""), "tag=;rank_list=0,1");
}

TEST(AirReader, ResolvesEdges) {
  struct Case {
    std::string_view inputs;
    std::vector<std::string> expected;
  };
  const Case cases[] = {
      {"", {"", "", ""}},
      {"input: 'a:0' input: '' input: 'a:1'", {"a:0", "", "a:1"}},
      {"input: 'a:-1' input: 'a:1' input: 'a:0'", {"a:1", "a:0", "", "^a"}},
      {"input: 'a:1' input: 'a:0' input: 'a:-1'", {"a:1", "a:0", "", "^a"}},
      {"input: 'a:1' input: 'b:c:d:-7' input: '' input: 'a:0'", {"a:1", "", "a:0", "^b:c:d"}},
      {"input: 'b:c:d:0' input: 'b:c:d:0'", {"b:c:d:0", "b:c:d:0", ""}},
      {"input: 'nocolon' input: 'a:0'", {"", "a:0", ""}},
      {"input: 'a:x' input: 'a:' input: 'a: +1z'", {"a:0", "a:0", "a:1"}},
      {"input: '' input: '' input: '' input: ''", {"", "", ""}},
  };
  for (const Case& c : cases) {
    const Model model = Load(
        OneGraph(fmt::format("{} op {{ name: 'n' type: 'N' {} input_desc {{ }} input_desc {{ }} "
                             "input_desc {{ }} }}",
                             kProducer, c.inputs)));
    EXPECT_EQ(Inputs(model.graph, "n"), c.expected) << c.inputs;
  }
}

TEST(AirReader, ErrorsNameFileNodeAndField) {
  struct Case {
    std::string text;
    std::string_view expected;
  };
  const auto with = [](std::string_view node) {
    return OneGraph(fmt::format("{} op {{ name: 'n' type: 'N' {} }}", kProducer, node));
  };
  const Case cases[] = {
      {with("input_desc { } input: 'Foo:0'"),
       "test.air: graph \"g\" node \"n\" input 0: producer \"Foo\" does not exist"},
      {with("input: 'Foo:-1'"), "node \"n\" input Foo:-1: producer \"Foo\" does not exist"},
      {with("input_desc { } input: 'a:2'"),
       "node \"n\" input 0: output 2 of \"a\" does not exist; it has 2"},
      {with("input_desc { } input: 'a:99999999999999999999'"), "output 2147483647 of \"a\""},
      {with("input: 'a:0'"), "node \"n\" input 0: fed by \"a:0\", but there are 0 input_desc"},
      {OneGraph("op { name: 'n' type: 'N' } op { name: 'n' type: 'N' }"),
       "graph \"g\" node \"n\": a second op of this name, at position 1"},
      {OneGraph("op { type: 'N' }"), "graph \"g\" op 0: name is empty"},
      {OneGraph("op { name: 'n' }"), "graph \"g\" op 0: type is empty"},
      {OneGraph("op { name: 'a' type: 'A' input: 'b:0' input_desc { } output_desc { } }"
                "op { name: 'b' type: 'A' input: 'a:0' input_desc { } output_desc { } }"),
       "cycle"},
      {OneGraph("op { name: 'a' type: 'A' input: 'a:-1' }"), "cycle"},
      {OneGraph("input: 'x:0'"), "graph \"g\" input \"x:0\": no such node"},
      {OneGraph("output: 'x:0'"), "graph \"g\" output \"x:0\": no such node"},
      {OneGraph("op { name: 'a' type: 'A' output_desc { shape { dim: -3 } } }"),
       "dimension -3 in shape [-3]"},
      {OneGraph("op { name: 'o' type: 'NetOutput' } op { name: 'p' type: 'NetOutput' }"),
       "a second NetOutput"},
      {"name: 'm'", "the ModelDef has no graph"},
      {"graph { name: 'g' } graph { name: 's' } graph { name: 's' }",
       "graph \"s\": a second graph of this name, at position 2"},
      {"graph { name: 'g' op { name: 'i' type: 'If' subgraph_name: 'then' } } graph { name: 's' }",
       "graph \"g\" node \"i\": subgraph \"then\" is not in the file"},
  };
  for (const Case& c : cases) EXPECT_THAT(LoadError(c.text), HasSubstr(c.expected)) << c.text;
}

// A graph without NetOutput names its outputs in graph.output.
TEST(AirReader, MakesTheMissingNetOutput) {
  const Model model =
      Load(OneGraph("output: 'b:c:d:0' output: 'a:1' output: 'a:1'" + std::string(kProducer)));
  const Graph& graph = model.graph;
  ASSERT_NE(graph.NetOutput(), kNoNode);
  EXPECT_THAT(Inputs(graph, "NetOutput"), ElementsAre("b:c:d:0", "a:1", "a:1"));
  EXPECT_EQ(graph.node(graph.NetOutput()).input_descs[2].name, "input2");
  EXPECT_EQ(Load(OneGraph(kProducer)).graph.NetOutput(), kNoNode);
  EXPECT_THAT(LoadError(OneGraph("output: 'a:2'" + std::string(kProducer))),
              HasSubstr("graph \"g\" output \"a:2\": expected an integer in [0, 1], got \"2\""));
}

TEST(AirReader, TakesPortIndexFromTheValueList) {
  std::string names;
  std::string indexes;
  std::string descs;
  for (const int i : {0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9}) {  // as sorted by name
    names += fmt::format("s: 'x{}' ", i);
    indexes += fmt::format("i: {} ", i);
    descs += "input_desc { } ";
  }
  const Model model = Load(OneGraph(fmt::format(
      "op {{ name: 'n' type: 'Pack' {} attr {{ key: '_input_name_key' value {{ list {{ {} }} }} }}"
      "attr {{ key: '_input_name_value' value {{ list {{ {} }} }} }} }}",
      descs, names, indexes)));
  const Node& node = NodeOf(model.graph, "n");
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(node.input_descs[static_cast<size_t>(i)].name, fmt::format("x{}", i));
  }
  EXPECT_EQ(node.FindInput("x10"), 10);
  const auto saved = FromBytes(Saved(model)).graph(0).op(0);
  EXPECT_THAT(
      saved.attr().at("_input_name_key").list().s(),
      ElementsAre("x0", "x1", "x10", "x11", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9"));
  EXPECT_THAT(saved.attr().at("_input_name_value").list().i(),
              ElementsAre(0, 1, 10, 11, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(AirReader, KeepsTableEntriesWithoutAPortAndDropsUnevenTables) {
  const Model model =
      Load(OneGraph("op { name: 'n' type: 'N' output_desc { } output_desc { name: 'own' }"
                    "attr { key: '_output_name_key' value { list { s: 'z' s: 'y' s: 'other' } } }"
                    "attr { key: '_output_name_value' value { list { i: 7 i: 0 i: 1 } } }"
                    "attr { key: '_input_name_key' value { list { s: 'x' } } } }"));
  const Node& node = NodeOf(model.graph, "n");
  EXPECT_EQ(node.output_descs[0].name, "y");
  EXPECT_EQ(node.output_descs[1].name, "own");  // the descriptor wins
  const auto attrs = FromBytes(Saved(model)).graph(0).op(0).attr();
  EXPECT_THAT(attrs.at("_output_name_key").list().s(), ElementsAre("own", "y", "z"));
  EXPECT_THAT(attrs.at("_output_name_value").list().i(), ElementsAre(1, 0, 7));
  EXPECT_FALSE(attrs.contains("_input_name_key"));
}

TEST(AirReader, ScalarOnlyWhereTheFileDeclares) {
  const Model model =
      Load(OneGraph("op { name: 'd' type: 'Data' attr { key: 'index' value { i: 0 } }"
                    "     input_desc { shape { } } output_desc { } }"
                    "op { name: 'c' type: 'Constant' output_desc { shape { } } }"
                    "op { name: 'n' type: 'N' output_desc { shape { } } }"
                    "op { name: 'u' type: 'N' output_desc { shape { dim: -2 } } }"));
  EXPECT_EQ(NodeOf(model.graph, "d").output_descs[0].shape, Shape());
  EXPECT_EQ(NodeOf(model.graph, "c").output_descs[0].shape, Shape());
  EXPECT_EQ(NodeOf(model.graph, "n").output_descs[0].shape, std::nullopt);
  EXPECT_EQ(NodeOf(model.graph, "u").output_descs[0].shape, Shape::UnknownRank());
}

TEST(AirReader, NumbersInputsOnlyWhenNeeded) {
  struct Case {
    std::vector<std::string_view> nodes;  // type and index of n0, n1, ...
    std::vector<int64_t> expected;
  };
  const Case cases[] = {
      {{"Data 1", "Data 0"}, {1, 0}},
      {{"Data 0", "Data 2"}, {0, 1}},
      {{"Data 1", "Data 1"}, {0, 1}},
      {{"Data -", "Data 0"}, {0, 1}},
      {{"RefData 1", "Data 0", "RefData 2"}, {1, 0, 2}},
      {{"RefData 0", "Data 2", "Data 1"}, {0, 2, 1}},  // any order is legal
      {{"RefData 0", "Data 0", "RefData 1"}, {1, 0, 2}},
      {{"RefData -", "Data 1", "Data 0"}, {2, 1, 0}},
  };
  for (const Case& c : cases) {
    std::string ops;
    for (size_t i = 0; i < c.nodes.size(); ++i) {
      const size_t blank = c.nodes[i].find(' ');
      const std::string_view index = c.nodes[i].substr(blank + 1);
      ops += fmt::format(
          "op {{ name: 'n{}' type: '{}' {} output_desc {{ }} }}", i, c.nodes[i].substr(0, blank),
          index == "-" ? "" : fmt::format("attr {{ key: 'index' value {{ i: {} }} }}", index));
    }
    const Model model = Load(OneGraph(ops));
    std::vector<int64_t> indexes;
    for (const Node& node : model.graph.nodes()) indexes.push_back(node.IntAttr("index", -1));
    EXPECT_EQ(indexes, c.expected) << ops;
  }
}

TEST(AirReader, ReadsSubgraphs) {
  const Model model = Load(
      "graph { name: 'main' op { name: 'i' type: 'If' subgraph_name: 'then' subgraph_name: 'else' "
      "subgraph_name: '' } } graph { name: 'then' } graph { name: 'else' } graph { name: 'spare' "
      "}");
  EXPECT_THAT(NodeOf(model.graph, "i").subgraphs, ElementsAre("then", "else", ""));
  EXPECT_NE(model.FindSubgraph("else"), nullptr);
  EXPECT_EQ(model.subgraphs.size(), 3u);
  EXPECT_EQ(FromBytes(Saved(model)).graph_size(), 4);
}

TEST(AirReader, TakesUnpackedNumbers) {
  // op 6 { name "n", type "N", output_desc { shape { dim 3, dim 4 unpacked } } }
  const std::string shape = {0x08, 3, 0x08, 4};
  const std::string desc = std::string{0x1a, 4} + shape;
  const std::string op =
      std::string{0x0a, 1, 'n', 0x12, 1, 'N'} + std::string{static_cast<char>(0x92), 2, 6} + desc;
  const std::string graph = std::string{0x32, static_cast<char>(op.size())} + op;
  const auto model =
      ParseModel(std::string{0x3a, static_cast<char>(graph.size())} + graph, "unpacked.air");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(NodeOf(model->graph, "n").output_descs[0].shape, Shape({3, 4}));
}

TEST(AirReader, RefusesWhatIsNoModel) {
  EXPECT_EQ(ParseModel("", "f").status().message(), "f: not a model: the file is empty");
  EXPECT_THAT(std::string(ParseModel("1", "f").status().message()), HasSubstr("f: not a model"));
  EXPECT_EQ(ParseModel("1", "f").status().code(), Code::kCorrupt);
  EXPECT_EQ(LoadModel("/no/such/file.air").status().code(), Code::kNotFound);
  const std::string whole = FromText(kRawExample).SerializeAsString();
  EXPECT_THAT(std::string(ParseModel(whole.substr(0, 500), "f").status().message()),
              HasSubstr("f: the 500 bytes are not a binary ge.proto.ModelDef"));
}

TEST(AirReader, ReadsMoreThan64MebibytesAndMovesThem) {
  ge::proto::ModelDef def;
  auto* op = def.add_graph()->add_op();
  op->set_name("c");
  op->set_type("Const");
  op->add_output_desc();
  (*op->mutable_attr())["value"].mutable_t()->set_data(std::string(70u << 20, 'x'));
  const auto model = ParseModel(def.SerializeAsString(), "large.air");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(NodeOf(model->graph, "c").FindAttr("value")->get<TensorAttr>()->data->size(),
            70u << 20);
}

}  // namespace
}  // namespace npumesh::testing
