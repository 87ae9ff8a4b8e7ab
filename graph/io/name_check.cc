#include "graph/io/name_check.h"

#include "graph/io/python_bytes.h"

namespace npumesh {
namespace {

// The smallest code point that needs this many bytes.
constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};

// Bytes of the sequence that `lead` starts; 0 when it starts none.
size_t SequenceLength(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >> 5 == 0x6) return 2;
  if (lead >> 4 == 0xe) return 3;
  if (lead >> 3 == 0x1e) return 4;
  return 0;
}

Status CheckName(std::string_view where, std::string_view field, std::string_view text) {
  if (IsUtf8(text)) return Status();
  return Error(Code::kInvalidArgument, "{}: {} {} is not UTF-8, which .air files require", where,
               field, PythonRepr(text));
}

Status CheckKeys(std::string_view where, const AttrMap& attrs) {
  for (const auto& [key, value] : attrs) {
    NPUMESH_RETURN_IF_ERROR(CheckName(where, "attribute name", key));
  }
  return Status();
}

Status CheckPorts(std::string_view where, const std::vector<TensorDesc>& descs) {
  for (const TensorDesc& desc : descs) {
    NPUMESH_RETURN_IF_ERROR(CheckName(where, "port name", desc.name));
    NPUMESH_RETURN_IF_ERROR(CheckName(where, "layout", desc.layout));
    NPUMESH_RETURN_IF_ERROR(CheckName(where, "device type", desc.device_type));
    NPUMESH_RETURN_IF_ERROR(CheckKeys(where, desc.attrs));
  }
  return Status();
}

}  // namespace

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = SequenceLength(lead);
    if (length == 0 || length > text.size() - i) return false;
    uint32_t point = length == 1 ? lead : lead & (0x7f >> length);
    for (size_t k = 1; k < length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      if (byte >> 6 != 2) return false;
      point = point << 6 | (byte & 0x3f);
    }
    const bool surrogate = point >= 0xd800 && point <= 0xdfff;
    if (point < kSmallest[length] || surrogate || point > 0x10ffff) return false;
    i += length;
  }
  return true;
}

Status CheckNames(const Graph& graph) {
  NPUMESH_RETURN_IF_ERROR(CheckName("model", "graph name", graph.name()));
  NPUMESH_RETURN_IF_ERROR(CheckKeys(fmt::format("graph \"{}\"", graph.name()), graph.attrs()));
  for (const Node& node : graph.nodes()) {
    if (node.removed) continue;
    const std::string where =
        fmt::format("graph \"{}\" node {}", graph.name(), PythonRepr(node.name));
    NPUMESH_RETURN_IF_ERROR(CheckName(where, "name", node.name));
    NPUMESH_RETURN_IF_ERROR(CheckName(where, "type", node.type));
    NPUMESH_RETURN_IF_ERROR(CheckKeys(where, node.attrs));
    NPUMESH_RETURN_IF_ERROR(CheckPorts(where, node.input_descs));
    NPUMESH_RETURN_IF_ERROR(CheckPorts(where, node.output_descs));
    for (const std::string& name : node.subgraphs) {
      NPUMESH_RETURN_IF_ERROR(CheckName(where, "subgraph", name));
    }
  }
  return Status();
}

}  // namespace npumesh
