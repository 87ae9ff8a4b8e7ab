#include <google/protobuf/stubs/strutil.h>

#include <map>
#include <set>

#include "graph/io/graph_text.h"
#include "graph/io/model_codec.h"
#include "runtime/base/type_numbers.h"

namespace npumesh {
namespace {

constexpr int kWithoutTexts = 2;
constexpr int kEdgesOnly = 3;

// 0 (undefined) where ge.onnx has none, which knows numbers only, and no bfloat16.
int OnnxType(DataType dtype) {
  const bool known = IsFloating(dtype) || IsInteger(dtype) || dtype == DataType::kBool;
  return known && dtype != DataType::kBfloat16 ? OnnxNumber(dtype) : 0;
}

// One attribute of a node. Zero and empty values are left out, as GE does: the type tells.
struct OnnxAttr {
  std::string_view type;  // "INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS"
  std::vector<std::string> values;
  bool is_text = false;
};

std::string Quoted(const std::string& bytes) {
  return "\"" + google::protobuf::CEscape(bytes) + "\"";
}

OnnxAttr Int(int64_t value) {
  return {"INT", value == 0 ? std::vector<std::string>() : std::vector{fmt::format("{}", value)}};
}

OnnxAttr Float(float value) {
  return {"FLOAT", value == 0 ? std::vector<std::string>() : std::vector{fmt::format("{}", value)}};
}

OnnxAttr Ints(const std::vector<int64_t>& values) {
  OnnxAttr attr{"INTS"};
  for (const int64_t value : values) attr.values.push_back(fmt::format("{}", value));
  return attr;
}

OnnxAttr Text(const std::string& value) {
  return {"STRING", value.empty() ? std::vector<std::string>() : std::vector{Quoted(value)}, true};
}

OnnxAttr List(const ListAttr& list) {
  if (!list.f.empty()) {
    OnnxAttr attr{"FLOATS"};
    for (const float value : list.f) attr.values.push_back(fmt::format("{}", value));
    return attr;
  }
  if (!list.s.empty() || list.kind == ListKind::kString) {
    OnnxAttr attr{"STRINGS", {}, true};
    for (const std::string& value : list.s) attr.values.push_back(Quoted(value));
    return attr;
  }
  if (!list.b.empty()) return Ints({list.b.begin(), list.b.end()});
  return Ints(list.i);
}

std::string DimsText(const TensorDesc& desc) {
  std::string text;
  const Shape shape = desc.shape.value_or(Shape());
  for (const int64_t dim : shape.dims()) {
    text += fmt::format("            dim {{\n              dim_value: {}\n            }}\n", dim);
  }
  return text;
}

class OnnxWriter {
 public:
  OnnxWriter(const Model& model, int level) : model_(model), level_(level) {}

  std::string Write() {
    text_ = "ir_version: 6\nproducer_name: \"GE\"\n";
    if (model_.version != 0) text_ += fmt::format("model_version: {}\n", model_.version);
    text_ += "graph {\n";
    WriteGraph(model_.graph);
    for (const Graph& graph : model_.subgraphs) WriteSubgraph(graph);
    text_ += "}\n";
    return std::move(text_);
  }

 private:
  using Attrs = std::map<std::string, OnnxAttr>;

  void WriteGraph(const Graph& graph) {
    for (const Node& node : graph.nodes()) {
      for (const NodeId control : node.controls) controllers_.insert(&graph.node(control));
    }
    int64_t number = 0;
    for (const NodeId id : FileOrder(graph)) WriteNode(graph, graph.node(id), number++);
    text_ += fmt::format("  name: {}\n", Quoted(graph.name()));
    const NodeId sink = graph.NetOutput();
    if (sink != kNoNode) WriteOutputs(graph, graph.node(sink));
  }

  // A pseudo-node that holds the whole graph.
  void WriteSubgraph(const Graph& graph) {
    text_ += fmt::format(
        "  node {{\n    name: {0}\n    op_type: \"subgraph\"\n    attribute {{\n      name: {0}\n"
        "      g {{\n",
        Quoted(graph.name()));
    WriteGraph(graph);
    text_ += "      }\n      type: GRAPH\n    }\n  }\n";
  }

  void WriteNode(const Graph& graph, const Node& node, int64_t number) {
    text_ += "  node {\n";
    const auto line = [this](std::string_view key, const std::string& value) {
      text_ += fmt::format("    {}: {}\n", key, Quoted(value));
    };
    for (const std::optional<Value>& input : node.inputs) {
      line("input", input ? fmt::format("{}:{}", graph.node(input->node).name, input->port) : "");
    }
    for (const NodeId control : node.controls) line("input", graph.node(control).name + ":-1");
    for (size_t i = 0; i < node.output_descs.size(); ++i) {
      line("output", fmt::format("{}:{}", node.name, i));
    }
    if (controllers_.count(&node) > 0) line("output", node.name + ":-1");
    line("name", node.name);
    line("op_type", "ge:" + node.type);
    if (level_ < kEdgesOnly) WriteAttrs(AttrsOf(node, number));
    text_ += "  }\n";
  }

  Attrs AttrsOf(const Node& node, int64_t number) const {
    Attrs attrs = {{"id", Int(number)},
                   {"input_desc_nums", Int(static_cast<int64_t>(node.input_descs.size()))},
                   {"output_desc_nums", Int(static_cast<int64_t>(node.output_descs.size()))}};
    for (const auto& [descs, side] : {std::pair(&node.input_descs, "input_desc"),
                                      std::pair(&node.output_descs, "output_desc")}) {
      for (size_t i = 0; i < descs->size(); ++i) AddDesc((*descs)[i], side, i, attrs);
    }
    for (const auto& [name, value] : node.attrs) AddAttr(name, value, attrs);
    return attrs;
  }

  static void AddDesc(const TensorDesc& desc, std::string_view side, size_t index, Attrs& attrs) {
    const auto key = [&](std::string_view what) {
      return fmt::format("{}_{}:{}", side, what, index);
    };
    attrs.emplace(key("dtype"), Text(std::string(SerialName(desc.dtype))));
    attrs.emplace(key("shape"), Ints(desc.shape.value_or(Shape()).dims()));
    attrs.emplace(key("layout"), Text(desc.layout));
    attrs.emplace(key("device_type"), Text(desc.device_type));
  }

  // Dtype attributes have no place in this form.
  void AddAttr(const std::string& name, const AttrValue& value, Attrs& attrs) const {
    if (const auto* v = value.get<int64_t>()) {
      attrs.emplace(name, Int(*v));
    } else if (const auto* v = value.get<bool>()) {
      attrs.emplace(name, Int(*v ? 1 : 0));
    } else if (const auto* v = value.get<float>()) {
      attrs.emplace(name, Float(*v));
    } else if (const auto* v = value.get<std::string>()) {
      attrs.emplace(name, Text(*v));
    } else if (const auto* v = value.get<ListAttr>()) {
      attrs.emplace(name, List(*v));
    } else if (const auto* v = value.get<ListListInt>()) {
      for (size_t i = 0; i < v->values.size(); ++i) {
        attrs.emplace(fmt::format("{}_{}", name, i), Ints(v->values[i]));
      }
    } else if (const auto* v = value.get<TensorAttr>()) {
      attrs.emplace(name + "_desc_dtype", Text(std::string(SerialName(v->desc->dtype))));
      attrs.emplace(name + "_desc_shape", Ints(v->desc->shape.value_or(Shape()).dims()));
      attrs.emplace(name + "_desc_layout", Text(v->desc->layout));
      attrs.emplace(name + "_data", Text(*v->data));
    }
  }

  void WriteAttrs(const Attrs& attrs) {
    static const auto* const fields = new std::map<std::string_view, std::string_view>{
        {"INT", "i"},     {"FLOAT", "f"},       {"STRING", "s"},
        {"INTS", "ints"}, {"FLOATS", "floats"}, {"STRINGS", "strings"}};
    for (const auto& [name, attr] : attrs) {
      if (attr.is_text && level_ >= kWithoutTexts) continue;
      text_ += fmt::format("    attribute {{\n      name: {}\n", Quoted(name));
      for (const std::string& value : attr.values) {
        text_ += fmt::format("      {}: {}\n", fields->at(attr.type), value);
      }
      text_ += fmt::format("      type: {}\n    }}\n", attr.type);
    }
  }

  void WriteOutputs(const Graph& graph, const Node& sink) {
    for (size_t i = 0; i < sink.inputs.size(); ++i) {
      if (!sink.inputs[i]) continue;
      const TensorDesc& desc = sink.input_descs[i];
      text_ += fmt::format(
          "  output {{\n    name: {}\n    type {{\n      tensor_type {{\n        elem_type: {}\n"
          "        shape {{\n{}        }}\n      }}\n    }}\n  }}\n",
          Quoted(graph.node(sink.inputs[i]->node).name), OnnxType(desc.dtype), DimsText(desc));
    }
  }

  const Model& model_;
  const int level_;
  std::set<const Node*> controllers_;  // nodes that others wait for without data
  std::string text_;
};

}  // namespace

std::string ToOnnxText(const Model& model, int level) {
  return OnnxWriter(model, level).Write();
}

}  // namespace npumesh
