#include "graph/engine/analyse/weight_cache.h"

#include <algorithm>

#include "graph/io/weights.h"
#include "graph/ir/node_kind.h"
#include "graph/passes/rewrite/constant_folding.h"

namespace npumesh {

Result<Tensor> WeightCache::Load(const Node& node, const std::string& model_path) {
  const auto known = weights_.find(node.name);
  if (known != weights_.end()) return known->second;
  NPUMESH_ASSIGN_OR_RETURN(const Tensor loaded, LoadWeight(node, model_path));
  const Tensor& weight = weights_.emplace(node.name, Aligned(loaded)).first->second;
  if (IsFileConstant(node) && on_their_way_.emplace(weight.data(), weight).second) {
    progress_.total += weight.bytes();
  }
  return weight;
}

void WeightCache::Give(const std::string& name, const Tensor& value) {
  weights_.insert_or_assign(name, Aligned(value));
}

void WeightCache::Arrived(const Tensor& constant) {
  const auto found = on_their_way_.find(constant.data());
  if (found == on_their_way_.end()) return;
  progress_.done += found->second.bytes();
  on_their_way_.erase(found);
  if (report_) report_(progress_);
}

void WeightCache::PlanMade() {
  while (!on_their_way_.empty()) {
    const Tensor weight = on_their_way_.begin()->second;
    weight.Stream(std::max<uint64_t>(weight.bytes(), 1), [](uint64_t, uint64_t) {});
    Arrived(weight);
  }
}

}  // namespace npumesh
