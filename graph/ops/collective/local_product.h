// What the products that are fused with a collective share: the product of one rank.
#ifndef NPUMESH_GRAPH_OPS_COLLECTIVE_LOCAL_PRODUCT_H_
#define NPUMESH_GRAPH_OPS_COLLECTIVE_LOCAL_PRODUCT_H_

#include <memory>
#include <vector>

#include "graph/ops/collective/collective.h"
#include "graph/ops/toolbox/values/element_io.h"

namespace npumesh::fused {

// A product x[m, k] w[k, n] of this rank. A transposed operand is stored the other way.
struct Local {
  int x = -1;  // slots
  int w = -1;
  int64_t m = 0, n = 0, k = 0;
  bool transposed_x = false, transposed_w = false;
  DataType x_dtype = DataType::kUndefined, w_dtype = DataType::kUndefined;
  const Tensor* w_value = nullptr;  // constant weights, which the product may pack
  std::vector<int64_t> front;       // dimensions of x in front of k
  Factors bias;
  // Of 8-bit operands.
  int row_scale = -1;          // slot of the scales of x; -1: the operands are floats
  bool scale_of_rows = false;  // one for each row of x, not one for all
  Factors column_scale;        // of w

  bool scaled() const { return row_scale >= 0; }
  int64_t x_row_bytes() const { return k * BitsOf(x_dtype) / 8; }
};

// How an operator tells it: names of attributes, and how many times the columns of x1 the product
// goes over, which an exchange in front of it may have joined.
struct LocalForm {
  std::string_view transposed1 = "is_trans_a", transposed2 = "is_trans_b";
  int64_t joined = 1;
};

// The product of x1 and x2, with the bias.
Result<Local> PlanLocal(const OpContext& op, const LocalForm& form = {});

// Error unless x1 and x2 are floats of one type.
Status ExpectFloats(const OpContext& op);

// The dtype in an attribute, `standard` where it holds the number of "undefined". Error
// (kUnsupported) unless it is float16, bfloat16 or float32.
Result<DataType> FloatTypeOf(const OpContext& op, std::string_view attribute, DataType standard);

// The product of `m` of its rows, rounded once to `y_dtype`; null when it has no elements.
Result<std::unique_ptr<Kernel>> MakeProduct(const OpContext& op, const Local& local, int64_t m,
                                            DataType y_dtype);

// Products that a kernel runs on parts of its inputs, one at a time.
class Products {
 public:
  // Takes over a product, or a null one, which does nothing.
  void Add(std::unique_ptr<Kernel> product) { kernels_.push_back(std::move(product)); }
  // Takes the memory they share, and notes the constants that none of them reads and which kernel
  // the first of them is. REQUIRES: all are added.
  void Reserve(const OpContext& op, Planned* plan);

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

// Error unless the attribute reduce_op is "sum".
Status ExpectSum(const OpContext& op);

// The number of members of the node's group, and this rank. Error unless the attribute `size`
// says the same; 0 there says nothing.
struct Ring {
  int64_t ranks = 0, rank = 0;
};
Result<Ring> RingOf(const OpContext& op, std::string_view size);

inline uint64_t FloatBytes(int64_t elements) {
  return static_cast<uint64_t>(elements) * sizeof(float);
}

// Parts of RegisterFusedMatmulOps.
void RegisterAllReduceMatmul(OpRegistry& registry);  // MatmulAllReduce, -AddRmsNorm
void RegisterRowMatmuls(OpRegistry& registry);       // AllGatherMatmul, MatmulReduceScatter ...
void RegisterAllToAllMatmuls(OpRegistry& registry);  // AlltoAllMatmul, MatmulAlltoAll
void RegisterExpertMatmuls(OpRegistry& registry);    // AlltoAllvGroupedMatMul ...
void RegisterQuantReductions(OpRegistry& registry);  // QuantAllReduce, QuantReduceScatter

}  // namespace npumesh::fused

#endif  // NPUMESH_GRAPH_OPS_COLLECTIVE_LOCAL_PRODUCT_H_
