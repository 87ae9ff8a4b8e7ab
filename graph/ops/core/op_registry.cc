#include "graph/ops/core/op_registry.h"

#include <cassert>

#include "runtime/base/text/nearest_name.h"

namespace npumesh {

void OpRegistry::Add(Operator op) {
  std::string type(op.schema.type);
  if (op.precision == PrecisionClass::kGrey) op.precision = usually_;
  [[maybe_unused]] const bool added = ops_.emplace(std::move(type), std::move(op)).second;
  assert(added && "operator registered twice");
}

void OpRegistry::Alias(std::string_view type, std::string_view same_as) {
  const Operator* original = Find(same_as);
  assert(original != nullptr);
  Operator alias = *original;
  alias.schema.type = type;
  Add(std::move(alias));
}

const Operator* OpRegistry::Find(std::string_view type) const {
  const auto it = ops_.find(type);
  return it == ops_.end() ? nullptr : &it->second;
}

std::vector<std::string> OpRegistry::Nearest(std::string_view type, int most) const {
  return NearestNames(type, Types(), static_cast<size_t>(most));
}

std::vector<std::string_view> OpRegistry::Types() const {
  std::vector<std::string_view> types;
  for (const auto& [name, op] : ops_) types.push_back(name);
  return types;
}

}  // namespace npumesh
