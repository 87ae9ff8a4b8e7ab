// The type that an input of a graph takes when a caller brings a tensor.
#ifndef NPUMESH_GRAPH_ENGINE_ANALYSE_BOUND_TYPE_H_
#define NPUMESH_GRAPH_ENGINE_ANALYSE_BOUND_TYPE_H_

#include "graph/engine/analyse/model_inputs.h"

namespace npumesh {

// `given`, but a vector of one element becomes the scalar that the graph declares.
inline TensorType BoundType(const InputSpec& input, const TensorType& given) {
  const Shape& declared = input.declared.shape;
  const bool one = declared.has_rank() && declared.rank() == 0 && given.shape == Shape{1};
  return one ? TensorType{given.dtype, declared} : given;
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ENGINE_ANALYSE_BOUND_TYPE_H_
