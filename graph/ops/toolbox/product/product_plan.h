// What the plans of operators that multiply by BlockedProduct have in common.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PRODUCT_PLAN_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PRODUCT_PLAN_H_

#include "graph/ops/core/define.h"
#include "graph/ops/toolbox/product/blocked_product.h"

namespace npumesh {

struct ProductPlan : Planned {
  BlockedProduct product;
  int threads = 1;                    // for ThreadCount
  Workspace<float> factors, results;  // a segment each

  // Sets threads and takes scratch memory. Products work at its beginning, so this comes before
  // all else that is taken. `product_bytes`: of the largest product.
  void TakeRoom(int thread_count, uint64_t product_bytes) {
    threads = thread_count;
    scratch.Take<std::byte>(static_cast<int64_t>(product_bytes));
    factors = scratch.Floats(kBlockColumns);
    results = scratch.Floats(kBlockColumns);
  }
  void TakeRoom(const OpContext& op, uint64_t product_bytes) {
    TakeRoom(op.threads(), product_bytes);
  }
  // The same for one product over k.
  void TakeProduct(const OpContext& op, int64_t k, bool integers) {
    product = BlockedProduct(k, integers);
    TakeRoom(op, product.scratch_bytes());
  }
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_PRODUCT_PRODUCT_PLAN_H_
