#include "graph/passes/analysis/node_error.h"

namespace npumesh {

Status AtNode(std::string_view name, std::string_view type, const Status& status) {
  if (status.ok()) return status;
  const std::string who = fmt::format("node \"{}\" ({})", name, type);
  if (status.message().substr(0, who.size()) == who) return status;
  return status.WithContext(who);
}

}  // namespace npumesh
