#include "graph/ops/toolbox/product/scaled_matmul.h"

#include <algorithm>

#include "graph/ops/toolbox/product/blocked_product.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

class ScaledMatmulKernel final : public Kernel {
 public:
  explicit ScaledMatmulKernel(const ScaledMatmul& plan)
      : plan_(plan), product_(plan.k, plan.x_dtype == DataType::kInt8) {}

  // The product's, and two segments: factors and results.
  uint64_t scratch_bytes() const override {
    return product_.scratch_bytes() + 2 * kBlockColumns * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ThreadCount threads(plan_.threads);
    const auto take = [&](const SumSegment& segment) { Store(args, segment); };
    return product_.Run(args, plan_.m, plan_.n, {plan_.x_dtype, args.in[plan_.x_slot]},
                        {plan_.w_dtype, args.in[plan_.w_slot], 0, plan_.transposed_w}, {}, take);
  }

 private:
  void Store(const KernelArgs& args, const SumSegment& segment) const {
    auto* room =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + product_.scratch_bytes());
    float* row = room + kBlockColumns;
    for (int64_t i = 0; i < segment.count; ++i) {
      row[i] =
          segment.integers == nullptr ? segment.floats[i] : static_cast<float>(segment.integers[i]);
    }
    // Calls f(element, factor) for the segment.
    const auto each = [&](const Factors& factors, const auto& f) {
      const bool shared = factors.count() == 1;
      factors.Load(args, shared ? 0 : segment.first, shared ? 1 : segment.count, room);
      for (int64_t i = 0; i < segment.count; ++i) f(row[i], room[shared ? 0 : i]);
    };
    if (plan_.bias.given()) each(plan_.bias, [](float& x, float bias) { x += bias; });
    each(plan_.column_scale, [](float& x, float scale) { x *= scale; });
    const auto* scales = static_cast<const float*>(args.in[plan_.row_scale_slot]);
    const float scale = scales[plan_.scale_of_rows ? segment.row : 0];
    for (int64_t i = 0; i < segment.count; ++i) row[i] *= scale;
    StoreRow(plan_.y_dtype, row, args.out[0], segment.row * plan_.n + segment.first, segment.count);
  }

  ScaledMatmul plan_;
  BlockedProduct product_;
};

}  // namespace

std::unique_ptr<Kernel> MakeScaledMatmul(const ScaledMatmul& plan) {
  return std::make_unique<ScaledMatmulKernel>(plan);
}

Status ExpectEightBits(const OpContext& op, std::string_view x, std::string_view w) {
  const DataType a = op.in(x).dtype;
  const DataType b = op.in(w).dtype;
  const bool alone = a == DataType::kInt8 || a == DataType::kHifloat8;
  const bool float8 =
      kEightBitFloats.Contains(a) && kEightBitFloats.Contains(b) && b != DataType::kHifloat8;
  if (alone ? a == b : float8) return Status();
  return Error(Code::kUnsupported,
               "{}: {} is {} and {} {}; expected two of int8, of hifloat8 or of float8", op.Who(),
               x, Name(a), w, Name(b));
}

}  // namespace npumesh
