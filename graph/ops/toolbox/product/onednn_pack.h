// Constant weights in an arrangement that oneDNN chose.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_ONEDNN_PACK_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_ONEDNN_PACK_H_

#include <oneapi/dnnl/dnnl.hpp>

#include <memory>

#include "graph/ir/tensor.h"
#include "graph/ops/toolbox/product/packed_weights.h"

namespace npumesh {

// The bytes of `weight`, which lie as `from` says, arranged as `to`. A 16-bit weight is widened
// first when `from` is float32. Works through pieces of the weight, so that beside the result there
// is never more than one piece of a weight in a file in memory (matrices without batch; others need
// all of it). What `shared` (may be null) has already is taken from there. Throws what oneDNN
// throws.
std::shared_ptr<const dnnl::memory> PackWeight(const Tensor& weight, const dnnl::memory::desc& from,
                                               const dnnl::memory::desc& to,
                                               const dnnl::engine& engine, dnnl::stream& stream,
                                               PackedWeights* shared);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_ONEDNN_PACK_H_
