// Floating products by panels of our own (panel_product.h), with constant right operands packed
// when the kernel is made: 16-bit ones stay in 16 bits. Everything is added in float32 and rounded
// once.
#include <algorithm>

#include "graph/ops/core/scratch.h"
#include "graph/ops/toolbox/product/matmul.h"
#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/product/panel_product.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

class PanelMatmul final : public Kernel {
 public:
  // Throws std::bad_alloc where the weights do not fit.
  explicit PanelMatmul(const Matmul& matmul)
      : plan_(matmul), product_(matmul.m, matmul.n, matmul.k) {
    for (const int64_t dim : plan_.batch) matrices_ *= dim;
    KernelChoice choice;
    choice.Decide("packed", Pack());
    set_choice(std::move(choice));
    room_ = scratch_.Floats(product_.room_floats() * plan_.threads);
    x1_ = Room(plan_.x1.dtype, plan_.m * plan_.k);
    if (panels_ == nullptr) x2_ = Room(plan_.x2.dtype, plan_.k * plan_.n);
    if (plan_.bias.slot >= 0) bias_ = Room(plan_.bias.dtype, plan_.n);
    y_ = Room(plan_.y_dtype, plan_.m * plan_.n);
  }

  uint64_t scratch_bytes() const override { return scratch_.bytes(); }
  bool reads(int slot) const override { return slot != plan_.x2.slot || panels_ == nullptr; }

  Status Run(const KernelArgs& args) override {
    const int64_t elements = plan_.m * plan_.n;
    const bool wide = plan_.y_dtype == DataType::kFloat;
    for (int64_t i = 0; i < matrices_; ++i) {
      PanelProduct::Operands operands;
      operands.x = Matrix(args, plan_.x1, i, plan_.m, plan_.k, x1_);
      operands.bfloat16 = plan_.x1.dtype == DataType::kBfloat16;
      operands.packed = panels_.get();
      if (panels_ == nullptr) operands.w = Matrix(args, plan_.x2, i, plan_.k, plan_.n, x2_);
      if (plan_.bias.slot >= 0) {
        operands.bias = Matrix(args, plan_.bias, i, 1, plan_.n, bias_).data;
      }
      operands.y = wide ? static_cast<float*>(args.out[0]) + i * elements : y_(args);
      operands.y_stride = plan_.n;
      if (plan_.residual >= 0) {
        operands.residual = static_cast<const float*>(args.in[plan_.residual]) + i * elements;
      }
      product_.Run(operands, plan_.threads, room_(args));
      if (!wide) StoreRow(plan_.y_dtype, operands.y, args.out[0], i * elements, elements);
    }
    return Status();
  }

 private:
  // Packs a constant x2, or says why not.
  std::string Pack() {
    if (plan_.x2_value == nullptr) return "x2 is no constant";
    if (!plan_.x2.batch_is_one()) return "it is a batch of products";
    panels_ = PackPanels(*plan_.x2_value, plan_.k, plan_.n, plan_.x2.transposed, plan_.packed);
    return "";
  }

  // Room for elements of a type that is not computed on as it is.
  Workspace<float> Room(DataType dtype, int64_t elements) {
    return scratch_.Floats(dtype == DataType::kFloat ? 0 : elements);
  }

  // The matrix of an operand for number `index` of the batch: in place, or widened into `room`.
  FloatMatrix Matrix(const KernelArgs& args, const Matmul::Operand& from, int64_t index,
                     int64_t rows, int64_t columns, const Workspace<float>& room) const {
    const int64_t matrix = MatrixOf(from.batch, plan_.batch, index), elements = rows * columns;
    const float* const data =
        LoadRow(from.dtype, args.in[from.slot], matrix * elements, elements, room(args));
    return {data, from.transposed ? rows : columns, from.transposed};
  }

  const Matmul plan_;
  const PanelProduct product_;
  int64_t matrices_ = 1;
  std::shared_ptr<const Panels> panels_;  // null: x2 is read in every run
  Scratch scratch_;
  Workspace<float> room_, x1_, x2_, bias_, y_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakePanelMatmul(const Matmul& matmul) {
  std::unique_ptr<Kernel> kernel;
  NPUMESH_RETURN_IF_ERROR(Guarded(matmul.who, "the product", [&] {
    kernel = std::make_unique<PanelMatmul>(matmul);
    return Status();
  }));
  return kernel;
}

}  // namespace npumesh
