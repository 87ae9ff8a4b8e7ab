#include "graph/engine/plan/plan_facts.h"

#include <fmt/format.h>

namespace npumesh {

std::string UnfusedNode::ToString() const {
  const std::string where = node == step ? "" : fmt::format(" at \"{}\"", node);
  return fmt::format("not fused by {}{}: {}", pass, where, why);
}

}  // namespace npumesh
