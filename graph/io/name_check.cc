#include "graph/io/name_check.h"

#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

Status CheckName(std::string_view field, std::string_view text) {
  if (IsUtf8(text)) return Status();
  return Error(Code::kInvalidArgument, "{} \"{}\" is not UTF-8, which .air files require", field,
               Quotable(text));
}

Status CheckKeys(const AttrMap& attrs) {
  for (const auto& [key, value] : attrs) {
    NPUMESH_RETURN_IF_ERROR(CheckName("attribute name", key));
  }
  return Status();
}

Status CheckPorts(const std::vector<TensorDesc>& descs) {
  for (const TensorDesc& desc : descs) {
    NPUMESH_RETURN_IF_ERROR(CheckName("port name", desc.name));
    NPUMESH_RETURN_IF_ERROR(CheckName("layout", desc.layout));
    NPUMESH_RETURN_IF_ERROR(CheckName("device type", desc.device_type));
    NPUMESH_RETURN_IF_ERROR(CheckKeys(desc.attrs));
  }
  return Status();
}

Status CheckNode(const Node& node) {
  NPUMESH_RETURN_IF_ERROR(CheckName("name", node.name));
  NPUMESH_RETURN_IF_ERROR(CheckName("type", node.type));
  NPUMESH_RETURN_IF_ERROR(CheckKeys(node.attrs));
  NPUMESH_RETURN_IF_ERROR(CheckPorts(node.input_descs));
  NPUMESH_RETURN_IF_ERROR(CheckPorts(node.output_descs));
  for (const std::string& name : node.subgraphs) {
    NPUMESH_RETURN_IF_ERROR(CheckName("subgraph", name));
  }
  return Status();
}

}  // namespace

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

Status CheckNames(const Graph& graph) {
  NPUMESH_RETURN_IF_ERROR(CheckName("graph name", graph.name()).WithContext("model"));
  if (const Status keys = CheckKeys(graph.attrs()); !keys.ok()) {
    return keys.WithContext(fmt::format("graph \"{}\"", Quotable(graph.name())));
  }
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    if (const Status names = CheckNode(node); !names.ok()) {
      return names.WithContext(
          fmt::format("graph \"{}\" node '{}'", Quotable(graph.name()), Quotable(node.name)));
    }
  }
  return Status();
}

}  // namespace npumesh
