// Products with a constant int8 matrix by oneDNN's own 8-bit products, where they are exact.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_PRODUCT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_PRODUCT_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/product/onednn_call.h"

namespace npumesh {

// y[m, n] = x[m, k] w[k, n], int8 to int32, modulo 2^32.
//
// Thread-safety: one thread at a time.
class Int8Product {
 public:
  struct Sizes {
    int64_t m = 0;
    int64_t n = 0;
    int64_t k = 0;
    bool transposed = false;  // w is stored [n, k]
  };

  // A product, or null and why there is none.
  struct Made {
    std::unique_ptr<Int8Product> product;
    std::string_view why_not;
  };
  // Packs the weight. Null where it is not worth it or not exact: on a processor without VNNI or
  // AMX, whose 8-bit products saturate in 16 bits, where oneDNN has only its reference, and for a
  // product over nothing. `who` begins messages; errors as oneDNN reports them.
  static Result<Made> Make(const std::string& who, const Tensor& weight, const Sizes& sizes,
                           int threads, PackedWeights* shared);

  uint64_t scratch_bytes() const { return scratch_bytes_; }

  // Hands each row of sums to `take`. The first scratch_bytes() of `scratch` are used.
  using TakeRow = std::function<void(int64_t row, const int32_t* sums)>;
  Status Run(const void* x, void* scratch, const TakeRow& take);

 private:
  // The product for a number of rows of x.
  struct Rows : BoundProduct {
    int64_t count = 0;
  };

  Int8Product(std::string who, const Sizes& sizes, int threads)
      : who_(std::move(who)), sizes_(sizes), threads_(threads) {}
  // False: oneDNN has no good implementation.
  bool Prepare(const Tensor& weight, PackedWeights* shared);
  bool Choose(int64_t rows, const dnnl::memory::desc& weights, Rows& to);

  const std::string who_;
  const Sizes sizes_;
  const int threads_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::shared_ptr<const dnnl::memory> weights_;
  Rows whole_;
  Rows tail_;  // the last rows
  uint64_t scratchpad_at_ = 0;
  uint64_t scratch_bytes_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_PRODUCT_H_
