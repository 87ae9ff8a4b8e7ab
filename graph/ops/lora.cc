// AddLora: low-rank updates, each row with the matrices that its index names. Ops reference 5.19.
//
//   y[row, slice] += scale * weightB[i, layer] (weightA[i, layer] x[row]),  i = indices[row]
//
// Without weightA, x takes the place of the inner product. A negative index leaves the row.
#include <algorithm>
#include <string>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"

namespace npumesh {
namespace {

struct LoraPlan {
  int64_t rows = 0;
  int64_t width = 0;    // of y
  int64_t inner = 0;    // of x
  int64_t rank = 0;     // what weightB multiplies
  int64_t slice = 0;    // elements of y that change
  int64_t weights = 0;  // that an index may name
  int64_t layers = 0;
  int64_t layer = 0;
  int64_t offset = 0;
  float scale = 0;
  bool low_rank = false;  // weightA is fed
};

bool IsWeight(const OpContext& op, std::string_view port, int64_t weights, int64_t layers,
              int64_t rows, int64_t columns) {
  return op.in(port) == TensorType{op.in("y").dtype, {weights, layers, rows, columns}};
}

Result<LoraPlan> PlanLora(const OpContext& op) {
  const TensorType &y = op.in("y"), &x = op.in("x"), &b = op.in("weightB");
  LoraPlan plan;
  plan.layer = op.attr_int("layer_idx");
  plan.offset = op.attr_int("y_offset");
  plan.scale = op.attr_float("scale");
  plan.low_rank = SlotIfFed(op, "weightA") >= 0;
  bool fits = IsRowType(y.dtype) && x.dtype == y.dtype && y.shape.rank() == 2 &&
              x.shape.rank() == 2 && x.shape[0] == y.shape[0] && b.shape.rank() == 4 &&
              op.in("indices") == TensorType{DataType::kInt32, {y.shape[0]}};
  if (fits) {
    plan.rows = y.shape[0];
    plan.width = y.shape[1];
    plan.inner = x.shape[1];
    plan.weights = b.shape[0];
    plan.layers = b.shape[1];
    plan.slice = b.shape[2];
    plan.rank = b.shape[3];
    fits = b.dtype == y.dtype && (plan.low_rank ? IsWeight(op, "weightA", plan.weights, plan.layers,
                                                           plan.rank, plan.inner)
                                                : plan.rank == plan.inner);
  }
  if (!fits) {
    return Error(
        Code::kInvalidArgument,
        "{}: y is {}, x {}, weightB {}, indices {}{}; expected y [B,H3], x [B,H1], weightB "
        "[W,L,H2,R], indices int32 [B] and weightA [W,L,R,H1], of one float type",
        op.Who(), y.ToString(), x.ToString(), b.ToString(), op.in("indices").ToString(),
        plan.low_rank ? ", weightA " + op.in("weightA").ToString() : "");
  }
  const int64_t slice = op.attr_int("y_slice_size");
  if (plan.layer < 0 || plan.layer >= plan.layers || plan.offset < 0 ||
      (slice >= 0 && slice != plan.slice) || plan.offset + plan.slice > plan.width) {
    return Error(Code::kInvalidArgument,
                 "{}: layer_idx {}, y_offset {} and y_slice_size {} do not fit y {} and weightB {}",
                 op.Who(), plan.layer, plan.offset, slice, y.ToString(), b.ToString());
  }
  return plan;
}

Status InferLora(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanLora(op).status());
  return SetOutput(op, 0, op.in("y").dtype, op.in("y").shape);
}

class LoraKernel final : public Kernel {
 public:
  LoraKernel(const OpContext& op, const LoraPlan& plan)
      : plan_(plan), who_(op.Who()), dtype_(op.in("y").dtype) {}

  // Rows of x, the inner product, the slice and a weight.
  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(2 * plan_.inner + 2 * plan_.rank + plan_.slice) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const auto* indices = static_cast<const int32_t*>(args.in[3]);
    for (int64_t row = 0; row < plan_.rows; ++row) {
      if (indices[row] < 0) continue;
      if (indices[row] >= plan_.weights) {
        return Error(Code::kInvalidArgument, "{}: row {} asks for weights {}, there are {}", who_,
                     row, indices[row], plan_.weights);
      }
      RunRow(args, row, indices[row] * plan_.layers + plan_.layer);
    }
    return Status();
  }

 private:
  // y = the product of a stored matrix with x; `room` holds a row of it.
  void Apply(const void* matrix, int64_t first, int64_t rows, int64_t columns, const float* x,
             float* room, float* y) const {
    for (int64_t r = 0; r < rows; ++r) {
      const float* weights = LoadRow(dtype_, matrix, first + r * columns, columns, room);
      double sum = 0;
      for (int64_t i = 0; i < columns; ++i) sum += static_cast<double>(weights[i] * x[i]);
      y[r] = static_cast<float>(sum);
    }
  }

  void RunRow(const KernelArgs& args, int64_t row, int64_t matrix) const {
    auto* x = static_cast<float*>(args.scratch);
    float* weights = x + plan_.inner;
    float* inner = weights + std::max(plan_.inner, plan_.rank);
    float* slice = inner + plan_.rank;
    LoadNumbers(dtype_, args.in[1], row * plan_.inner, plan_.inner, x);
    const float* from = x;
    if (plan_.low_rank) {
      const int64_t first = matrix * plan_.rank * plan_.inner;
      Apply(args.in[4], first, plan_.rank, plan_.inner, x, weights, inner);
      from = inner;
    }
    Apply(args.in[2], matrix * plan_.slice * plan_.rank, plan_.slice, plan_.rank, from, weights,
          slice);
    const int64_t at = row * plan_.width + plan_.offset;
    for (int64_t first = 0; first < plan_.slice; first += kBlock) {
      const int64_t count = std::min(kBlock, plan_.slice - first);
      float room[kBlock];
      const float* y = LoadRow(dtype_, args.out[0], at + first, count, room);
      for (int64_t i = 0; i < count; ++i) slice[first + i] = y[i] + plan_.scale * slice[first + i];
    }
    StoreRow(dtype_, slice, args.out[0], at, plan_.slice);
  }

  static constexpr int64_t kBlock = 512;

  LoraPlan plan_;
  std::string who_;
  DataType dtype_;
};

Result<std::unique_ptr<Kernel>> MakeLora(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const LoraPlan plan, PlanLora(op));
  return std::unique_ptr<Kernel>(std::make_unique<LoraKernel>(op, plan));
}

}  // namespace

void RegisterLoraOps(OpRegistry& registry) {
  registry.Add(
      {.schema = {"AddLora",
                  {{"y"}, {"x"}, {"weightB"}, {"indices"}, {"weightA", PortKind::kOptional}},
                  {{"y"}},
                  {{"layer_idx", AttrValue::Int(0)},
                   {"scale", AttrValue::Float(0.001f)},
                   {"y_offset", AttrValue::Int(0)},
                   {"y_slice_size", AttrValue::Int(-1)}}},
       .infer = InferLora,
       .make_kernel = MakeLora,
       .in_place = {{0, 0}}});
}

}  // namespace npumesh
