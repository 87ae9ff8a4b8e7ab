// Products of floats with a constant int8 matrix that has a scale for each column, by panels that
// keep their 8 bits.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_WEIGHT_PRODUCT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_WEIGHT_PRODUCT_H_

#include <functional>
#include <memory>
#include <string>

#include "graph/ops/core/scratch.h"
#include "graph/ops/toolbox/product/panel_product.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh {

struct Int8WeightForm {
  std::string who;  // begins messages
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  DataType x_dtype = DataType::kUndefined;  // float16, bfloat16 or float32
  const Tensor* weight = nullptr;
  bool transposed = false;  // the weight is stored [n, k]
  Factors scale;            // one, or one for each column
  int threads = 1;
  PackedWeights* packed = nullptr;  // where weights are shared once packed; may be null
};

// y[m, n] = (x[m, k] w[k, n]) * scale: sums are those of PanelProduct, and each is multiplied with
// the scale of its column. So they have the bits of BlockedProduct.
//
// Thread-safety: may be run by several threads, each with separate scratch memory.
class Int8WeightProduct {
 public:
  // Packs the weight. REQUIRES: a product with elements. Error: kOutOfMemory.
  static Result<std::unique_ptr<Int8WeightProduct>> Make(const Int8WeightForm& form);

  uint64_t scratch_bytes() const { return scratch_.bytes(); }

  // Hands each row of sums to `take`, on the calling thread. The first scratch_bytes() of
  // `args.scratch` are used; the scale is read from `args`.
  using TakeRow = std::function<void(int64_t row, const float* sums)>;
  void Run(const KernelArgs& args, const void* x, const TakeRow& take) const;

 private:
  // Throws std::bad_alloc where the weight does not fit.
  explicit Int8WeightProduct(const Int8WeightForm& form);

  const Int8WeightForm form_;
  const int64_t rows_;          // of x that are multiplied at once
  const PanelProduct product_;  // of that many
  const PanelProduct tail_;     // of the last rows
  const std::shared_ptr<const Panels> panels_;
  Scratch scratch_;
  Workspace<float> room_, x_, scale_, sums_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_WEIGHT_PRODUCT_H_
