// MoeDistributeDispatchV2: every token travels to the ranks of its experts. Ops reference 5.12.
//
// Two exchanges: how many tokens each rank has for each expert, then the tokens, each with its
// scales and where it came from in a record of fixed size. The counts also carry bad news: a rank
// whose expert_ids are wrong says so there, and all ranks leave together.
#include <algorithm>
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

using moe::Placement;
using moe::Route;
using moe::Routes;

constexpr int64_t kAssist = 128;  // int32 of hand-over data for each row; the first 3 are used
constexpr int64_t kRefused = -1;

struct Dispatch {
  Placement placement;
  int64_t tokens = 0;
  int64_t k = 0;
  int64_t width = 0;
  int64_t group_tokens = 0;  // of all ranks together, at most
  int64_t rows = 0;          // of expand_x
  int64_t quant = 0;         // 0 none, 1 static, 2 dynamic
  bool sums = false;         // expert_token_nums are prefix sums
  DataType x_dtype = DataType::kUndefined;
  DataType y_dtype = DataType::kUndefined;
  Factors scales;  // static: 1 or [width]; dynamic: [experts or all, width]
  int active = -1;
  int expert_scales = -1;

  int64_t row_bytes() const { return width * BitsOf(y_dtype) / 8; }
};

// What stands behind the elements of a token in its record.
struct Tail {
  float scale;
  float expert_scale;
  int32_t token;
  int32_t choice;
};

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
  plan.rows = plan.group_tokens * std::min(plan.placement.local_experts(), plan.k);
  plan.sums = op.attr_int("expert_token_nums_type") == 0;
  return plan;
}

Status InferDispatch(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Dispatch plan, PlanDispatch(op));
  const int64_t local = plan.placement.local_experts();
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.y_dtype, {plan.rows, plan.width}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, {plan.rows}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, DataType::kInt32, {plan.rows * kAssist}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 3, DataType::kInt64, {local}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 4, DataType::kInt32, {local * plan.placement.ranks}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 5, DataType::kInt32, {1}));
  return SetOutput(op, 6, DataType::kFloat, {plan.rows});
}

class DispatchKernel final : public Kernel {
 public:
  DispatchKernel(const OpContext& op, const Dispatch& plan, Communicator* group)
      : who_(op.Who()),
        node_(op.node().name),
        plan_(plan),
        group_(group),
        x_(op.slot("x")),
        ids_(op.slot("expert_ids")),
        routes_(op.Who(), plan.placement, plan.tokens, plan.k),
        entry_(1 + plan.placement.experts_of_rank()),
        record_((plan.row_bytes() + int64_t{sizeof(Tail)} + 15) / 16 * 16),
        outputs_(7) {
    for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = op.out(static_cast<int>(i)).bytes();
    const auto ranks = static_cast<size_t>(plan.placement.ranks);
    for (auto* list : {&send_counts_, &send_at_, &recv_counts_, &recv_at_}) list->resize(ranks);
    counts_at_ = Reserve(plan.placement.ranks * entry_ * 8);
    incoming_at_ = Reserve(plan.placement.ranks * entry_ * 8);
    send_at_bytes_ = Reserve(routes_.most() * record_);
    recv_at_bytes_ = Reserve(plan.rows * record_);
    row_at_ = Reserve(2 * plan.width * 4);
  }

  uint64_t scratch_bytes() const override { return scratch_bytes_; }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    const auto* active =
        plan_.active < 0 ? nullptr : static_cast<const uint8_t*>(args.in[plan_.active]);
    const Status mine = routes_.Find(static_cast<const int32_t*>(args.in[ids_]), active);
    NPUMESH_RETURN_IF_ERROR(ExchangeCounts(args, mine));
    Pack(args);
    NPUMESH_RETURN_IF_ERROR(ExchangeTokens(args));
    Unpack(args);
    return Status();
  }

 private:
  uint64_t Reserve(int64_t bytes) {
    const uint64_t at = scratch_bytes_;
    scratch_bytes_ += (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
    return at;
  }
  std::byte* At(const KernelArgs& args, uint64_t offset) const {
    return static_cast<std::byte*>(args.scratch) + offset;
  }
  // What rank `from` has for this one: its tokens, then the routes to each expert here.
  const int64_t* Incoming(const KernelArgs& args, int64_t from) const {
    return reinterpret_cast<const int64_t*>(At(args, incoming_at_)) + from * entry_;
  }

  // Collective over the group: all ranks learn whether one of them cannot go on.
  Status ExchangeCounts(const KernelArgs& args, const Status& mine) {
    auto* counts = reinterpret_cast<int64_t*>(At(args, counts_at_));
    const int64_t ranks = plan_.placement.ranks;
    std::fill_n(counts, ranks * entry_, 0);
    for (int64_t r = 0; r < ranks; ++r) {
      counts[r * entry_] = mine.ok() ? plan_.tokens : kRefused;
    }
    if (mine.ok()) {
      for (const Route& route : routes_.all()) ++counts[route.rank * entry_ + 1 + route.expert];
    }
    NPUMESH_RETURN_IF_ERROR(group_->AllToAll(
        counts, At(args, incoming_at_), static_cast<uint64_t>(entry_), DataType::kInt64, node_));
    NPUMESH_RETURN_IF_ERROR(mine);
    int64_t tokens = 0;
    for (int64_t r = 0; r < ranks; ++r) {
      const int64_t theirs = *Incoming(args, r);
      if (theirs == kRefused) {
        return Error(Code::kPeerLost,
                     "{}: rank {} of the group refuses its expert_ids; see its "
                     "message",
                     who_, r);
      }
      tokens += theirs;
    }
    if (tokens <= plan_.group_tokens) return Status();
    return Error(Code::kInvalidArgument,
                 "{}: the ranks have {} tokens together, but global_bs leaves room for {}", who_,
                 tokens, plan_.group_tokens);
  }

  void Pack(const KernelArgs& args) {
    std::byte* to = At(args, send_at_bytes_);
    for (const Route& route : routes_.all()) {
      Tail tail{0, 0, route.token, route.choice};
      if (plan_.expert_scales >= 0 && route.choice < plan_.k) {
        tail.expert_scale = static_cast<const float*>(
            args.in[plan_.expert_scales])[route.token * plan_.k + route.choice];
      }
      tail.scale = PackRow(args, route, to);
      std::memcpy(to + plan_.row_bytes(), &tail, sizeof(tail));
      to += record_;
    }
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

  Status ExchangeTokens(const KernelArgs& args) {
    uint64_t sent = 0;
    uint64_t received = 0;
    for (size_t r = 0; r < send_counts_.size(); ++r) {
      const int64_t* counts = Incoming(args, static_cast<int64_t>(r));
      uint64_t rows = 0;
      for (int64_t e = 0; e < plan_.placement.local_experts(); ++e) {
        rows += static_cast<uint64_t>(counts[1 + e]);
      }
      send_counts_[r] = routes_.count(static_cast<int64_t>(r)) * static_cast<uint64_t>(record_);
      recv_counts_[r] = rows * static_cast<uint64_t>(record_);
      send_at_[r] = sent;
      recv_at_[r] = received;
      sent += send_counts_[r];
      received += recv_counts_[r];
    }
    return group_->AllToAllV(At(args, send_at_bytes_), send_counts_, send_at_,
                             At(args, recv_at_bytes_), recv_counts_, recv_at_, DataType::kInt8,
                             node_);
  }

  // From (rank, expert, token) to (expert, rank, token).
  void Unpack(const KernelArgs& args) {
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (outputs_[i] > 0) std::memset(args.out[i], 0, outputs_[i]);
    }
    auto* counts = static_cast<int64_t*>(args.out[3]);
    auto* ends = static_cast<int32_t*>(args.out[4]);
    int64_t row = 0;
    for (int64_t e = 0; e < plan_.placement.local_experts(); ++e) {
      const int64_t before = row;
      for (int64_t r = 0; r < plan_.placement.ranks; ++r) {
        const int64_t* incoming = Incoming(args, r);
        const std::byte* from = At(args, recv_at_bytes_) + recv_at_[static_cast<size_t>(r)];
        for (int64_t other = 0; other < e; ++other) from += incoming[1 + other] * record_;
        for (int64_t i = 0; i < incoming[1 + e]; ++i, from += record_) {
          UnpackRow(args, from, r, row++);
        }
        *ends++ = static_cast<int32_t>(row);
      }
      counts[e] = plan_.sums ? row : row - before;
    }
    *static_cast<int32_t*>(args.out[5]) = static_cast<int32_t>(row);
  }

  void UnpackRow(const KernelArgs& args, const std::byte* record, int64_t from, int64_t row) const {
    std::memcpy(static_cast<std::byte*>(args.out[0]) + row * plan_.row_bytes(), record,
                static_cast<size_t>(plan_.row_bytes()));
    Tail tail;
    std::memcpy(&tail, record + plan_.row_bytes(), sizeof(tail));
    static_cast<float*>(args.out[1])[row] = tail.scale;
    static_cast<float*>(args.out[6])[row] = tail.expert_scale;
    int32_t* assist = static_cast<int32_t*>(args.out[2]) + row * kAssist;
    assist[0] = static_cast<int32_t>(from);
    assist[1] = tail.token;
    assist[2] = tail.choice;
  }

  std::string who_;
  std::string node_;
  Dispatch plan_;
  Communicator* group_;
  int x_;
  int ids_;
  Routes routes_;
  int64_t entry_;   // int64 that one rank tells another: its tokens, then counts by expert
  int64_t record_;  // bytes of a token on its way
  std::vector<uint64_t> outputs_;
  std::vector<uint64_t> send_counts_;
  std::vector<uint64_t> send_at_;
  std::vector<uint64_t> recv_counts_;
  std::vector<uint64_t> recv_at_;
  uint64_t scratch_bytes_ = 0;
  uint64_t counts_at_ = 0;
  uint64_t incoming_at_ = 0;
  uint64_t send_at_bytes_ = 0;
  uint64_t recv_at_bytes_ = 0;
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
  registry.Add({.schema = {"MoeDistributeDispatchV2",
                           {{"x"},
                            {"expert_ids"},
                            optional("scales"),
                            optional("x_active_mask"),
                            optional("expert_scales"),
                            optional("elastic_info"),
                            optional("performance_info")},
                           {{"expand_x"},
                            {"dynamic_scales"},
                            {"expand_idx"},
                            {"expert_token_nums"},
                            {"ep_recv_count"},
                            {"tp_recv_count"},
                            {"expand_scales"}},
                           {{"group_ep", std::nullopt},
                            {"ep_world_size", std::nullopt},
                            {"ep_rank_id", std::nullopt},
                            {"moe_expert_num", std::nullopt},
                            {"group_tp", AttrValue::String("")},
                            integer("tp_world_size", 0),
                            integer("tp_rank_id", 0),
                            integer("expert_shard_type", 0),
                            integer("shared_expert_num", 1),
                            integer("shared_expert_rank_num", 0),
                            integer("quant_mode", 0),
                            integer("global_bs", 0),
                            integer("expert_token_nums_type", 1),
                            {"comm_alg", AttrValue::String("")},
                            integer("zero_expert_num", 0),
                            integer("copy_expert_num", 0),
                            integer("const_expert_num", 0),
                            integer("y_dtype", 0)}},
                .infer = InferDispatch,
                .make_kernel = MakeDispatch,
                .collective = true});
}

}  // namespace npumesh
