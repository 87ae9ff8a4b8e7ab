// MoeDistributeDispatch and MoeDistributeDispatchV2: every token travels to the ranks of its
// experts. Ops reference 5.12.
//
// First the ranks tell each other how many tokens they have for each expert, then the tokens
// travel, each with its scales and where it came from in a record of fixed size. Large ones go in
// chunks: one is quantised and packed, or unpacked, while others are on their way.
#include <cstring>

#include "graph/ops/collective.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/moe.h"
#include "graph/ops/moe_exchange.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

using moe::Chunks;
using moe::ExpandedRows;
using moe::Placement;
using moe::Route;
using moe::Routes;
using moe::Segment;

constexpr int64_t kAssist = 128;  // int32 of hand-over data for each row; the first 3 are used

struct Dispatch {
  Placement placement;
  int64_t tokens = 0;
  int64_t k = 0;
  int64_t width = 0;
  int64_t group_tokens = 0;  // of all ranks together, at most
  int64_t rows = 0;          // of expand_x
  int64_t quant = 0;         // 0 none, 1 static, 2 dynamic
  bool sums = false;         // expert_token_nums are prefix sums
  bool assist = true;        // output 2 tells where each row came from (V2)
  DataType x_dtype = DataType::kUndefined;
  DataType y_dtype = DataType::kUndefined;
  Factors scales;  // static: 1 or [width]; dynamic: [experts or all, width]
  int active = -1;
  int expert_scales = -1;

  int64_t choices() const { return k + placement.shared_experts; }
  int64_t row_bytes() const { return width * BitsOf(y_dtype) / 8; }
  int64_t record_bytes() const;
  Chunks chunks() const { return Chunks::Of(placement, group_tokens, choices(), record_bytes()); }
};

// What stands behind the elements of a token in its record.
struct Tail {
  float scale;
  float expert_scale;
  int32_t token;
  int32_t choice;
};

int64_t Dispatch::record_bytes() const {
  return (row_bytes() + int64_t{sizeof(Tail)} + 15) / 16 * 16;
}

Result<Dispatch> PlanDispatch(const OpContext& op) {
  const TensorType& x = op.in("x");
  const TensorType& ids = op.in("expert_ids");
  Dispatch plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.placement, moe::PlacementOf(op));
  if (!IsRowType(x.dtype) || x.shape.rank() != 2 || ids.shape.rank() != 2 ||
      ids.dtype != DataType::kInt32 || ids.shape[0] != x.shape[0]) {
    return Error(Code::kInvalidArgument,
                 "{}: x is {} and expert_ids {}; expected float16 or bfloat16 [BS,H] and "
                 "int32[BS,K]",
                 op.Who(), x.ToString(), ids.ToString());
  }
  plan.tokens = x.shape[0];
  plan.width = x.shape[1];
  plan.k = ids.shape[1];
  plan.quant = op.attr_int("quant_mode");
  if (plan.quant < 0 || plan.quant > 2) {
    return Error(Code::kUnsupported, "{}: quant_mode {} is not supported, expected 0, 1 or 2",
                 op.Who(), plan.quant);
  }
  plan.x_dtype = x.dtype;
  plan.y_dtype = plan.quant == 0 ? x.dtype : DataType::kInt8;
  NPUMESH_ASSIGN_OR_RETURN(plan.scales, Factors::Of(op, "scales"));
  const int64_t sets = plan.width == 0 ? 0 : plan.scales.count() / plan.width;
  const bool scales_fit = plan.quant == 0 ? true
                          : plan.quant == 1
                              ? plan.scales.count() == 1 || sets == 1
                              : !plan.scales.given() || sets == plan.placement.experts ||
                                    sets == plan.placement.experts + plan.placement.shared_experts;
  plan.active = SlotIfFed(op, "x_active_mask");
  const bool active_fits = plan.active < 0 || (op.in(plan.active).dtype == DataType::kBool &&
                                               op.in(plan.active).shape == Shape{plan.tokens});
  plan.expert_scales = SlotIfFed(op, "expert_scales");
  const bool weights_fit = plan.expert_scales < 0 ||
                           op.in(plan.expert_scales) == TensorType{DataType::kFloat, ids.shape};
  if (!scales_fit || !active_fits || !weights_fit) {
    return Error(Code::kInvalidArgument,
                 "{}: {} scales, x_active_mask or expert_scales do not fit x {} and expert_ids {} "
                 "in quant_mode {}",
                 op.Who(), plan.scales.count(), x.ToString(), ids.ToString(), plan.quant);
  }
  const int64_t given = op.attr_int("global_bs");
  plan.group_tokens = given > 0 ? given : plan.tokens * plan.placement.ranks;
  plan.rows = plan.placement.RowsOf(plan.group_tokens, plan.k);
  plan.sums = op.attr_int("expert_token_nums_type") == 0;
  plan.assist = op.schema().type == "MoeDistributeDispatchV2";
  return plan;
}

Status InferDispatch(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Dispatch plan, PlanDispatch(op));
  const int64_t local = plan.placement.local_experts();
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.y_dtype, {plan.rows, plan.width}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, {plan.rows}));
  const int64_t hand_over = plan.assist ? plan.rows * kAssist : plan.tokens * plan.k;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, DataType::kInt32, {hand_over}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 3, DataType::kInt64, {local}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 4, DataType::kInt32, {local * plan.placement.ranks}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 5, DataType::kInt32, {1}));
  return SetOutput(op, 6, DataType::kFloat, {plan.rows});
}

class DispatchKernel final : public Kernel {
 public:
  DispatchKernel(const OpContext& op, const Dispatch& plan, Communicator* group)
      : node_(op.node().name),
        plan_(plan),
        group_(group),
        x_(op.slot("x")),
        ids_(op.slot("expert_ids")),
        record_(plan.record_bytes()),
        routes_(op.Who(), plan.placement, plan.chunks(), plan.tokens, plan.k),
        rows_(op.Who(), node_, plan.placement, plan.chunks()),
        travel_(plan.placement.ranks, plan.chunks().count, record_),
        seen_(static_cast<size_t>(plan.assist ? 0 : plan.placement.experts)) {
    counts_at_ = Reserve(rows_.scratch_bytes());
    send_at_ = Reserve(static_cast<uint64_t>(routes_.most() * record_));
    recv_at_ = Reserve(static_cast<uint64_t>(plan.rows * record_));
    row_at_ = Reserve(2 * static_cast<uint64_t>(plan.width) * sizeof(float));
  }

  uint64_t scratch_bytes() const override { return scratch_bytes_; }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    const auto* active =
        plan_.active < 0 ? nullptr : static_cast<const uint8_t*>(args.in[plan_.active]);
    const Status mine = routes_.Find(static_cast<const int32_t*>(args.in[ids_]), active);
    NPUMESH_RETURN_IF_ERROR(
        rows_.Hear(*group_, At(args, counts_at_), routes_, mine, plan_.group_tokens));
    moe::LayOut(routes_, rows_, plan_.placement.ranks, false, travel_);
    const auto pack = [&](int64_t chunk) { return Pack(args, chunk); };
    const auto unpack = [&](int64_t chunk) { return Unpack(args, chunk); };
    const auto meanwhile = [&] {
      StoreCounts(args);
      if (!plan_.assist) StoreIndices(args);
      ClearBehind(args);
      return Status();
    };
    return travel_.Run(*group_, node_, At(args, send_at_), At(args, recv_at_), pack, unpack,
                       meanwhile);
  }

 private:
  uint64_t Reserve(uint64_t bytes) {
    const uint64_t at = scratch_bytes_;
    scratch_bytes_ += (bytes + 63) / 64 * 64;
    return at;
  }
  std::byte* At(const KernelArgs& args, uint64_t offset) const {
    return static_cast<std::byte*>(args.scratch) + offset;
  }

  // Records lie in the order of the routes.
  Status Pack(const KernelArgs& args, int64_t chunk) {
    std::byte* to = At(args, send_at_) + routes_.First(chunk) * record_;
    for (int64_t i = routes_.First(chunk); i < routes_.First(chunk + 1); ++i, to += record_) {
      const Route& route = routes_.all()[static_cast<size_t>(i)];
      Tail tail{0, 0, route.token, route.choice};
      if (plan_.expert_scales >= 0 && route.choice < plan_.k) {
        tail.expert_scale = static_cast<const float*>(
            args.in[plan_.expert_scales])[route.token * plan_.k + route.choice];
      }
      tail.scale = PackRow(args, route, to);
      std::memcpy(to + plan_.row_bytes(), &tail, sizeof(tail));
    }
    return Status();
  }

  // The token's elements; returns its dynamic scale.
  float PackRow(const KernelArgs& args, const Route& route, std::byte* to) {
    const int64_t n = plan_.width;
    if (plan_.quant == 0) {
      std::memcpy(to, static_cast<const std::byte*>(args.in[x_]) + route.token * plan_.row_bytes(),
                  static_cast<size_t>(plan_.row_bytes()));
      return 0;
    }
    auto* x = reinterpret_cast<float*>(At(args, row_at_));
    LoadNumbers(plan_.x_dtype, args.in[x_], route.token * n, n, x);
    if (plan_.scales.given()) ApplyScales(args, route, x);
    if (plan_.quant == 2) return QuantiseRow(x, n, reinterpret_cast<int8_t*>(to));
    StoreIntegers(DataType::kInt8, Rounding::kNearest, x, to, 0, n);
    return 0;
  }

  // Dynamic smoothing has a row for each expert, the shared ones first where they have rows.
  void ApplyScales(const KernelArgs& args, const Route& route, float* x) const {
    const int64_t n = plan_.width;
    if (plan_.scales.count() == 1) {
      const float scale = plan_.scales.At(args, 0);
      for (int64_t i = 0; i < n; ++i) x[i] *= scale;
      return;
    }
    const Placement& at = plan_.placement;
    const bool with_shared = plan_.scales.count() > n * at.experts;
    const bool shared = route.choice >= plan_.k;
    if (plan_.quant == 2 && shared && !with_shared) return;
    const int64_t expert = (route.rank - at.shared_ranks) * at.experts_of_rank() + route.expert;
    int64_t set = shared ? route.choice - plan_.k : expert + (with_shared ? at.shared_experts : 0);
    if (plan_.quant == 1) set = 0;
    float* factors = x + n;
    plan_.scales.Load(args, set * n, n, factors);
    for (int64_t i = 0; i < n; ++i) x[i] *= factors[i];
  }

  // From (rank, expert, token) to (expert, rank, token).
  Status Unpack(const KernelArgs& args, int64_t chunk) {
    const std::byte* from = At(args, recv_at_) + travel_.recv_at(chunk, 0);
    rows_.EachSegment(chunk, [&](const Segment& segment) {
      for (int64_t i = 0; i < segment.count; ++i, from += record_) {
        UnpackRow(args, from, segment.rank, segment.first + i);
      }
    });
    return Status();
  }

  void UnpackRow(const KernelArgs& args, const std::byte* record, int64_t from, int64_t row) const {
    std::memcpy(static_cast<std::byte*>(args.out[0]) + row * plan_.row_bytes(), record,
                static_cast<size_t>(plan_.row_bytes()));
    Tail tail;
    std::memcpy(&tail, record + plan_.row_bytes(), sizeof(tail));
    static_cast<float*>(args.out[1])[row] = tail.scale;
    static_cast<float*>(args.out[6])[row] = tail.expert_scale;
    if (!plan_.assist) return;
    int32_t* assist = static_cast<int32_t*>(args.out[2]) + row * kAssist;
    std::fill_n(assist, kAssist, 0);
    assist[0] = static_cast<int32_t>(from);
    assist[1] = tail.token;
    assist[2] = tail.choice;
  }

  void StoreCounts(const KernelArgs& args) const {
    auto* counts = static_cast<int64_t*>(args.out[3]);
    auto* ends = static_cast<int32_t*>(args.out[4]);
    for (int64_t e = 0; e < plan_.placement.local_experts(); ++e) {
      for (int64_t r = 0; r < plan_.placement.ranks; ++r) {
        *ends++ = static_cast<int32_t>(rows_.First(e, r + 1));
      }
      counts[e] = rows_.First(e + 1, 0) - (plan_.sums ? 0 : rows_.First(e, 0));
    }
    *static_cast<int32_t*>(args.out[5]) = static_cast<int32_t>(rows_.total());
  }

  // V1: the place of each choice among those of this rank for the same expert.
  void StoreIndices(const KernelArgs& args) {
    const auto* ids = static_cast<const int32_t*>(args.in[ids_]);
    auto* to = static_cast<int32_t*>(args.out[2]);
    std::fill(seen_.begin(), seen_.end(), 0);
    for (int64_t i = 0; i < plan_.tokens * plan_.k; ++i) {
      const bool idle =
          plan_.active >= 0 && static_cast<const uint8_t*>(args.in[plan_.active])[i / plan_.k] == 0;
      to[i] = idle ? 0 : seen_[static_cast<size_t>(ids[i])]++;
    }
  }

  // Rows behind the last one are unspecified; they are zero here.
  void ClearBehind(const KernelArgs& args) const {
    const auto clear = [&](int port, int64_t bytes) {
      auto* first = static_cast<std::byte*>(args.out[port]) + rows_.total() * bytes;
      std::fill_n(first, (plan_.rows - rows_.total()) * bytes, std::byte{0});
    };
    clear(0, plan_.row_bytes());
    clear(1, sizeof(float));
    if (plan_.assist) clear(2, kAssist * int64_t{sizeof(int32_t)});
    clear(6, sizeof(float));
  }

  std::string node_;
  Dispatch plan_;
  Communicator* group_;
  int x_;
  int ids_;
  int64_t record_;  // bytes of a token on its way
  Routes routes_;
  ExpandedRows rows_;
  fused::RowTravel travel_;
  std::vector<int32_t> seen_;  // choices of each expert so far
  uint64_t scratch_bytes_ = 0;
  uint64_t counts_at_ = 0;
  uint64_t send_at_ = 0;
  uint64_t recv_at_ = 0;
  uint64_t row_at_ = 0;
};

Result<std::unique_ptr<Kernel>> MakeDispatch(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Dispatch plan, PlanDispatch(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op, "group_ep"));
  return std::unique_ptr<Kernel>(std::make_unique<DispatchKernel>(op, plan, group));
}

}  // namespace

void RegisterMoeDispatchOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  const auto integer = [](std::string_view name, int64_t value) {
    return AttrSpec{name, AttrValue::Int(value)};
  };
  Operator op = {.schema = {"MoeDistributeDispatch",
                            {{"x"},
                             {"expert_ids"},
                             optional("scales"),
                             optional("x_active_mask"),
                             optional("expert_scales")},
                            {{"expand_x"},
                             {"dynamic_scales"},
                             {"expand_idx"},
                             {"expert_token_nums"},
                             {"ep_recv_count"},
                             {"tp_recv_count"},
                             {"expand_scales"}},
                            {{"group_ep", Required::kString},
                             {"ep_world_size", Required::kInt},
                             {"ep_rank_id", Required::kInt},
                             {"moe_expert_num", Required::kInt},
                             {"group_tp", AttrValue::String("")},
                             integer("tp_world_size", 0),
                             integer("tp_rank_id", 0),
                             integer("expert_shard_type", 0),
                             integer("shared_expert_num", 1),
                             integer("shared_expert_rank_num", 0),
                             integer("quant_mode", 0),
                             integer("global_bs", 0),
                             integer("expert_token_nums_type", 1)}},
                 .infer = InferDispatch,
                 .make_kernel = MakeDispatch,
                 .collective = CollectiveTrait{.group = "group_ep"}};
  registry.Add(op);
  op.schema.type = "MoeDistributeDispatchV2";
  op.schema.inputs.push_back(optional("elastic_info"));
  op.schema.inputs.push_back(optional("performance_info"));
  op.schema.attrs.push_back({"comm_alg", AttrValue::String("")});
  for (const std::string_view name :
       {"zero_expert_num", "copy_expert_num", "const_expert_num", "y_dtype"}) {
    op.schema.attrs.push_back(integer(name, 0));
  }
  registry.Add(std::move(op));
}

}  // namespace npumesh
