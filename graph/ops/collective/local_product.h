// What the products that are fused with a collective share: the product of one rank.
#ifndef NPUMESH_GRAPH_OPS_COLLECTIVE_LOCAL_PRODUCT_H_
#define NPUMESH_GRAPH_OPS_COLLECTIVE_LOCAL_PRODUCT_H_

#include <memory>
#include <vector>

#include "graph/ops/collective/collective.h"
#include "graph/ops/toolbox/product/scaled_matmul.h"

namespace npumesh::fused {

// A product x[m, k] w[k, n] of this rank. A transposed operand is stored the other way. Operands
// without scales are floats; those with scales have 8 bits.
struct Local : ScaledMatmul {
  bool transposed_x = false;
  const Tensor* w_value = nullptr;  // constant weights, which the product may pack

  bool scaled() const { return row_scale_slot >= 0; }
  int64_t x_row_bytes() const { return k * BitsOf(x_dtype) / 8; }
  // The rows of x from `row` on.
  const std::byte* RowsOfX(const KernelArgs& args, int64_t row = 0) const {
    return static_cast<const std::byte*>(args.in[x_slot]) + row * x_row_bytes();
  }
};

// How an operator tells it: names of ports and attributes, empty where it has none.
struct LocalForm {
  std::string_view x = "x1", w = "x2", bias = "bias";
  std::string_view transposed_x = "is_trans_a", transposed_w = "is_trans_b";
  int most_rank = 3;  // of x
  int experts = 0;    // dimensions of w in front of the matrix
  bool packs = true;  // constant weights may be packed
  // How many times the columns of x the product goes over, which an exchange in front of it joins.
  int64_t joined = 1;
};

// What plans read. All object to what does not fit.

// The product, with its bias.
Local PlanLocal(const OpContext& op, Check& check, const LocalForm& form = {});

// Objects unless x1 and x2 are floats of one type.
void ExpectFloats(const OpContext& op, Check& check);

// The dtype in an attribute, `standard` where it holds the number of "undefined". Objects
// (kUnsupported) unless it is float16, bfloat16 or float32.
DataType FloatTypeOf(const OpContext& op, std::string_view attribute, DataType standard,
                     Check& check);

// Objects (kUnsupported) unless the attribute reduce_op is "sum".
void ExpectSum(const OpContext& op, Check& check);

// The node's group. Objects unless the attribute `size` says how many members it has; 0 there says
// nothing.
using hcom::Ring;
Ring RingOf(const OpContext& op, std::string_view size, Check& check);

// Products that a kernel runs on parts of its inputs, one at a time.
class Products {
 public:
  // Makes the product of `m` rows, rounded once to `y_dtype`; one without elements does nothing.
  Status Add(const OpContext& op, const Local& local, int64_t m, DataType y_dtype);
  // Takes the memory they share, and notes the constants that none of them reads and which kernel
  // the first of them is. REQUIRES: all are added.
  void Reserve(const OpContext& op, Planned* plan);
  // Both, for a plan with one product.
  Status Make(const OpContext& op, const Local& local, int64_t m, DataType y_dtype, Planned* plan);

  // Runs one with other addresses for some slots of its operator, and with its output at `y`.
  struct Input {
    int slot;
    const void* address;
  };
  Status Run(const KernelArgs& args, std::initializer_list<Input> parts, void* y,
             size_t index = 0) const;

 private:
  std::vector<std::unique_ptr<Kernel>> kernels_;
  size_t slots_ = 0;
  Workspace<const void*> in_;
  Workspace<std::byte> room_;
};

inline uint64_t FloatBytes(int64_t elements) {
  return static_cast<uint64_t>(elements) * sizeof(float);
}

}  // namespace npumesh::fused

#endif  // NPUMESH_GRAPH_OPS_COLLECTIVE_LOCAL_PRODUCT_H_
