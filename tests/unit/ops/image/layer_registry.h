// The operators of whole layers alone.
#ifndef NPUMESH_TESTS_UNIT_OPS_IMAGE_LAYER_REGISTRY_H_
#define NPUMESH_TESTS_UNIT_OPS_IMAGE_LAYER_REGISTRY_H_

#include "graph/ops/elementwise/family.h"
#include "graph/ops/image/family.h"
#include "graph/ops/index/family.h"
#include "graph/ops/reduce/family.h"
#include "tests/unit/op_values.h"

namespace npumesh {

inline const OpRegistry& LayerOps() {
  static const OpRegistry registry = [] {
    OpRegistry made;
    RegisterChannelOps(made);
    RegisterSoftmaxRowOps(made);
    RegisterHalvesOps(made);
    RegisterPoolOps(made);
    RegisterResizeOps(made);
    RegisterConvolutionOps(made);
    RegisterRandomOps(made);
    RegisterPatchOps(made);
    RegisterResampleOps(made);
    return made;
  }();
  return registry;
}

using Attrs = std::vector<std::pair<std::string, AttrValue>>;
using Ints = std::vector<int64_t>;

// x with the channels last instead of second.
inline Tensor ChannelsBehind(const Tensor& x) {
  Ints dims = x.shape().dims();
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  const std::vector<double> values = ToDoubles(x);
  std::vector<double> moved;
  for (Ints at : Positions(Shape(dims))) {
    std::rotate(at.begin() + 1, at.end() - 1, at.end());
    moved.push_back(values[Index(x.shape(), at)]);
  }
  return FromDoubles(x.dtype(), Shape(dims), moved);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_IMAGE_LAYER_REGISTRY_H_
