// AttentionUpdate: joins what ranks that share a sequence have computed of the same attention. Ops
// reference 5.11.
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

// lse are [rows], go [rows, D]; as many of each as the attribute sp says.
Status CheckParts(const OpContext& op) {
  const int parts = op.count("lse");
  bool fits = parts > 0 && op.count("go") == parts && op.attr_int("sp") == parts;
  if (fits) {
    const TensorType& lse = op.in(op.slot("lse"));
    const TensorType& go = op.in(op.slot("go"));
    fits = lse.dtype == DataType::kFloat && IsRowType(go.dtype) && go.shape.rank() > 0 &&
           ElementsBetween(go.shape, 0, go.shape.rank() - 1) == lse.shape.elements();
    for (int i = 1; i < parts; ++i) {
      fits = fits && op.in(op.slot("lse") + i) == lse && op.in(op.slot("go") + i) == go;
    }
  }
  if (fits) return Status();
  return Error(Code::kInvalidArgument,
               "{}: {} tensors lse and {} go with sp {}; expected as many, of equal types: float32 "
               "[rows] and a float type [rows,D]",
               op.Who(), parts, op.count("go"), op.attr_int("sp"));
}

Status InferUpdate(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(CheckParts(op));
  const TensorType& go = op.in(op.slot("go"));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, go.dtype, go.shape));
  return SetOutput(op, 1, DataType::kFloat, op.in(op.slot("lse")).shape);
}

class UpdateKernel final : public Kernel {
 public:
  explicit UpdateKernel(const OpContext& op)
      : parts_(op.count("lse")),
        lse_(op.slot("lse")),
        go_(op.slot("go")),
        dtype_(op.in(go_).dtype),
        rows_(op.in(lse_).shape.elements()),
        width_(op.in(go_).shape.dims().back()) {}

  // The sum and a row.
  uint64_t scratch_bytes() const override {
    return 2 * static_cast<uint64_t>(width_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* sum = static_cast<float*>(args.scratch);
    float* row = sum + width_;
    for (int64_t r = 0; r < rows_; ++r) {
      const double joined = JoinedLse(args, r);
      std::fill_n(sum, width_, 0.0f);
      for (int i = 0; i < parts_; ++i) {
        const double lse = static_cast<double>(static_cast<const float*>(args.in[lse_ + i])[r]);
        if (lse == kNothing) continue;
        const auto weight = static_cast<float>(std::exp(lse - joined));
        LoadNumbers(dtype_, args.in[go_ + i], r * width_, width_, row);
        for (int64_t d = 0; d < width_; ++d) sum[d] += weight * row[d];
      }
      StoreRow(dtype_, sum, args.out[0], r * width_, width_);
      static_cast<float*>(args.out[1])[r] = static_cast<float>(joined);
    }
    return Status();
  }

 private:
  // Of a part that has seen no key.
  static constexpr double kNothing = -std::numeric_limits<double>::infinity();

  double JoinedLse(const KernelArgs& args, int64_t r) const {
    const auto at = [&](int i) {
      return static_cast<double>(static_cast<const float*>(args.in[lse_ + i])[r]);
    };
    double most = kNothing;
    for (int i = 0; i < parts_; ++i) most = std::max(most, at(i));
    if (most == kNothing) return kNothing;
    double sum = 0;
    for (int i = 0; i < parts_; ++i) sum += std::exp(at(i) - most);
    return most + std::log(sum);
  }

  int parts_;
  int lse_;
  int go_;
  DataType dtype_;
  int64_t rows_;
  int64_t width_;
};

Result<std::unique_ptr<Kernel>> MakeUpdate(const OpContext& op) {
  return std::unique_ptr<Kernel>(std::make_unique<UpdateKernel>(op));
}

}  // namespace

void RegisterAttentionUpdateOps(OpRegistry& registry) {
  registry.Add({.schema = {"AttentionUpdate",
                           {{"lse", PortKind::kDynamic}, {"go", PortKind::kDynamic}},
                           {{"output"}, {"lse_m"}},
                           {{"update_type", Required::kInt}, {"sp", Required::kInt}}},
                .infer = InferUpdate,
                .make_kernel = MakeUpdate});
}

}  // namespace npumesh
