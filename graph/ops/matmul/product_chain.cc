#include "graph/ops/matmul/product_chain.h"

#include <algorithm>

namespace npumesh {
namespace {

class TailKernel final : public Kernel {
 public:
  TailKernel(std::unique_ptr<Kernel> product, std::unique_ptr<Kernel> tail, int slots)
      : product_(std::move(product)), tail_(std::move(tail)), slots_(slots) {
    set_choice(product_->choice());
  }

  uint64_t scratch_bytes() const override {
    return std::max(product_->scratch_bytes(), tail_->scratch_bytes());
  }

  bool reads(int slot) const override { return slot >= slots_ || product_->reads(slot); }

  Status Run(const KernelArgs& args) override {
    NPUMESH_RETURN_IF_ERROR(product_->Run(args));
    return tail_->Run({args.in + slots_, args.out, args.scratch});
  }

 private:
  std::unique_ptr<Kernel> product_, tail_;
  int slots_;  // of the product
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeProductAndTail(const OpContext& op, int bias_slot,
                                                   const std::vector<ChainLink>& links,
                                                   const std::vector<TensorType>& types) {
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> product, MakeMatmulKernel(op, bias_slot));
  if (links.empty()) return product;
  return std::unique_ptr<Kernel>(std::make_unique<TailKernel>(
      std::move(product), MakeChainKernel(links, types, op.out(0), true), op.slots()));
}

}  // namespace npumesh
