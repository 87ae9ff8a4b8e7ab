// WeightCache: the weights of one model, loaded once for all its compilations.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_WEIGHT_CACHE_H_
#define NPUMESH_GRAPH_ENGINE_WEIGHT_CACHE_H_

#include <map>
#include <string>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"

namespace npumesh {

class WeightCache {
 public:
  // The value of a Const, Constant or FileConstant node of one graph or of its stages;
  // errors as LoadWeight. The same bytes each time, so that they are uploaded to HBM only once.
  Result<Tensor> Load(const Node& node, const std::string& model_path);

 private:
  std::map<std::string, Tensor> weights_;  // by node name
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_WEIGHT_CACHE_H_
