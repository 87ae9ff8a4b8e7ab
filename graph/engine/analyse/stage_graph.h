// The graph as it stands between two stages of a compilation, made for the observer of the stages
// (CompileOptions::observer). Internal to graph/engine.
#ifndef NPUMESH_GRAPH_ENGINE_ANALYSE_STAGE_GRAPH_H_
#define NPUMESH_GRAPH_ENGINE_ANALYSE_STAGE_GRAPH_H_

#include <functional>
#include <vector>

#include "graph/engine/analyse/inference.h"

namespace npumesh {

// A copy of `model` whose descriptors say what `inference` found for the nodes of `order`.
Model TypedGraph(const Model& model, const Inference& inference, const std::vector<NodeId>& order);

// The nodes of `kept` in this order, with a Const in place of every value that `folded` knows
// (null: it does not). REQUIRES: producers stand before their readers, and are kept or folded.
Model KeptGraph(const Model& typed, const std::vector<NodeId>& kept,
                const std::function<const Tensor*(Value)>& folded);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_ANALYSE_STAGE_GRAPH_H_
