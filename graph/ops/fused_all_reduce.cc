// MatmulAllReduce and MatmulAllReduceAddRmsNorm: the sum over the ranks of their products. Ops
// reference 5.17.
//
// Products stay float32 on their way and are rounded once, at the end. Bias and x3 are added on
// every rank, as the operator says, the residual of the second operator once. Chunks of rows are
// summed over the ranks, and rounded or normalised, while the next one is computed.
#include <algorithm>

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/fused_chunks.h"
#include "graph/ops/fused_matmul.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/norm.h"

namespace npumesh::fused {
namespace {

struct AllReducePlan {
  Local local;
  bool quantised = false;  // x1 and x2 are integers
  bool weights = false;    // only x2 is
  Dequant dequant;
  WeightScale weight_scale;
  Factors x3;  // [m, n] or [n], added on every rank
  DataType y_dtype = DataType::kUndefined;
  int residual = -1;  // added to the sum, which is then normalised; -1: it is not
  int gamma = -1;
  double epsilon = 0;
};

// Whether the operator is the one with a residual and a norm, which lacks some of the inputs.
bool Normalises(const OpContext& op) {
  return op.schema().type == "MatmulAllReduceAddRmsNorm";
}

bool IsSmallInteger(DataType dtype) {
  return dtype == DataType::kInt8 || dtype == DataType::kInt4;
}

Status ReadScales(const OpContext& op, AllReducePlan& plan) {
  const int64_t n = plan.local.n;
  const int64_t k = plan.local.k;
  NPUMESH_RETURN_IF_ERROR(ReadBias(op, "bias", plan.dequant));
  if (plan.quantised) {
    NPUMESH_ASSIGN_OR_RETURN(plan.dequant.scale, Factors::Of(op, "dequant_scale"));
    if (!Normalises(op)) {
      NPUMESH_ASSIGN_OR_RETURN(plan.dequant.row_scale, Factors::Of(op, "pertoken_scale"));
    }
    NPUMESH_RETURN_IF_ERROR(CheckFactors(op, plan.dequant.scale, "dequant_scale", n));
    return CheckFactors(op, plan.dequant.row_scale, "pertoken_scale", plan.local.m);
  }
  WeightScale& scale = plan.weight_scale;
  NPUMESH_ASSIGN_OR_RETURN(scale.scale, Factors::Of(op, "antiquant_scale"));
  NPUMESH_ASSIGN_OR_RETURN(scale.offset, Factors::Of(op, "antiquant_offset"));
  const int64_t group = op.attr_int("antiquant_group_size");
  const int64_t groups = group > 0 ? (k + group - 1) / group : 1;
  scale.rows = std::max<int64_t>(group, 0);
  if (scale.scale.count() != 1) {
    scale.by_column = plan.local.transposed2 ? groups : 1;
    scale.by_rows = plan.local.transposed2 ? 1 : n;
  }
  const bool fits = scale.scale.given() &&
                    (scale.scale.count() == 1 || scale.scale.count() == groups * n) &&
                    (!scale.offset.given() || scale.offset.count() == scale.scale.count());
  if (fits) return Status();
  return Error(Code::kInvalidArgument, "{}: {} antiquant scales and {} offsets for weights {} x {}",
               op.Who(), scale.scale.count(), scale.offset.count(), k, n);
}

// What MatmulAllReduce has and the other operator has not.
Status ReadSummands(const OpContext& op, AllReducePlan& plan) {
  NPUMESH_RETURN_IF_ERROR(RefuseInputs(op, {"comm_quant_scale_1", "comm_quant_scale_2"}));
  NPUMESH_ASSIGN_OR_RETURN(plan.x3, Factors::Of(op, "x3"));
  const int64_t x3 = plan.x3.count();
  if (plan.x3.given() && x3 != plan.local.n && x3 != plan.local.m * plan.local.n) {
    return Error(Code::kInvalidArgument, "{}: x3 is {} for a product of {} x {}", op.Who(),
                 op.in("x3").ToString(), plan.local.m, plan.local.n);
  }
  // 28: as x1; the result of integers is float16 unless the scale or the attribute says otherwise.
  const bool as_scale = plan.dequant.scale.dtype() == DataType::kBfloat16;
  plan.y_dtype = !plan.quantised ? plan.local.dtype
                 : as_scale      ? DataType::kBfloat16
                                 : DataType::kFloat16;
  if (op.attr_int("y_dtype") != static_cast<int64_t>(DataType::kUndefined)) {
    NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("y_dtype"));
  }
  if (IsRowType(plan.y_dtype)) return Status();
  return Error(Code::kUnsupported, "{}: y_dtype is {}, expected a float type", op.Who(),
               Name(plan.y_dtype));
}

Status ReadNorm(const OpContext& op, AllReducePlan& plan) {
  plan.residual = op.slot("residual");
  plan.gamma = op.slot("gamma");
  plan.epsilon = static_cast<double>(op.attr_float("epsilon"));
  const TensorType& residual = op.in(plan.residual);
  const TensorType& gamma = op.in(plan.gamma);
  plan.y_dtype = residual.dtype;
  const int rank = residual.shape.rank();
  const bool typed = IsRowType(residual.dtype) && gamma.dtype == residual.dtype &&
                     (plan.quantised || residual.dtype == plan.local.dtype);
  if (typed && rank >= 2 && residual.shape[rank - 1] == plan.local.n &&
      ElementsBetween(residual.shape, 0, rank - 1) == plan.local.m &&
      gamma.shape == Shape{plan.local.n}) {
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "{}: residual is {} and gamma {} for a product of {} x {} in {}; expected floats "
               "of one type, as many as the product has, and a row of them",
               op.Who(), residual.ToString(), gamma.ToString(), plan.local.m, plan.local.n,
               Name(plan.local.dtype));
}

Result<AllReducePlan> PlanAllReduce(const OpContext& op) {
  AllReducePlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.local, PlanLocal(op));
  NPUMESH_RETURN_IF_ERROR(ExpectSum(op));
  const DataType w = op.in("x2").dtype;
  plan.quantised = IsSmallInteger(plan.local.dtype) && IsSmallInteger(w);
  plan.weights = IsRowType(plan.local.dtype) && IsSmallInteger(w);
  if (plan.quantised || plan.weights) {
    NPUMESH_RETURN_IF_ERROR(ReadScales(op, plan));
  } else {
    NPUMESH_RETURN_IF_ERROR(ExpectFloats(op));
  }
  NPUMESH_RETURN_IF_ERROR(Normalises(op) ? ReadNorm(op, plan) : ReadSummands(op, plan));
  return plan;
}

Status InferAllReduce(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const AllReducePlan plan, PlanAllReduce(op));
  NPUMESH_RETURN_IF_ERROR(hcom::MembersOf(op).status());
  std::vector<int64_t> y = plan.local.front;
  y.push_back(plan.local.n);
  if (plan.residual >= 0) y = op.in(plan.residual).shape.dims();
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.y_dtype, Shape(y)));
  if (plan.residual < 0) return Status();
  return SetOutput(op, 1, plan.y_dtype, Shape(std::move(y)));
}

// Scratch: the product as float32, a segment for factors and one for results, three rows for a
// norm, and the product's own.
class AllReduceKernel final : public Kernel {
 public:
  // `floats` computes the rows of one chunk.
  AllReduceKernel(const OpContext& op, AllReducePlan plan, int64_t chunks, Communicator* group,
                  std::unique_ptr<Kernel> floats)
      : node_(op.node().name),
        plan_(std::move(plan)),
        rows_(plan_.local.m / chunks),
        travel_(chunks),
        group_(group),
        floats_(std::move(floats)),
        in_(static_cast<size_t>(op.slots())),
        blocked_(plan_.local.k, plan_.quantised),
        x1_(op.slot("x1")),
        x2_(op.slot("x2")),
        x1_dtype_(op.in("x1").dtype),
        x2_dtype_(op.in("x2").dtype),
        threads_(op.threads()) {}

  uint64_t scratch_bytes() const override {
    const uint64_t product =
        floats_ != nullptr ? floats_->scratch_bytes() : blocked_.scratch_bytes();
    return own_bytes() + product;
  }

  bool reads(int slot) const override {
    return slot != x2_ || floats_ == nullptr || floats_->reads(slot);
  }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    auto* sums = static_cast<float*>(args.scratch);
    const int64_t count = rows_ * plan_.local.n;
    const auto reduce = [&](int64_t chunk) -> Status {
      const int64_t at = chunk * count;
      const bool direct = plan_.y_dtype == DataType::kFloat && plan_.residual < 0;
      float* const whole = direct ? static_cast<float*>(args.out[0]) : sums;
      NPUMESH_RETURN_IF_ERROR(group_->AllReduce(sums + at, whole + at, static_cast<uint64_t>(count),
                                                DataType::kFloat, ReduceOp::kSum, node_));
      if (plan_.residual >= 0) {
        Normalise(args, chunk * rows_, sums);
      } else if (!direct) {
        StoreRow(plan_.y_dtype, sums + at, args.out[0], at, count);
      }
      return Status();
    };
    Status computed;
    for (int64_t chunk = 0; chunk < travel_.chunks() && computed.ok(); ++chunk) {
      computed = Product(args, chunk * rows_, sums);
      if (!computed.ok()) break;
      AddX3(args, chunk * rows_, sums);
      travel_.Send(chunk, reduce);
    }
    const Status arrived = travel_.AwaitAll();
    return computed.ok() ? arrived : computed;
  }

 private:
  uint64_t own_bytes() const {
    return norm_at() + (plan_.residual < 0 ? 0 : RoundedUp(FloatBytes(3 * plan_.local.n)));
  }
  uint64_t norm_at() const {
    return RoundedUp(FloatBytes(plan_.local.m * plan_.local.n + 2 * kBlockColumns));
  }

  // Adds the residual to the rows of a chunk, rounds them and gives their norm, as AddRmsNorm does.
  // With several chunks this runs beside the product of the next one.
  void Normalise(const KernelArgs& args, int64_t first, float* sums) const {
    const int64_t n = plan_.local.n;
    auto* room = reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + norm_at());
    const float* gamma = LoadRow(plan_.y_dtype, args.in[plan_.gamma], 0, n, room);
    for (int64_t r = first; r < first + rows_; ++r) {
      float* sum = sums + r * n;
      const float* residual = LoadRow(plan_.y_dtype, args.in[plan_.residual], r * n, n, room + n);
      for (int64_t i = 0; i < n; ++i) sum[i] += residual[i];
      StoreRow(plan_.y_dtype, sum, args.out[0], r * n, n);
      const float* x = LoadRow(plan_.y_dtype, args.out[0], r * n, n, room + n);
      NormaliseRow(plan_.y_dtype, x, gamma, n, plan_.epsilon, true, room + 2 * n, args.out[1],
                   r * n);
    }
  }

  // Rows [first, first + rows_) of the product.
  Status Product(const KernelArgs& args, int64_t first, float* sums) {
    const int64_t n = plan_.local.n;
    void* out[] = {sums + first * n};
    std::copy_n(args.in, in_.size(), in_.begin());
    std::byte* const room = static_cast<std::byte*>(args.scratch) + own_bytes();
    if (floats_ != nullptr) {
      const int64_t row_bytes = plan_.local.k * BitsOf(x1_dtype_) / 8;
      const void*& x1 = in_[static_cast<size_t>(x1_)];
      x1 = static_cast<const std::byte*>(x1) + first * row_bytes;
      return floats_->Run({in_.data(), out, room});
    }
    const ProductThreads threads(threads_);
    float* factors = sums + plan_.local.m * n;
    const auto take = [&](const SumSegment& segment) {
      SumSegment whole = segment;
      whole.row += first;
      plan_.dequant.Apply(args, whole, factors, sums + whole.row * n + whole.first);
    };
    return blocked_.Run({args.in, out, room}, rows_, n,
                        {x1_dtype_, args.in[x1_], first * plan_.local.k, plan_.local.transposed1},
                        {x2_dtype_, args.in[x2_], 0, plan_.local.transposed2}, plan_.weight_scale,
                        take);
  }

  void AddX3(const KernelArgs& args, int64_t first, float* sums) const {
    if (!plan_.x3.given()) return;
    const int64_t n = plan_.local.n;
    float* const addend = sums + plan_.local.m * n;
    for (int64_t r = first; r < first + rows_; ++r) {
      for (int64_t column = 0; column < n; column += kBlockColumns) {
        const int64_t count = std::min(kBlockColumns, n - column);
        plan_.x3.Load(args, (plan_.x3.count() == n ? 0 : r * n) + column, count, addend);
        for (int64_t i = 0; i < count; ++i) sums[r * n + column + i] += addend[i];
      }
    }
  }

  std::string node_;
  AllReducePlan plan_;
  int64_t rows_;  // of a chunk
  ChunkTravel travel_;
  Communicator* group_;
  std::unique_ptr<Kernel> floats_;  // null: the product is quantised
  std::vector<const void*> in_;
  BlockedProduct blocked_;
  int x1_;
  int x2_;
  DataType x1_dtype_;
  DataType x2_dtype_;
  int threads_;
};

Result<std::unique_ptr<Kernel>> MakeAllReduce(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(AllReducePlan plan, PlanAllReduce(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op));
  const Local& local = plan.local;
  const int64_t chunks = local.transposed1 ? 1 : ChunksOf(local.m, FloatBytes(local.m * local.n));
  std::unique_ptr<Kernel> floats;
  if (!plan.quantised && !plan.weights && local.m * local.n > 0) {
    NPUMESH_ASSIGN_OR_RETURN(floats, MakeProduct(op, local, local.m / chunks, DataType::kFloat));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<AllReduceKernel>(op, std::move(plan), chunks, group, std::move(floats)));
}

}  // namespace

void RegisterAllReduceMatmul(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  const AttrSpec group = {"group", Required::kString};
  const AttrSpec reduce = {"reduce_op", AttrValue::String("sum")};
  const AttrSpec trans_a = {"is_trans_a", AttrValue::Bool(false)};
  const AttrSpec trans_b = {"is_trans_b", AttrValue::Bool(false)};
  const AttrSpec turn = {"comm_turn", AttrValue::Int(0)};
  hcom::Add(registry,
            {"MatmulAllReduce",
             {{"x1"},
              {"x2"},
              optional("bias"),
              optional("x3"),
              optional("antiquant_scale"),
              optional("antiquant_offset"),
              optional("dequant_scale"),
              optional("pertoken_scale"),
              optional("comm_quant_scale_1"),
              optional("comm_quant_scale_2")},
             {{"y"}},
             {group,
              reduce,
              trans_a,
              trans_b,
              turn,
              {"antiquant_group_size", AttrValue::Int(0)},
              {"group_size", AttrValue::Int(0)},
              {"y_dtype", AttrValue::Int(28)},
              {"comm_quant_mode", AttrValue::Int(0)},
              {"comm_mode", AttrValue::String("ai_cpu")}}},
            {.leaves_equal = true, .reduction = "reduce_op"}, InferAllReduce, MakeAllReduce);
  hcom::Add(registry,
            {"MatmulAllReduceAddRmsNorm",
             {{"x1"},
              {"x2"},
              optional("bias"),
              {"residual"},
              {"gamma"},
              optional("antiquant_scale"),
              optional("antiquant_offset"),
              optional("dequant_scale")},
             {{"y"}, {"norm_out"}},
             {group,
              reduce,
              trans_a,
              trans_b,
              turn,
              {"antiquant_group_size", AttrValue::Int(0)},
              {"epsilon", AttrValue::Float(1e-6f)}}},
            {.leaves_equal = true, .own_inputs = {"residual", "gamma"}, .reduction = "reduce_op"},
            InferAllReduce, MakeAllReduce);
}

}  // namespace npumesh::fused
