#include "graph/engine/weight_cache.h"

#include "graph/io/weights.h"
#include "graph/passes/constant_folding.h"

namespace npumesh {

Result<Tensor> WeightCache::Load(const Node& node, const std::string& model_path) {
  const auto known = weights_.find(node.name);
  if (known != weights_.end()) return known->second;
  NPUMESH_ASSIGN_OR_RETURN(const Tensor weight, LoadWeight(node, model_path));
  return weights_.emplace(node.name, Aligned(weight)).first->second;
}

}  // namespace npumesh
