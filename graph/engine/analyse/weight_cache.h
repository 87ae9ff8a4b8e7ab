// WeightCache: the weights of one model, loaded once for all its compilations.
//
// A weight in a file is mapped and stays there until a kernel packs it or a plan uploads it; both
// read it once, and then it has arrived.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_ENGINE_ANALYSE_WEIGHT_CACHE_H_
#define NPUMESH_GRAPH_ENGINE_ANALYSE_WEIGHT_CACHE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/toolbox/product/packed_weights.h"

namespace npumesh {

// Bytes of weights in files that have arrived, of those that are known.
struct WeightProgress {
  uint64_t done = 0;
  uint64_t total = 0;
};

class WeightCache {
 public:
  // The value of a Const, Constant or FileConstant node of one graph or of its stages;
  // errors as LoadWeight. The same bytes each time, so that they are uploaded to HBM only once.
  Result<Tensor> Load(const Node& node, const std::string& model_path);

  // The value of the node with this name, whatever the graph says; it is never loaded then.
  void Give(const std::string& name, const Tensor& value);

  // Called whenever a weight in a file has arrived.
  void set_progress(std::function<void(const WeightProgress&)> progress) {
    report_ = std::move(progress);
  }
  // Kernels have what they need of this constant. Counts once, and only weights in files.
  void Arrived(const Tensor& constant);
  // A plan is finished. Weights that were only read while it was made, or not at all, have arrived
  // too; their files' pages are given back.
  void PlanMade();

  PackedWeights& packed() { return packed_; }

 private:
  std::map<std::string, Tensor> weights_;       // by node name
  std::map<const void*, Tensor> on_their_way_;  // weights in files, by address
  PackedWeights packed_;
  WeightProgress progress_;
  std::function<void(const WeightProgress&)> report_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_ANALYSE_WEIGHT_CACHE_H_
