// Load, save, load: nothing is lost, and from the first save on the bytes stay.
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>

#include "tests/unit/io/models.h"

namespace npumesh::testing {
namespace {

using google::protobuf::Message;
using google::protobuf::util::MessageDifferencer;
namespace pb = ge::proto;

void ExpectStable(const std::string& bytes) {
  const auto first = ParseModel(bytes, "first.air");
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  const std::string saved = Saved(*first);
  const auto second = ParseModel(saved, "second.air");
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(Saved(*second), saved);
}

TEST(RoundTrip, ExamplesAreStable) {
  for (std::string_view text : {kRawExample, kGeExample, kAllReduceExample}) {
    ExpectStable(FromText(text).SerializeAsString());
  }
}

TEST(RoundTrip, GeFormComesBackAsItWas) {
  pb::ModelDef saved = FromBytes(Saved(Load(kGeExample)));
  for (auto& op : *saved.mutable_graph(0)->mutable_op()) {
    for (auto& desc : *op.mutable_input_desc()) desc.clear_name();
    for (auto& desc : *op.mutable_output_desc()) desc.clear_name();
  }
  std::string difference;
  MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&difference);
  EXPECT_TRUE(differencer.Compare(FromText(kGeExample), saved)) << difference;
}

// Every alternative of AttrDef, each list member, empty and unset values.
constexpr std::string_view kAttrs = R"(
  attr { key: "none" value { } }
  attr { key: "i" value { i: 0 } }
  attr { key: "f" value { f: -0.5 } }
  attr { key: "b" value { b: false } }
  attr { key: "s" value { s: "\377\000'\"" } }
  attr { key: "bt" value { bt: "\001" } }
  attr { key: "dt" value { dt: 99 } }
  attr { key: "expr" value { expression: "s0*2" } }
  attr { key: "g" value { g { name: "inner" op { name: "o" type: "T" } } } }
  attr { key: "td" value { td { dtype: DT_INT8 shape { dim: 3 } layout: "NHWC" size: 5
    attr { key: "format_for_int" value { i: 1 } } attr { key: "origin_format" value { s: "ND" } }
    attr { key: "origin_format_for_int" value { i: 2 } }
    attr { key: "origin_shape_initialized" value { b: false } } device_type: "CPU" } } }
  attr { key: "func" value { func { name: "f" attr { key: "k" value { func { name: "deep" } } } } } }
  attr { key: "ints" value { list_list_int { list_list_i { list_i: 1 list_i: 2 } list_list_i { } } } }
  attr { key: "floats" value { list_list_float { list_list_f { list_f: 0.25 } } } }
  attr { key: "no_rows" value { list_list_int { } } }
  attr { key: "empty" value { list { } } }
  attr { key: "typed" value { list { val_type: VT_LIST_FLOAT } } }
  attr { key: "odd" value { list { i: 1 s: "ND" val_type: 77 } } }
  attr { key: "many" value { list { s: "a" i: 7 f: 1.5 b: true b: false dt: 27 bt: "x"
    td { name: "p" dtype: DT_BF16 } t { data: "zz" } g { name: "gg" } na { name: "n" } } } })";

TEST(RoundTrip, EveryKindOfAttributeSurvives) {
  const std::string text =
      OneGraph(fmt::format("op {{ name: 'n' type: 'N' {} }} {}", kAttrs, kAttrs)) +
      std::string(kAttrs);
  const pb::ModelDef original = FromText(text);
  const Model model = Load(text);
  const Node& node = NodeOf(model.graph, "n");
  EXPECT_EQ(node.FindAttr("none")->kind(), "opaque");
  EXPECT_EQ(node.FindAttr("expr")->kind(), "opaque");
  EXPECT_EQ(node.FindAttr("many")->get<ListAttr>()->b, (std::vector<bool>{true, false}));
  EXPECT_EQ(node.FindAttr("ints")->get<ListListInt>()->values,
            (std::vector<std::vector<int64_t>>{{1, 2}, {}}));
  EXPECT_EQ(static_cast<int>(node.FindAttr("odd")->get<ListAttr>()->kind), 77);
  const pb::ModelDef saved = FromBytes(Saved(model));
  for (const auto& [key, attr] : original.attr()) {
    EXPECT_TRUE(MessageDifferencer::Equals(saved.attr().at(key), attr)) << key;
    EXPECT_TRUE(MessageDifferencer::Equals(saved.graph(0).attr().at(key), attr)) << key;
    EXPECT_TRUE(MessageDifferencer::Equals(saved.graph(0).op(0).attr().at(key), attr)) << key;
  }
  ExpectStable(original.SerializeAsString());
}

constexpr int kUnknownField = 500;

void AddUnknown(Message* message) {
  message->GetReflection()->MutableUnknownFields(message)->AddLengthDelimited(kUnknownField,
                                                                              "future");
}

void ExpectUnknown(const Message& message, std::string_view where) {
  const auto& fields = message.GetReflection()->GetUnknownFields(message);
  ASSERT_EQ(fields.field_count(), 1) << where;
  EXPECT_EQ(fields.field(0).number(), kUnknownField) << where;
  EXPECT_EQ(fields.field(0).length_delimited(), "future") << where;
}

TEST(RoundTrip, UnknownFieldsSurviveInEveryMessage) {
  pb::ModelDef def = FromText(OneGraph(
      "op { name: 'n' type: 'N' output_desc { shape { dim: 2 } }"
      "attr { key: 'i' value { i: 4 } } attr { key: 'list' value { list { i: 1 } } }"
      "attr { key: 't' value { t { desc { shape { dim: 1 } } data: 'x' } } }"
      "attr { key: 'td' value { td { } } } attr { key: 'func' value { func { name: 'f' } } }"
      "attr { key: 'll' value { list_list_int { list_list_i { list_i: 1 } } } } }"));
  pb::OpDef* op = def.mutable_graph(0)->mutable_op(0);
  auto& attrs = *op->mutable_attr();
  AddUnknown(&def);
  AddUnknown(def.mutable_graph(0));
  AddUnknown(op);
  AddUnknown(op->mutable_output_desc(0));
  AddUnknown(op->mutable_output_desc(0)->mutable_shape());
  AddUnknown(&attrs["i"]);
  AddUnknown(attrs["list"].mutable_list());
  AddUnknown(attrs["t"].mutable_t());
  AddUnknown(attrs["t"].mutable_t()->mutable_desc()->mutable_shape());
  AddUnknown(attrs["td"].mutable_td());
  AddUnknown(attrs["func"].mutable_func());
  AddUnknown(attrs["ll"].mutable_list_list_int()->mutable_list_list_i(0));

  const auto model = ParseModel(def.SerializeAsString(), "unknown.air");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(NodeOf(model->graph, "n").IntAttr("i", 0), 4);
  const pb::ModelDef saved = FromBytes(Saved(*model));
  const pb::OpDef& out = saved.graph(0).op(0);
  ExpectUnknown(saved, "model");
  ExpectUnknown(saved.graph(0), "graph");
  ExpectUnknown(out, "op");
  ExpectUnknown(out.output_desc(0), "desc");
  ExpectUnknown(out.output_desc(0).shape(), "shape");
  EXPECT_EQ(out.output_desc(0).shape().dim(0), 2);
  ExpectUnknown(out.attr().at("i"), "attr");
  EXPECT_EQ(out.attr().at("i").i(), 4);
  ExpectUnknown(out.attr().at("list").list(), "list");
  ExpectUnknown(out.attr().at("t").t(), "tensor");
  ExpectUnknown(out.attr().at("t").t().desc().shape(), "tensor shape");
  ExpectUnknown(out.attr().at("td").td(), "attr desc");
  ExpectUnknown(out.attr().at("func").func(), "func");
  ExpectUnknown(out.attr().at("ll").list_list_int().list_list_i(0), "row");
  EXPECT_EQ(out.attr().at("ll").list_list_int().list_list_i(0).list_i(0), 1);
  ExpectStable(def.SerializeAsString());
}

TEST(RoundTrip, AttributeGroupsAndCompileProductsSurvive) {
  const std::string text = R"(
    version: 3 custom_version: "c" name: "m"
    attr_groups { other_group_def { attr { key: "k" value { i: 1 } } } }
    graph { name: "g"
      attr_groups { attr_group_def { shape_env_attr_group { unique_sym_id: 4
        symbol_to_value { key: "s0" value: 7 } } } }
      op { name: "n" type: "N"
        attr_groups { attr_group_def { op_attr_group { name: "a" } }
                      attr_group_def { asc_graph_attr_group { tiling_key: 2 } }
                      attr_group_def { asc_node_attr_group { type: "t" } }
                      attr_group_def { asc_tensor_attr_group { dtype: 5 } } }
        has_out_attr: true id: 5 stream_id: 6 input_name: "x" src_name: "p" src_index: 1
        dst_name: "q" dst_index: 2 input_i: 3 output_i: 4 workspace: 5 workspace_bytes: 6
        is_input_const: true
        output_desc { has_out_attr: true size: 1 weight_size: 2 reuse_input: true
          output_tensor: true input_tensor: true real_dim_cnt: 3 reuse_input_index: 4
          data_offset: 5 cmps_size: 6 cmps_tab: "tab" cmps_tab_offset: 7
          attr_groups { attr_group_def { tensor_attr_group { origin_symbol_shape: "s0" } } }
          attr { key: "size" value { i: 9 } } } } })";
  const pb::ModelDef original = FromText(text);
  const pb::ModelDef saved = FromBytes(Saved(Load(text)));
  EXPECT_EQ(saved.name(), "m");
  EXPECT_EQ(saved.version(), 3u);
  EXPECT_EQ(saved.custom_version(), "c");
  EXPECT_TRUE(MessageDifferencer::Equals(saved.attr_groups(), original.attr_groups()));
  EXPECT_TRUE(
      MessageDifferencer::Equals(saved.graph(0).attr_groups(), original.graph(0).attr_groups()));
  pb::OpDef op = saved.graph(0).op(0);
  pb::TensorDescriptor* desc = op.mutable_output_desc(0);
  desc->clear_shape();
  desc->clear_device_type();
  for (const char* added :
       {"format_for_int", "origin_format", "origin_format_for_int", "origin_shape_initialized"}) {
    desc->mutable_attr()->erase(added);
  }
  EXPECT_TRUE(MessageDifferencer::Equals(op, original.graph(0).op(0))) << op.DebugString();
}

}  // namespace
}  // namespace npumesh::testing
