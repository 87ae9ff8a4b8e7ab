#include "graph/ops/builtin_ops.h"

#include <algorithm>
#include <set>

#include "graph/ops/core/op_registry.h"

namespace npumesh {

#define NPUMESH_FAMILY(Name, name, what)             \
  void Register##Name##Family(OpRegistry& registry); \
  void Derive##Name##Family(OpRegistry& registry);
#include "families.inc"
#undef NPUMESH_FAMILY

namespace {

struct FamilyRow {
  std::string_view name, what;
  // Operators, and those that are made of others, once all families have added theirs.
  void (*add)(OpRegistry& registry);
  void (*derive)(OpRegistry& registry);
};

#define NPUMESH_FAMILY(Name, name, what) {name, what, Register##Name##Family, Derive##Name##Family},
constexpr FamilyRow kFamilies[] = {
#include "families.inc"
};
#undef NPUMESH_FAMILY

}  // namespace

const OpRegistry& BuiltinOps() {
  static const OpRegistry* const registry = [] {
    auto* const made = new OpRegistry;
    for (const FamilyRow& family : kFamilies) family.add(*made);
    for (const FamilyRow& family : kFamilies) family.derive(*made);
    return made;
  }();
  return *registry;
}

std::vector<OperatorFamily> OperatorFamilies() {
  OpRegistry registry;
  std::set<std::string, std::less<>> seen;
  std::vector<OperatorFamily> families;
  const auto take = [&](OperatorFamily& family, void (*add)(OpRegistry&)) {
    add(registry);
    for (const std::string_view type : registry.Types()) {
      if (seen.emplace(type).second) family.types.emplace_back(type);
    }
  };
  for (const FamilyRow& row : kFamilies) {
    take(families.emplace_back(OperatorFamily{row.name, row.what, {}}), row.add);
  }
  for (size_t i = 0; i < families.size(); ++i) take(families[i], kFamilies[i].derive);
  for (OperatorFamily& family : families) std::sort(family.types.begin(), family.types.end());
  return families;
}

}  // namespace npumesh
