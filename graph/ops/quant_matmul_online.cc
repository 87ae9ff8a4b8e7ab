// QuantMatmulDequant and QuantGroupedMatmulDequant: the left operand is quantised on the way. Ops
// reference 5.19.
//
//   x' = x * smooth_scale;  s = x_scale, or max|row of x'| / 127;  q = int8(x' / s)
//   y = (q w + bias) * weight_scale * s
//
// A weight_scale in 64 bits has x_scale multiplied in already.
#include <algorithm>
#include <cmath>

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/group_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/quant_matmul.h"

namespace npumesh {
namespace {

struct OnlinePlan {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t groups = 1;
  bool transposed = false;
  bool folded = false;  // weight_scale includes x_scale
  DataType dtype = DataType::kUndefined;
  Factors smooth;
  Factors x_scale;
  Dequant dequant;  // of all groups
  GroupRows rows;
};

bool IsGrouped(const OpContext& op) {
  return op.schema().type == "QuantGroupedMatmulDequant";
}

Status ReadOperands(const OpContext& op, OnlinePlan& plan) {
  const TensorType &x = op.in("x"), &w = op.in("quantized_weight");
  const int rank = IsGrouped(op) ? 3 : 2;
  plan.transposed = op.attr_bool("transpose_weight");
  plan.dtype = x.dtype;
  bool fits = IsRowType(x.dtype) && x.shape.rank() == 2 && w.dtype == DataType::kInt8 &&
              w.shape.rank() == rank;
  if (fits) {
    plan.m = x.shape[0];
    plan.k = x.shape[1];
    plan.groups = rank == 3 ? w.shape[0] : 1;
    plan.n = w.shape[plan.transposed ? rank - 2 : rank - 1];
    fits = w.shape[plan.transposed ? rank - 1 : rank - 2] == plan.k;
  }
  if (fits) return Status();
  return Error(Code::kInvalidArgument,
               "{}: x is {} and quantized_weight {}, expected a matrix of a float type and int8 "
               "{}[{}]",
               op.Who(), x.ToString(), w.ToString(), rank == 3 ? "groups of " : "",
               plan.transposed ? "n,k" : "k,n");
}

Status ReadScales(const OpContext& op, OnlinePlan& plan) {
  NPUMESH_ASSIGN_OR_RETURN(plan.smooth, Factors::Of(op, "smooth_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.x_scale, Factors::Of(op, "x_scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.dequant.scale, Factors::Of(op, "weight_scale"));
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  const std::string mode = op.attr_string("x_quant_mode");
  if (mode != "pertoken" && mode != "pertensor") {
    return Error(Code::kInvalidArgument, "{}: x_quant_mode \"{}\", expected pertoken or pertensor",
                 op.Who(), mode);
  }
  if (mode == "pertensor" && plan.x_scale.count() != 1) {
    return Error(Code::kUnsupported, "{}: x_quant_mode pertensor with {} x_scale, expected one",
                 op.Who(), plan.x_scale.count());
  }
  plan.folded = op.in("weight_scale").dtype == DataType::kInt64;
  if (plan.folded && mode != "pertensor") {
    return Error(Code::kUnsupported, "{}: weight_scale is int64, expected x_quant_mode pertensor",
                 op.Who());
  }
  if (plan.dequant.after.given()) {
    return Error(Code::kUnsupported, "{}: bias is {}, expected int32", op.Who(),
                 op.in("bias").ToString());
  }
  const int64_t columns = plan.groups * plan.n;
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.smooth, "smooth_scale", plan.k));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.x_scale, "x_scale", plan.m));
  NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.scale, "weight_scale", columns));
  return CheckFactors(op, plan.dequant.before, "bias", columns);
}

Result<OnlinePlan> PlanOnline(const OpContext& op) {
  OnlinePlan plan;
  NPUMESH_RETURN_IF_ERROR(ReadOperands(op, plan));
  NPUMESH_RETURN_IF_ERROR(ReadScales(op, plan));
  if (SlotIfFed(op, "x_offset") >= 0) {
    return Error(Code::kUnsupported, "{}: \"x_offset\" is fed, which is not supported", op.Who());
  }
  if (!IsGrouped(op)) return plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.rows, GroupRows::Of(op, "group_list", false, plan.m));
  if (plan.rows.groups() == plan.groups) return plan;
  return Error(Code::kInvalidArgument, "{}: \"group_list\" has {} entries for {} weights", op.Who(),
               plan.rows.groups(), plan.groups);
}

Status InferOnline(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const OnlinePlan plan, PlanOnline(op));
  return SetOutput(op, 0, plan.dtype, {plan.m, plan.n});
}

class OnlineKernel final : public Kernel {
 public:
  OnlineKernel(const OpContext& op, OnlinePlan plan)
      : plan_(std::move(plan)),
        x_(op.slot("x")),
        weight_(op.slot("quantized_weight")),
        threads_(op.threads()),
        product_(plan_.k, true) {}

  // The product's, two segments, a row of x and one of smoothing, the scales, the integers.
  uint64_t scratch_bytes() const override {
    const int64_t floats = 2 * kBlockColumns + 2 * plan_.k + plan_.m;
    return product_.scratch_bytes() + static_cast<uint64_t>(floats) * sizeof(float) +
           static_cast<uint64_t>(plan_.m * plan_.k);
  }

  Status Run(const KernelArgs& args) override {
    const Room room = RoomIn(args);
    Quantise(args, room);
    const ProductThreads threads(threads_);
    if (!plan_.rows.given()) return RunGroup(args, room, 0, 0, plan_.m);
    int64_t done = 0;
    NPUMESH_RETURN_IF_ERROR(
        plan_.rows.ForEach(args, [&](int64_t group, int64_t begin, int64_t end) {
          done = end;
          return RunGroup(args, room, group, begin, end);
        }));
    const auto width =
        static_cast<uint64_t>(plan_.n) * static_cast<uint64_t>(BitsOf(plan_.dtype)) / 8;
    std::fill_n(static_cast<std::byte*>(args.out[0]) + static_cast<uint64_t>(done) * width,
                static_cast<uint64_t>(plan_.m - done) * width, std::byte{0});
    return Status();
  }

 private:
  struct Room {
    float* factors;
    float* results;
    float* row;
    float* smooth;
    float* scales;
    int8_t* integers;
  };

  Room RoomIn(const KernelArgs& args) const {
    auto* floats =
        reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + product_.scratch_bytes());
    float* row = floats + 2 * kBlockColumns;
    float* scales = row + 2 * plan_.k;
    return {floats, floats + kBlockColumns,
            row,    row + plan_.k,
            scales, reinterpret_cast<int8_t*>(scales + plan_.m)};
  }

  void Quantise(const KernelArgs& args, const Room& room) const {
    const int64_t k = plan_.k;
    const bool shared = plan_.smooth.count() == 1;
    if (plan_.smooth.given()) plan_.smooth.Load(args, 0, plan_.smooth.count(), room.smooth);
    for (int64_t r = 0; r < plan_.m; ++r) {
      LoadNumbers(plan_.dtype, args.in[x_], r * k, k, room.row);
      float most = 0;
      for (int64_t i = 0; i < k; ++i) {
        if (plan_.smooth.given()) room.row[i] *= room.smooth[shared ? 0 : i];
        most = std::max(most, std::fabs(room.row[i]));
      }
      const float scale = plan_.x_scale.given()
                              ? plan_.x_scale.At(args, plan_.x_scale.count() == 1 ? 0 : r)
                              : most / 127.0f;
      room.scales[r] = scale;
      for (int64_t i = 0; i < k; ++i) room.row[i] = scale == 0 ? 0.0f : room.row[i] / scale;
      StoreIntegers(DataType::kInt8, Rounding::kNearest, room.row, room.integers, r * k, k);
    }
  }

  Status RunGroup(const KernelArgs& args, const Room& room, int64_t group, int64_t begin,
                  int64_t end) const {
    const int64_t k = plan_.k, n = plan_.n;
    const Dequant dequant = plan_.dequant.Part(group, plan_.groups);
    const StoredMatrix x{DataType::kInt8, room.integers, begin * k};
    const StoredMatrix w{DataType::kInt8, args.in[weight_], group * k * n, plan_.transposed};
    return product_.Run(args, end - begin, n, x, w, {}, [&](const SumSegment& segment) {
      const int64_t row = begin + segment.row;
      dequant.Apply(args, segment, room.factors, room.results);
      const float scale = plan_.folded ? 1.0f : room.scales[row];
      for (int64_t i = 0; i < segment.count; ++i) room.results[i] *= scale;
      StoreRow(plan_.dtype, room.results, args.out[0], row * n + segment.first, segment.count);
    });
  }

  OnlinePlan plan_;
  int x_;
  int weight_;
  int threads_;
  BlockedProduct product_;
};

Result<std::unique_ptr<Kernel>> MakeOnline(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(OnlinePlan plan, PlanOnline(op));
  return std::unique_ptr<Kernel>(std::make_unique<OnlineKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterOnlineMatmulOps(OpRegistry& registry) {
  for (const std::string_view type : {"QuantMatmulDequant", "QuantGroupedMatmulDequant"}) {
    OpSchema schema;
    schema.type = type;
    schema.inputs = {{"x"}, {"quantized_weight"}, {"weight_scale"}};
    if (type == "QuantGroupedMatmulDequant") schema.inputs.push_back({"group_list"});
    for (const std::string_view port : {"bias", "x_scale", "x_offset", "smooth_scale"}) {
      schema.inputs.push_back({port, PortKind::kOptional});
    }
    schema.outputs = {{"y"}};
    schema.attrs = {{"x_quant_mode", AttrValue::String("pertoken")},
                    {"transpose_weight", AttrValue::Bool(true)}};
    registry.Add({.schema = std::move(schema), .infer = InferOnline, .make_kernel = MakeOnline});
  }
}

}  // namespace npumesh
