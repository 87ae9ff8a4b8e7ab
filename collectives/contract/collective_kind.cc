#include "collectives/contract/collective_kind.h"

#include <fmt/format.h>

namespace npumesh {

std::string NameOf(CollectiveKind kind, std::string_view node) {
  if (kind == CollectiveKind::kNone) return "the creation of the group";
  if (node.empty()) return std::string(Name(kind));
  return fmt::format("{} \"{}\"", Name(kind), node);
}

}  // namespace npumesh
