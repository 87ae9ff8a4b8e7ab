// Matmul: the one form to which the operators of the matrix multiplication family are brought, and
// the kernels that compute it.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_MATMUL_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_MATMUL_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh {

// y[batch][m, n] = (x1[batch][m, k] * x2[batch][k, n] + bias) + residual. A transposed operand is
// stored with its last two dimensions swapped.
struct Matmul {
  struct Operand {
    int slot = -1;  // -1: the bias is absent
    DataType dtype = DataType::kUndefined;
    std::vector<int64_t> batch;  // as long as Matmul::batch; 1 where it is broadcast
    bool transposed = false;

    bool batch_is_one() const;
  };

  std::string who;  // begins every message
  Operand x1;
  Operand x2;
  Operand bias;  // [batch, 1, n]
  // Slot of a tensor like y; -1: none. REQUIRES: y is float32.
  int residual = -1;
  DataType y_dtype = DataType::kUndefined;
  std::vector<int64_t> batch;
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t offset = 0;                // subtracted from the elements of an int8 x1
  const Tensor* x2_value = nullptr;  // constant weights
  PackedWeights* packed = nullptr;   // where they are shared once packed; may be null
  KernelTuning* tuning = nullptr;    // may be null
  int threads = 1;

  // Fewer batch dimensions for the same product: rows of the batches become more rows of one matrix
  // where x2 is the same for all of them, equal batch dimensions become one.
  void Simplify();
};

// Number of the matrix of an operand, of batch `own`, that belongs to number `index` of the `batch`
// to which `own` broadcasts.
int64_t MatrixOf(const std::vector<int64_t>& own, const std::vector<int64_t>& batch, int64_t index);

// The kernel of a product: one of those below or, for int32 and int8, loops that accumulate modulo
// 2^32. Each says in its choice what it is and why not something faster. REQUIRES: a product with
// elements.
Result<std::unique_ptr<Kernel>> MakeMatmul(const Matmul& matmul);

// Products of float32, bfloat16 and float16, accumulated in float32 and rounded once: by panels of
// our own, or by oneDNN. The result has the type of the operands or is float32. Constant weights
// are packed here. Errors: kUnsupported, kOutOfMemory as oneDNN reports them.
Result<std::unique_ptr<Kernel>> MakeFloatMatmul(const Matmul& matmul);

// The same by panels, whatever the types: its bits hang on the elements and on k alone
// (panel_product.h). Error: kOutOfMemory. REQUIRES: as above, and k is not 0.
Result<std::unique_ptr<Kernel>> MakePanelMatmul(const Matmul& matmul);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_MATMUL_H_
