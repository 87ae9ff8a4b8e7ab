// Text forms: ge_proto, GraphDef dumps, NodeDef-like pbtxt, and how they are told apart.
#include <gmock/gmock.h>

#include "graph/io/python_bytes.h"
#include "graph/ir/graph_builder.h"
#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Model ParseOk(std::string text) {
  auto model = ParseModel(std::move(text), "test.txt");
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? *std::move(model) : Model();
}

std::string ParseError(std::string text) {
  return ParseModel(std::move(text), "test.txt").status().ToString();
}

TEST(TextForms, ModelDefTextIsTheSameModel) {
  EXPECT_EQ(Saved(ParseOk(std::string(kRawExample))), Saved(Load(kRawExample)));
}

TEST(TextForms, GraphDefTextIsAModelOfOneGraph) {
  const Model model = ParseOk(
      "# a TorchAir txt dump\nname: \"graph_3\"\n"
      "op { name: \"a\" type: \"A\" output_desc { } }\n"
      "op { name: \"op { # }\" type: 'B' input: \"a:0\" input_desc < > }\n"
      "attr { key: \"_executor_type\" value { i: 1 } }\n");
  EXPECT_EQ(model.graph.name(), "graph_3");
  EXPECT_THAT(Inputs(model.graph, "op { # }"), ElementsAre("a:0"));
}

TEST(TextForms, GeProtoTextTakesWhatRealFilesHold) {
  const Model model = ParseOk(
      "graph {\n  name: \"g\"\n  op {\n    name: \"n\\303\\244/x.y:z\"\n    type: \"Constant\"\n"
      "    attr { key: \"ge.key\" value { list { } } }\n"
      "    attr { key: \"ll\" value { list_list_int { } } }\n"
      "    attr { key: \"blob\" value { s: \"\\377\\000\" } }\n"
      "    attr { key: \"_src_out_peer_index_for_ge_txt_load\" value { list { i: 0 } } }\n"
      "    has_out_attr: true dst_name: \"q\" dst_index: 0 output_i: [1, 2] workspace: 4\n"
      "    output_desc { dtype: 99 shape { dim: [1, 2] dim: 3 } layout: \"NC1HWC0\" size: 12 }\n"
      "  }\n}\n");
  const Node& node = NodeOf(model.graph, "n\303\244/x.y:z");
  EXPECT_EQ(node.output_descs[0].shape, Shape({1, 2, 3}));
  EXPECT_EQ(node.FindAttr("_src_out_peer_index_for_ge_txt_load"), nullptr);
  EXPECT_EQ(node.StringAttr("blob", ""), std::string("\377\0", 2));
}

TEST(TextForms, GeProtoTextComesBackAndKeepsReaderOrder) {
  const Model model = Load(kRawExample);
  const std::string text = ToGeProtoText(model);
  EXPECT_EQ(Saved(ParseOk(text)), Saved(model));
  EXPECT_THAT(text, HasSubstr("key: \"_src_out_peer_index_for_ge_txt_load\""));
  GraphBuilder g("g");
  const Value x = g.Data("x", {DataType::kFloat, {2}});
  const Value a = g.Op("A", {{"x1", x}, {"x2", x}});
  g.Order(x, a);
  g.Output({x});
  const std::string built = ToGeProtoText(g.Build().value());
  EXPECT_THAT(built, HasSubstr("        list {\n          i: 0\n          i: 1\n          i: 0\n"));
  EXPECT_THAT(built, HasSubstr("        list {\n          i: -1\n"));
  EXPECT_THAT(built, HasSubstr("        list {\n          i: 2\n"));
}

TEST(TextForms, GeProtoLevelsDropWeights) {
  const Model model = Load(kRawExample);
  EXPECT_THAT(ToGeProtoText(model, 1), HasSubstr("key: \"value\""));
  for (int level : {2, 3}) {
    EXPECT_THAT(ToGeProtoText(model, level), Not(HasSubstr("key: \"value\"")));
    EXPECT_THAT(ToGeProtoText(model, level), HasSubstr("key: \"index\""));
  }
}

constexpr std::string_view kPbtxt = R"(node {
    name: "a"b\"
    op: "Data"
    attr {
        key: "index"
        value {
            s: 'i: 0\n'
        }
    }
    attr {
        key: "[o]y"
        value {
            s: 'name: "y"\ndtype: DT_BF16\nshape {\n  dim: -1\n}\nlayout: "ND"\n'
        }
    }
}
node {
    name: "c"
    op: "Const"
    attr {
        key: "value"
        value {
            s: 't {\n  desc {\n    dtype: DT_FLOAT\n    shape {\n    }\n  }\n  data: "\\000\\000\\200?"\n}\n'
        }
    }
    attr {
        key: "[o]"
        value {
            s: 'dtype: DT_FLOAT\nshape {\n}\nlayout: "ND"\n'
        }
    }
}
node {
    name: "n"
    op: "N"
    input: "a"b\:0"
    input: ""
    input: "^c"
    attr {
        key: "_input_name_key"
        value {
            s: 'list {\n  s: "x"\n  s: "b"\n}\n'
        }
    }
    attr {
        key: "_input_name_value"
        value {
            s: 'list {\n  i: 0\n  i: 1\n}\n'
        }
    }
    attr {
        key: "_output_name_key"
        value {
            s: 'list {\n}\n'
        }
    }
    attr {
        key: "_output_name_value"
        value {
            s: 'list {\n}\n'
        }
    }
    attr {
        key: "quote"
        value {
            s: 's: "\\\'"\n'
        }
    }
    attr {
        key: "[i]x"
        value {
            s: 'name: "x"\nlayout: "ND"\n'
        }
    }
    attr {
        key: "[i]b"
        value {
            s: 'name: "b"\nlayout: "ND"\n'
        }
    }
}
)";

TEST(TextForms, PbtxtIsRead) {
  const Model model = ParseOk(std::string(kPbtxt));
  const Graph& graph = model.graph;
  EXPECT_EQ(graph.name(), "graph_1");
  EXPECT_THAT(Inputs(graph, "n"), ElementsAre("a\"b\\:0", "", "^c"));
  EXPECT_EQ(NodeOf(graph, "n").input_descs[1].name, "b");
  EXPECT_EQ(NodeOf(graph, "n").StringAttr("quote", ""), "'");
  EXPECT_EQ(NodeOf(graph, "a\"b\\").output_descs[0].dtype, DataType::kBfloat16);
  const TensorAttr* value = NodeOf(graph, "c").FindAttr("value")->get<TensorAttr>();
  EXPECT_EQ(*value->data, std::string("\0\0\x80?", 4));
}

TEST(TextForms, PbtxtIsWrittenByteForByte) {
  // Data and Const get the name tables of TorchAir; the node itself comes back as it was.
  const std::string text = ToPbtxt(ParseOk(std::string(kPbtxt)));
  EXPECT_THAT(text, HasSubstr(std::string(kPbtxt.substr(kPbtxt.find("    name: \"n\"")))));
  EXPECT_THAT(text, HasSubstr("node {\n    name: \"a\"b\\\"\n    op: \"Data\"\n    attr {\n"));
  EXPECT_THAT(text, HasSubstr(R"(            s: 't {\n  desc {\n    dtype: DT_FLOAT\n    shape {\n)"
                              R"(    }\n  }\n  data: "\\000\\000\\200?"\n}\n')"));
  EXPECT_EQ(Saved(ParseOk(text)), Saved(ParseOk(std::string(kPbtxt))));
}

TEST(TextForms, PbtxtOfAModelComesBack) {
  for (std::string_view example : {kRawExample, kAllReduceExample}) {
    const Model model = Load(example);
    const Model again = ParseOk(ToPbtxt(model));
    ASSERT_EQ(again.graph.nodes().size(), model.graph.nodes().size());
    for (const Node& node : model.graph.nodes()) {
      EXPECT_EQ(Inputs(again.graph, node.name), Inputs(model.graph, node.name));
    }
    EXPECT_EQ(ToPbtxt(again), ToPbtxt(model));
  }
}

TEST(TextForms, PbtxtErrorsNameLineNodeAndAttribute) {
  struct Case {
    std::string text;
    std::string_view expected;
  };
  const Case cases[] = {
      {"node {\n    name: \"n\"\n", "test.txt: line 2: expected }, found \"end of file\""},
      {"node {\n bad: 1\n}\n", "line 2: expected name, op, input, attr or }, found \"bad: 1\""},
      {"node {\n name: n\n}\n", "line 2: expected name: \"...\""},
      {"node {\n attr {\n key: \"k\"\n value {\n i: 3\n", "line 5: expected s: '...'"},
      {"node {\n attr {\n key: \"k\"\n value {\n s: 'i: 3\\q'\n",
       "expected a quoted Python string"},
      {"node {\n name: \"n\"\n attr {\n key: \"k\"\n value {\n s: 'what: 3\\n'\n }\n }\n}\n",
       "line 6: node \"n\" attr \"k\": not the text of a ge.proto.AttrDef: line 1:5"},
      {"node {\n name: \"n\"\n op: \"N\"\n input: \"m:0\"\n}\n", "producer \"m\" does not exist"},
      {"node {\n}\nedge {\n}\n", "line 3: expected node {"},
  };
  for (const Case& c : cases) EXPECT_THAT(ParseError(c.text), HasSubstr(c.expected)) << c.text;
}

TEST(TextForms, TextErrorsNameLineAndColumn) {
  EXPECT_THAT(ParseError("graph {\n  nonsense: 3\n}\n"),
              HasSubstr("test.txt: not the text of a ge.proto.ModelDef: line 2:11"));
  EXPECT_THAT(ParseError("name: \"g\"\nop { name: \"a\" type: \"A\""),
              HasSubstr("ge.proto.GraphDef"));
  EXPECT_THAT(ParseError("hello world"), HasSubstr("a text without"));
  EXPECT_THAT(ParseError("ir_version: 6\nproducer_name: \"GE\"\ngraph { node { } }\n"),
              HasSubstr("UNSUPPORTED: test.txt: a ge_onnx dump"));
}

TEST(TextForms, NamesMustBeUtf8) {
  EXPECT_THAT(ParseError("op { name: \"\\377\" type: \"A\" }"), HasSubstr("not UTF-8"));
  EXPECT_THAT(ParseError("node {\n name: \"\xff\"\n op: \"A\"\n}\n"), HasSubstr("not UTF-8"));
}

TEST(TextForms, DeepNestingIsAnError) {
  std::string text = "graph { name: 'g' attr { key: 'k' value { ";
  constexpr int kLevels = 60;
  for (int i = 0; i < kLevels; ++i) text += "func { attr { key: 'k' value { ";
  for (int i = 0; i < kLevels; ++i) text += "} } } ";
  text += "} } }";
  EXPECT_THAT(ParseError(text), HasSubstr("ge.proto.ModelDef"));
  ge::proto::ModelDef def;
  ge::proto::AttrDef* attr = &(*def.add_graph()->mutable_attr())["k"];
  for (int i = 0; i < kLevels; ++i) attr = &(*attr->mutable_func()->mutable_attr())["k"];
  EXPECT_THAT(ParseError(def.SerializeAsString()), HasSubstr("nested deeper than 100"));
}

TEST(PythonBytes, QuotesAsPythonDoes) {
  struct Case {
    std::string bytes;
    std::string_view repr;
  };
  const Case cases[] = {
      {"", "''"},
      {"i: 0\n", R"('i: 0\n')"},
      {"it's", R"("it's")"},
      {"it's \"so\"", R"('it\'s "so"')"},
      {"\"", R"('"')"},
      {"\\000\t\r", R"('\\000\t\r')"},
      {std::string("\0\x1f\x7f\x80\xff", 5), R"('\x00\x1f\x7f\x80\xff')"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(PythonRepr(c.bytes), c.repr);
    EXPECT_EQ(FromPythonRepr(c.repr), c.bytes);
  }
  for (std::string_view bad :
       {"", "'", "'a", "a'", "'a\"", "'\\'", "'\\x1'", "'\\xgg'", "'\\q'", "'a'b'", "`a`"}) {
    EXPECT_FALSE(FromPythonRepr(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace npumesh::testing
