#include "launch/view/node_detail.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "graph/compare/measures/elements.h"
#include "graph/io/weight_places.h"
#include "graph/ir/graph_input.h"
#include "graph/ir/node_kind.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/core/signature.h"
#include "launch/report/json_parts.h"
#include "runtime/base/text/nearest_name.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

constexpr size_t kMostElements = 8;
constexpr size_t kMostText = 400;

std::string TypeText(const TensorDesc& desc) {
  if (desc.dtype == DataType::kUndefined && !desc.shape) return "";
  return TensorType{desc.dtype, desc.shape.value_or(Shape::UnknownRank())}.ToString();
}

// The first elements; empty: they are none that numbers show, or fewer than the type says.
std::string ElementsText(const TensorAttr& value) {
  const TensorType type{value.desc->dtype, value.desc->shape.value_or(Shape())};
  if (!type.shape.is_static() || !type.shape.Check().ok() || !HasNumbers(type.dtype)) return "";
  if (value.data->size() < type.bytes()) return "";
  const Result<std::vector<double>> elements = ElementsOf(Tensor::FromShared(type, value.data));
  if (!elements.ok()) return "";
  const size_t shown = std::min(elements->size(), kMostElements);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    text += fmt::format("{}{:.9g}", i == 0 ? " " : ", ", (*elements)[i]);
  }
  return text + (shown < elements->size() ? ", ..." : "");
}

std::string TensorText(const TensorAttr& value) {
  return TypeText(*value.desc) + ElementsText(value);
}

template <typename Rows>
std::string RowsText(const Rows& rows) {
  std::vector<std::string> texts;
  for (const auto& row : rows) texts.push_back(fmt::format("[{}]", fmt::join(row, ",")));
  return fmt::format("[{}]", fmt::join(texts, ","));
}

std::string Shortened(std::string text) {
  if (text.size() <= kMostText) return text;
  return text.substr(0, kMostText) + fmt::format(" ... ({} characters)", text.size());
}

std::string PortName(const std::vector<TensorDesc>& descs, size_t index, std::string_view side) {
  const bool named = index < descs.size() && !descs[index].name.empty();
  return named ? descs[index].name : fmt::format("{}{}", side, index);
}

std::string_view Name(AttrSource source) {
  constexpr std::string_view kNames[] = {"node", "default", "note"};
  return kNames[static_cast<size_t>(source)];
}

std::string SubgraphName(const Model& model, const Graph& graph) {
  return &graph == &model.graph ? "" : graph.name();
}

}  // namespace

std::string AttrText(const AttrValue& value) {
  if (const auto* tensor = value.get<TensorAttr>()) return Shortened(TensorText(*tensor));
  if (const auto* desc = value.get<TensorDescAttr>()) return TypeText(*desc->desc);
  if (const auto* bytes = value.get<BytesAttr>())
    return fmt::format("{} bytes", bytes->bytes.size());
  if (const auto* named = value.get<NamedAttrs>()) return fmt::format("function {}", named->name);
  if (const auto* rows = value.get<ListListInt>()) return Shortened(RowsText(rows->values));
  if (const auto* rows = value.get<ListListFloat>()) return Shortened(RowsText(rows->values));
  if (const auto* opaque = value.get<OpaqueAttr>()) {
    return fmt::format("{} bytes that npumesh does not read", opaque->bytes.size());
  }
  return Shortened(ValueText(value));
}

NodeDetails::NodeDetails(const Graph& graph, const OpRegistry& registry, std::string path,
                         std::string subgraph)
    : graph_(graph),
      registry_(registry),
      path_(std::move(path)),
      subgraph_(std::move(subgraph)),
      readers_(graph.nodes().size()) {
  for (const Node& node : graph.nodes()) {
    readers_[static_cast<size_t>(node.id)].resize(node.output_descs.size());
  }
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.inputs[i]) continue;
      auto& outputs = readers_[static_cast<size_t>(node.inputs[i]->node)];
      const auto port = static_cast<size_t>(node.inputs[i]->port);
      if (port < outputs.size()) {
        outputs[port].push_back(
            fmt::format("{}.{}", node.name, PortName(node.input_descs, i, "input")));
      }
    }
  }
}

std::vector<AttrDetail> NodeDetails::AttributesOf(const Node& node) const {
  const Operator* const op = registry_.Find(node.type);
  std::vector<AttrDetail> said, defaults, notes;
  for (const auto& [name, value] : node.attrs) {
    const bool note = IsBookkeeping(node, name);
    (note ? notes : said)
        .push_back({name, AttrText(value), note ? AttrSource::kNote : AttrSource::kNode});
  }
  for (const AttrSpec& spec : op == nullptr ? std::vector<AttrSpec>() : op->schema.attrs) {
    if (node.FindAttr(spec.name) != nullptr || !spec.fallback) continue;
    defaults.push_back({std::string(spec.name), AttrText(*spec.fallback), AttrSource::kDefault});
  }
  said.insert(said.end(), defaults.begin(), defaults.end());
  said.insert(said.end(), notes.begin(), notes.end());
  return said;
}

InputDetail NodeDetails::InputOf(const Node& node, size_t index) const {
  InputDetail input{PortName(node.input_descs, index, "input"), "", ""};
  if (!node.inputs[index]) return input;
  const Value& value = *node.inputs[index];
  const Node& producer = graph_.node(value.node);
  const auto port = static_cast<size_t>(value.port);
  input.from = fmt::format("{}:{}", producer.name, value.port);
  if (IsInputNode(producer)) {
    input.type = TypeText(GraphInputDesc(producer));
  } else if (port < producer.output_descs.size()) {
    input.type = TypeText(producer.output_descs[port]);
  }
  return input;
}

NodeDetail NodeDetails::Of(const Node& node) const {
  NodeDetail detail;
  detail.name = node.name;
  detail.type = node.type;
  detail.graph = subgraph_;
  detail.attributes = AttributesOf(node);
  for (size_t i = 0; i < node.inputs.size(); ++i) detail.inputs.push_back(InputOf(node, i));
  for (size_t i = 0; i < node.output_descs.size(); ++i) {
    const TensorDesc& desc = IsInputNode(node) ? GraphInputDesc(node) : node.output_descs[i];
    detail.outputs.push_back({PortName(node.output_descs, i, "output"), TypeText(desc),
                              readers_[static_cast<size_t>(node.id)][i]});
  }
  for (const NodeId id : node.controls) detail.after.push_back(graph_.node(id).name);
  detail.subgraphs = node.subgraphs;
  if (IsFileConstant(node)) {
    detail.file = node.StringAttr("location", "");
    if (detail.file.empty()) detail.file = node.StringAttr("file_path", "");
    detail.found = WeightFileOf(node, path_);
  }
  detail.known = registry_.Find(node.type) != nullptr || IsFurniture(node);
  return detail;
}

std::vector<NodeDetail> DetailsOf(const Model& model, const OpRegistry& registry) {
  std::vector<NodeDetail> all;
  const auto add = [&](const Graph& graph) {
    const NodeDetails details(graph, registry, model.path, SubgraphName(model, graph));
    for (const Node& node : graph.nodes()) {
      if (!node.removed) all.push_back(details.Of(node));
    }
  };
  add(model.graph);
  for (const Graph& graph : model.subgraphs) add(graph);
  return all;
}

Result<NodeDetail> FindDetail(const Model& model, const OpRegistry& registry,
                              std::string_view name) {
  std::vector<const Graph*> graphs = {&model.graph};
  for (const Graph& graph : model.subgraphs) graphs.push_back(&graph);
  std::vector<std::string_view> names;
  for (const Graph* graph : graphs) {
    const NodeId id = graph->Find(name);
    if (id != kNoNode)
      return NodeDetails(*graph, registry, model.path, SubgraphName(model, *graph))
          .Of(graph->node(id));
    for (const Node& node : graph->nodes()) {
      if (!node.removed) names.push_back(node.name);
    }
  }
  const std::vector<std::string> near = NearestNames(name, names);
  return Error(Code::kNotFound, "no node is called \"{}\"{}", name,
               near.empty() ? fmt::format("; the graph has {} nodes", names.size())
                            : fmt::format("; did you mean {}?", fmt::join(near, ", ")));
}

std::string ToText(const NodeDetail& node) {
  std::string text =
      fmt::format("node \"{}\" ({}){}{}\n", Quotable(node.name), Printable(node.type),
                  node.graph.empty() ? "" : " of subgraph " + Printable(node.graph),
                  node.known ? "" : ": npumesh cannot run it");
  text += fmt::format("attributes ({})\n", node.attributes.size());
  for (const AttrDetail& attr : node.attributes) {
    constexpr std::string_view kWords[] = {"", "  default", "  changes nothing"};
    text += fmt::format("  {} = {}{}\n", Printable(attr.name), Printable(attr.value),
                        kWords[static_cast<size_t>(attr.source)]);
  }
  text += fmt::format("inputs ({})\n", node.inputs.size());
  for (const InputDetail& input : node.inputs) {
    text += fmt::format("  {:<16} {}\n", Printable(input.port),
                        input.from.empty()
                            ? "not connected"
                            : fmt::format("{}  from {}", input.type, Quotable(input.from)));
  }
  text += fmt::format("outputs ({})\n", node.outputs.size());
  for (const OutputDetail& output : node.outputs) {
    std::vector<std::string> readers;
    for (const std::string& reader : output.readers) readers.push_back(Quotable(reader));
    text += fmt::format(
        "  {:<16} {}  {}\n", Printable(output.port),
        output.type.empty() ? "type not known" : output.type,
        readers.empty() ? "read by no node" : fmt::format("read by {}", fmt::join(readers, ", ")));
  }
  for (const std::string& name : node.after) {
    text += fmt::format("runs after {}\n", Quotable(name));
  }
  for (const std::string& name : node.subgraphs) {
    text += fmt::format("runs subgraph {}\n", Quotable(name));
  }
  if (!node.file.empty()) {
    text += fmt::format("weight file \"{}\": {}\n", Printable(node.file),
                        node.found.empty() ? "missing" : Printable(node.found));
  }
  return text;
}

nlohmann::json ToJsonObject(const NodeDetail& node) {
  using nlohmann::json;
  const auto attribute = [](const AttrDetail& attr) {
    return json{{"name", attr.name}, {"value", attr.value}, {"source", Name(attr.source)}};
  };
  const auto input = [](const InputDetail& one) {
    return json{{"port", one.port}, {"from", OrNull(one.from)}, {"type", OrNull(one.type)}};
  };
  const auto output = [](const OutputDetail& one) {
    return json{{"port", one.port}, {"type", OrNull(one.type)}, {"readers", one.readers}};
  };
  return {{"name", node.name},
          {"type", node.type},
          {"graph", OrNull(node.graph)},
          {"attributes", ListOf(node.attributes, attribute)},
          {"inputs", ListOf(node.inputs, input)},
          {"outputs", ListOf(node.outputs, output)},
          {"after", node.after},
          {"subgraphs", node.subgraphs},
          {"file", OrNull(node.file)},
          {"found", OrNull(node.found)},
          {"known", node.known}};
}

}  // namespace npumesh
