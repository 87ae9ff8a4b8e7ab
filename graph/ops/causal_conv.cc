// FusedCausalConv1d and InplaceFusedCausalConv1d: a depthwise convolution of three taps along
// packed sequences, each preceded by the rows that its cache holds. Ops reference 5.19.
//
//   y[i] = sum over k of w[k] * x'[i + k],  x' = the K - 1 cached rows, then the sequence
//
// The cache then holds the last K - 1 rows of x'. The residual x[i] is added behind the activation.
// Speculative decoding, whose caches are longer, and block-wise caches are refused.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"

namespace npumesh {
namespace {

struct ConvPlan {
  int64_t rows = 0;
  int64_t width = 0;
  int64_t taps = 0;
  int64_t sequences = 0;
  int64_t length = 0;  // of every sequence of a three-dimensional x; 0: packed
  int64_t lines = 0;   // of the cache
  DataType dtype = DataType::kUndefined;
  int starts = -1;  // slots
  int indices = -1;
  int modes = -1;
  int64_t skipped = -1;
  bool activates = false;
  bool residual = true;
};

bool IsInPlace(const OpContext& op) {
  return op.schema().type == "InplaceFusedCausalConv1d";
}

Status RefuseWhatIsNot(const OpContext& op) {
  for (const std::string_view port :
       {"bias", "num_accepted_tokens", "num_computed_tokens", "block_idx_first_scheduled_token",
        "block_idx_last_scheduled_token", "initial_state_idx"}) {
    if (SlotIfFed(op, port) < 0) continue;
    return Error(Code::kUnsupported, "{}: \"{}\" is fed, which is not supported", op.Who(), port);
  }
  const int64_t activation = op.attr_int("activation_mode"), mode = op.attr_int("conv_mode"),
                residual = op.attr_int("residual_connection"), run = op.attr_int("run_mode");
  if (activation >= 0 && activation <= 2 && mode == 0 && (residual == 0 || residual == 1) &&
      (run == 0 || run == 1)) {
    return Status();
  }
  return Error(Code::kUnsupported,
               "{}: activation_mode {}, conv_mode {}, residual_connection {} and run_mode {}; "
               "expected 0 to 2, 0, 0 or 1, and 0 or 1",
               op.Who(), activation, mode, residual, run);
}

Status ReadLists(const OpContext& op, ConvPlan& plan) {
  plan.starts = SlotIfFed(op, "query_start_loc");
  plan.indices = SlotIfFed(op, "cache_indices");
  plan.modes = SlotIfFed(op, "initial_state_mode");
  if (plan.length == 0 && plan.starts < 0) {
    return Error(Code::kInvalidArgument, "{}: x is packed, \"query_start_loc\" is missing",
                 op.Who());
  }
  if (plan.length == 0) plan.sequences = op.in(plan.starts).shape.elements() - 1;
  const std::pair<int, int64_t> lists[] = {
      {plan.length == 0 ? plan.starts : -1, plan.sequences + 1},
      {plan.indices, plan.sequences},
      {plan.modes, plan.sequences}};
  for (const auto& [slot, count] : lists) {
    if (slot < 0 || op.in(slot) == TensorType{DataType::kInt32, {count}}) continue;
    return Error(Code::kInvalidArgument, "{}: input slot {} is {}, expected int32[{}]", op.Who(),
                 slot, op.in(slot).ToString(), count);
  }
  if (plan.sequences >= 0 && (plan.indices >= 0 || plan.lines >= plan.sequences)) return Status();
  return Error(Code::kInvalidArgument, "{}: {} cached lines for {} sequences", op.Who(), plan.lines,
               plan.sequences);
}

Result<ConvPlan> PlanConv(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(RefuseWhatIsNot(op));
  const TensorType &x = op.in("x"), &w = op.in("weight"), &cache = op.in("conv_states");
  ConvPlan plan;
  const int rank = x.shape.rank();
  bool fits = IsRowType(x.dtype) && w.dtype == x.dtype && cache.dtype == x.dtype &&
              (rank == 2 || rank == 3) && w.shape.rank() == 2 && cache.shape.rank() == 3;
  if (fits) {
    plan.dtype = x.dtype;
    plan.width = x.shape[rank - 1];
    plan.rows = ElementsBetween(x.shape, 0, rank - 1);
    plan.taps = w.shape[0];
    plan.lines = cache.shape[0];
    if (rank == 3) {
      plan.sequences = x.shape[0];
      plan.length = x.shape[1];
    }
    fits = w.shape[1] == plan.width && plan.taps >= 1 &&
           cache.shape == Shape({plan.lines, plan.taps - 1, plan.width}) &&
           (rank == 2 || plan.length > 0);
  }
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {}, weight {} and conv_states {}; expected [rows,dim] or "
                 "[batch,length,dim], [K,dim] and [lines,K-1,dim] of one float type",
                 op.Who(), x.ToString(), w.ToString(), cache.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(ReadLists(op, plan));
  plan.skipped = op.attr_int("pad_slot_id");
  plan.activates = op.attr_int("activation_mode") != 0;
  plan.residual = op.attr_int("residual_connection") == 1;
  return plan;
}

Status InferConv(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanConv(op).status());
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("conv_states").dtype, op.in("conv_states").shape));
  return SetOutput(op, 1, op.in("x").dtype, op.in("x").shape);
}

class ConvKernel final : public Kernel {
 public:
  ConvKernel(const OpContext& op, const ConvPlan& plan)
      : plan_(plan), who_(op.Who()), in_place_(IsInPlace(op)), y_bytes_(op.out(1).bytes()) {}

  // The weights, the history, the new cache and two rows.
  uint64_t scratch_bytes() const override {
    const int64_t rows = plan_.taps + 2 * (plan_.taps - 1) + 2;
    return static_cast<uint64_t>(rows * plan_.width) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* weights = static_cast<float*>(args.scratch);
    LoadNumbers(plan_.dtype, args.in[1], 0, plan_.taps * plan_.width, weights);
    if (!in_place_) std::memset(args.out[1], 0, y_bytes_);
    for (int64_t b = 0; b < plan_.sequences; ++b) {
      const int64_t begin = plan_.length > 0 ? b * plan_.length : Integer(args, plan_.starts, b);
      const int64_t end =
          plan_.length > 0 ? begin + plan_.length : Integer(args, plan_.starts, b + 1);
      if (begin < 0 || end < begin || end > plan_.rows) {
        return Error(Code::kInvalidArgument,
                     "{}: \"query_start_loc\" gives sequence {} rows {} to {} of {}", who_, b,
                     begin, end, plan_.rows);
      }
      NPUMESH_RETURN_IF_ERROR(RunSequence(args, b, begin, end));
    }
    return Status();
  }

 private:
  static int64_t Integer(const KernelArgs& args, int slot, int64_t i) {
    return static_cast<const int32_t*>(args.in[slot])[i];
  }

  Status RunSequence(const KernelArgs& args, int64_t b, int64_t begin, int64_t end) const {
    const int64_t line = plan_.indices < 0 ? b : Integer(args, plan_.indices, b);
    if (plan_.skipped >= 0 && line == plan_.skipped) return Status();
    if (line < 0 || line >= plan_.lines) {
      return Error(Code::kInvalidArgument, "{}: sequence {} has line {} of a cache of {}", who_, b,
                   line, plan_.lines);
    }
    const int64_t mode = plan_.modes < 0 ? 1 : Integer(args, plan_.modes, b);
    if (mode != 0 && mode != 1) {
      return Error(Code::kUnsupported,
                   "{}: initial_state_mode of sequence {} is {}, expected 0 or 1", who_, b, mode);
    }
    const int64_t kept = plan_.taps - 1, n = plan_.width;
    float* history = static_cast<float*>(args.scratch) + plan_.taps * n;
    float* last = history + kept * n;
    LoadNumbers(plan_.dtype, args.out[0], line * kept * n, kept * n, history);
    if (mode == 0) std::fill_n(history, kept * n, 0.0f);
    // From the end on, as y may lie where x does.
    for (int64_t k = 0; k < kept; ++k)
      LoadSeen(args, begin, end - begin + k, history, last + k * n);
    for (int64_t i = end - begin; i-- > 0;) RunRow(args, begin, i, history);
    StoreRow(plan_.dtype, last, args.out[0], line * kept * n, kept * n);
    return Status();
  }

  // Row `i` of x': the history, then the sequence.
  void LoadSeen(const KernelArgs& args, int64_t begin, int64_t i, const float* history,
                float* to) const {
    const int64_t kept = plan_.taps - 1, n = plan_.width;
    if (i < kept) {
      std::copy_n(history + i * n, n, to);
    } else {
      LoadNumbers(plan_.dtype, args.in[0], (begin + i - kept) * n, n, to);
    }
  }

  void RunRow(const KernelArgs& args, int64_t begin, int64_t i, const float* history) const {
    const int64_t n = plan_.width;
    const auto* weights = static_cast<const float*>(args.scratch);
    float* seen = static_cast<float*>(args.scratch) + (plan_.taps + 2 * (plan_.taps - 1)) * n;
    float* y = seen + n;
    std::fill_n(y, n, 0.0f);
    for (int64_t k = 0; k < plan_.taps; ++k) {
      LoadSeen(args, begin, i + k, history, seen);
      for (int64_t d = 0; d < n; ++d) y[d] += weights[k * n + d] * seen[d];
    }
    for (int64_t d = 0; plan_.activates && d < n; ++d) y[d] /= 1.0f + std::exp(-y[d]);
    // The last tap saw x[i].
    for (int64_t d = 0; plan_.residual && d < n; ++d) y[d] += seen[d];
    StoreRow(plan_.dtype, y, args.out[1], (begin + i) * n, n);
  }

  ConvPlan plan_;
  std::string who_;
  bool in_place_;
  uint64_t y_bytes_;
};

Result<std::unique_ptr<Kernel>> MakeConv(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const ConvPlan plan, PlanConv(op));
  return std::unique_ptr<Kernel>(std::make_unique<ConvKernel>(op, plan));
}

}  // namespace

void RegisterCausalConvOps(OpRegistry& registry) {
  for (const bool in_place : {false, true}) {
    Operator op;
    op.schema.type = in_place ? "InplaceFusedCausalConv1d" : "FusedCausalConv1d";
    op.schema.inputs = {{"x"}, {"weight"}, {"conv_states"}};
    for (const std::string_view port :
         {"query_start_loc", "cache_indices", "initial_state_mode", "bias", "num_accepted_tokens",
          "num_computed_tokens", "block_idx_first_scheduled_token",
          "block_idx_last_scheduled_token", "initial_state_idx"}) {
      op.schema.inputs.push_back({port, PortKind::kOptional});
    }
    op.schema.outputs = {{"conv_states"}, {in_place ? "x" : "y"}};
    op.schema.attrs = {{"activation_mode", AttrValue::Int(0)},
                       {"pad_slot_id", AttrValue::Int(-1)},
                       {"run_mode", AttrValue::Int(0)},
                       {"max_query_len", AttrValue::Int(-1)},
                       {"residual_connection", AttrValue::Int(1)},
                       {"block_size", AttrValue::Int(128)},
                       {"conv_mode", AttrValue::Int(0)}};
    op.infer = InferConv;
    op.make_kernel = MakeConv;
    op.in_place = {{0, 2}};
    if (in_place) op.in_place.push_back({1, 0});
    registry.Add(std::move(op));
  }
}

}  // namespace npumesh
