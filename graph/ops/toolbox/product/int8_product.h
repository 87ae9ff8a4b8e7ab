// Products of int8 matrices, the right one constant and packed: by oneDNN's own 8-bit products
// where they are exact, otherwise by panels of our own.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_PRODUCT_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_PRODUCT_H_

#include <functional>
#include <memory>
#include <string>

#include "graph/ops/core/operator.h"

namespace npumesh {

// y[m, n] = x[m, k] w[k, n], int8 (x may be uint8) to int32, modulo 2^32.
struct Int8Form {
  std::string who;  // begins messages
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const Tensor* weight = nullptr;
  bool transposed = false;  // the weight is stored [n, k]
  bool x_unsigned = false;  // x is uint8
  int threads = 1;
  PackedWeights* packed = nullptr;  // where weights are shared once packed; may be null
  KernelTuning* tuning = nullptr;   // may be null
};

// The sums of the columns of w[k, n], stored [n, k] where it is transposed, modulo 2^32.
void SumColumns(const int8_t* w, int64_t k, int64_t n, bool transposed, int32_t* sums);
// Bytes with the other sign: uint8 less 128 as int8, or int8 plus 128 as uint8.
void FlipSigns(const void* from, int64_t count, void* to);

// Thread-safety: one thread at a time.
class Int8Product {
 public:
  // A product, or null where measuring has found that widening in blocks is faster, and what was
  // chosen.
  struct Made {
    std::unique_ptr<Int8Product> product;
    KernelChoice choice;
  };
  // Packs the weight. REQUIRES: a product with elements. Errors: kOutOfMemory, others as oneDNN
  // reports them.
  static Result<Made> Make(const Int8Form& form);

  virtual ~Int8Product() = default;

  uint64_t scratch_bytes() const { return scratch_bytes_; }

  // Hands each row of sums to `take`, on the calling thread. The first scratch_bytes() of `scratch`
  // are used.
  using TakeRow = std::function<void(int64_t row, const int32_t* sums)>;
  virtual Status Run(const void* x, void* scratch, const TakeRow& take) = 0;

 protected:
  uint64_t scratch_bytes_ = 0;
};

// The product by panels. REQUIRES: as above. Throws std::bad_alloc where the weight does not fit.
std::unique_ptr<Int8Product> MakeInt8Panels(const Int8Form& form);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_INT8_PRODUCT_H_
