#include "graph/ops/toolbox/product/int8_weight_product.h"

#include <algorithm>

#include "graph/ops/toolbox/product/onednn_call.h"
#include "graph/ops/toolbox/product/panel_tiles.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

// Most rows of x that are multiplied at once: few enough that x and the sums of wide layers stay
// small, many enough that reading the weights again does not count.
constexpr int64_t kRowsAtOnce = 128;

}  // namespace

Result<std::unique_ptr<Int8WeightProduct>> Int8WeightProduct::Make(const Int8WeightForm& form) {
  std::unique_ptr<Int8WeightProduct> product;
  NPUMESH_RETURN_IF_ERROR(Guarded(form.who, "the product", [&] {
    product.reset(new Int8WeightProduct(form));
    return Status();
  }));
  return product;
}

Int8WeightProduct::Int8WeightProduct(const Int8WeightForm& form)
    : form_(form),
      rows_(EqualParts(form.m, kRowsAtOnce)),
      product_(rows_, form.n, form.k),
      tail_((form.m - 1) % rows_ + 1, form.n, form.k),
      panels_(PackPanels(*form.weight, form.k, form.n, form.transposed, form.packed)) {
  room_ = scratch_.Floats(std::max(product_.room_floats(), tail_.room_floats()) * form_.threads);
  x_ = scratch_.Floats(form_.x_dtype == DataType::kFloat ? 0 : rows_ * form_.k);
  scale_ = scratch_.Floats(form_.n);
  sums_ = scratch_.Floats(rows_ * form_.n);
}

void Int8WeightProduct::Run(const KernelArgs& args, const void* x, const TakeRow& take) const {
  float *const sums = sums_(args), *const scale = scale_(args);
  LoadColumns(args, form_.scale, 0, form_.n, scale);
  for (int64_t row = 0; row < form_.m; row += rows_) {
    const int64_t rows = std::min(rows_, form_.m - row);
    const float* const left = LoadRow(form_.x_dtype, x, row * form_.k, rows * form_.k, x_(args));
    const PanelProduct& product = rows == rows_ ? product_ : tail_;
    product.Run(
        {.x = {left, form_.k, false}, .packed = panels_.get(), .y = sums, .y_stride = form_.n},
        form_.threads, room_(args));
    for (int64_t r = 0; r < rows; ++r) {
      float* const of_row = sums + r * form_.n;
      MultiplyRow(of_row, scale, form_.n, of_row);
      take(row + r, of_row);
    }
  }
}

}  // namespace npumesh
