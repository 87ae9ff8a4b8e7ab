#include "graph/onnx/onnx_model.h"

#include <algorithm>

#include "runtime/base/text/printable.h"

namespace npumesh {

const OnnxAttribute* OnnxNode::Find(std::string_view attribute) const {
  const auto found =
      std::find_if(attributes.begin(), attributes.end(),
                   [&](const OnnxAttribute& candidate) { return candidate.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

std::string OnnxNode::Who() const {
  const std::string type = domain.empty() ? op : domain + "." + op;
  if (!name.empty()) return fmt::format("node \"{}\" ({})", Quotable(name), Quotable(type));
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    return fmt::format("node that makes \"{}\" ({})", Quotable(output), Quotable(type));
  }
  return fmt::format("node without name ({})", Quotable(type));
}

}  // namespace npumesh
