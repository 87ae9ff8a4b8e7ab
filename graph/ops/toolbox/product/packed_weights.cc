#include "graph/ops/toolbox/product/packed_weights.h"

namespace npumesh {

std::shared_ptr<const void> PackedWeights::Find(const Tensor& weight,
                                                const std::string& form) const {
  const auto known = packed_.find({weight.data(), form});
  return known == packed_.end() ? nullptr : known->second.second.lock();
}

void PackedWeights::Keep(const Tensor& weight, const std::string& form,
                         std::shared_ptr<const void> packed) {
  std::erase_if(packed_, [](const auto& entry) { return entry.second.second.expired(); });
  packed_[{weight.data(), form}] = {weight, std::move(packed)};
}

}  // namespace npumesh
