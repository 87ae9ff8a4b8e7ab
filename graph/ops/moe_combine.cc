// MoeDistributeCombineV2: the results of the experts travel back to the ranks of their tokens and
// are summed there. Ops reference 5.12.
//
// expand_x has a row for each token that the dispatch brought here, and assist_info says where it
// came from. The rank that gets rows back knows from its own expert_ids which they are and in which
// order they come.
#include <algorithm>
#include <cstring>

#include "graph/ops/collective.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/moe_exchange.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

using moe::Placement;
using moe::Route;
using moe::Routes;

constexpr int64_t kAssist = 128;  // int32 of hand-over data for each row, see the dispatch

struct Combine {
  Placement placement;
  int64_t tokens = 0;
  int64_t k = 0;
  int64_t width = 0;
  int64_t rows = 0;       // of expand_x
  int64_t zeros = 0;      // experts behind the last one: that give nothing,
  int64_t copies = 0;     // give the token back,
  int64_t constants = 0;  // or alpha1 * token + alpha2 * v
  DataType dtype = DataType::kUndefined;
  int active = -1;
  int shared_x = -1;
  int original = -1;
  Factors weights;
  Factors alpha1;
  Factors alpha2;
  Factors constant;

  int64_t row_bytes() const { return width * BitsOf(dtype) / 8; }
};

Status ReadSpecial(const OpContext& op, Combine& plan) {
  plan.zeros = op.attr_int("zero_expert_num");
  plan.copies = op.attr_int("copy_expert_num");
  plan.constants = op.attr_int("const_expert_num");
  plan.original = SlotIfFed(op, "ori_x");
  NPUMESH_ASSIGN_OR_RETURN(plan.alpha1, Factors::Of(op, "const_expert_alpha_1"));
  NPUMESH_ASSIGN_OR_RETURN(plan.alpha2, Factors::Of(op, "const_expert_alpha_2"));
  NPUMESH_ASSIGN_OR_RETURN(plan.constant, Factors::Of(op, "const_expert_v"));
  bool fits = plan.copies + plan.constants == 0 ||
              (plan.original >= 0 &&
               op.in(plan.original) == TensorType{plan.dtype, {plan.tokens, plan.width}});
  const int64_t elements = plan.constants * plan.width;
  for (const Factors* alpha : {&plan.alpha1, &plan.alpha2}) {
    fits = fits &&
           (plan.constants == 0 || alpha->count() == plan.constants || alpha->count() == elements);
  }
  if (fits && (plan.constants == 0 || plan.constant.count() == elements)) return Status();
  return Error(Code::kInvalidArgument,
               "{}: {} copy and {} constant experts need ori_x [{},{}] and, for the latter, "
               "alphas and v",
               op.Who(), plan.copies, plan.constants, plan.tokens, plan.width);
}

Result<Combine> PlanCombine(const OpContext& op) {
  Combine plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.placement, moe::PlacementOf(op));
  const TensorType& rows = op.in("expand_x");
  const TensorType& ids = op.in("expert_ids");
  if (!IsRowType(rows.dtype) || rows.shape.rank() != 2 || ids.shape.rank() != 2 ||
      ids.dtype != DataType::kInt32) {
    return Error(Code::kInvalidArgument,
                 "{}: expand_x is {} and expert_ids {}; expected float16 or bfloat16 [A,H] and "
                 "int32[BS,K]",
                 op.Who(), rows.ToString(), ids.ToString());
  }
  if (op.attr_int("comm_quant_mode") != 0) {
    return Error(Code::kUnsupported, "{}: comm_quant_mode {} is not supported, expected 0",
                 op.Who(), op.attr_int("comm_quant_mode"));
  }
  plan.tokens = ids.shape[0];
  plan.k = ids.shape[1];
  plan.rows = rows.shape[0];
  plan.width = rows.shape[1];
  plan.dtype = rows.dtype;
  plan.active = SlotIfFed(op, "x_active_mask");
  plan.shared_x = SlotIfFed(op, "shared_expert_x");
  NPUMESH_ASSIGN_OR_RETURN(plan.weights, Factors::Of(op, "expert_scales"));
  const TensorType& assist = op.in("assist_info_for_combine");
  const TensorType& counts = op.in("ep_send_counts");
  const bool fits =
      assist.dtype == DataType::kInt32 && assist.shape.elements() == plan.rows * kAssist &&
      counts.dtype == DataType::kInt32 &&
      counts.shape.elements() == plan.placement.local_experts() * plan.placement.ranks &&
      (!plan.weights.given() || plan.weights.count() == plan.tokens * plan.k) &&
      (plan.active < 0 || op.in(plan.active) == TensorType{DataType::kBool, {plan.tokens}}) &&
      (plan.shared_x < 0 || (op.in(plan.shared_x).dtype == plan.dtype &&
                             op.in(plan.shared_x).shape.elements() == plan.tokens * plan.width));
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: assist_info_for_combine {}, ep_send_counts {}, {} expert_scales, the mask or "
                 "shared_expert_x do not fit expand_x {} and expert_ids {}",
                 op.Who(), assist.ToString(), counts.ToString(), plan.weights.count(),
                 rows.ToString(), ids.ToString());
  }
  NPUMESH_RETURN_IF_ERROR(ReadSpecial(op, plan));
  return plan;
}

Status InferCombine(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Combine plan, PlanCombine(op));
  return SetOutput(op, 0, plan.dtype, {plan.tokens, plan.width});
}

class CombineKernel final : public Kernel {
 public:
  CombineKernel(const OpContext& op, const Combine& plan, Communicator* group)
      : who_(op.Who()),
        node_(op.node().name),
        plan_(plan),
        group_(group),
        x_(op.slot("expand_x")),
        ids_(op.slot("expert_ids")),
        assist_(op.slot("assist_info_for_combine")),
        ends_(op.slot("ep_send_counts")),
        routes_(op.Who(), plan.placement, plan.tokens, plan.k),
        place_(static_cast<size_t>(routes_.most())) {
    const auto ranks = static_cast<size_t>(plan.placement.ranks);
    for (auto* list : {&send_counts_, &send_at_, &recv_counts_, &recv_at_}) list->resize(ranks);
    counts_at_ = Reserve(2 * plan.placement.ranks * 8 + 8);
    rows_at_ = Reserve(plan.rows * plan.row_bytes());
    back_at_ = Reserve(routes_.most() * plan.row_bytes());
    sum_at_ = Reserve(4 * plan.width * 4);
  }

  uint64_t scratch_bytes() const override { return scratch_bytes_; }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    const auto* active =
        plan_.active < 0 ? nullptr : static_cast<const uint8_t*>(args.in[plan_.active]);
    Status mine = routes_.Find(static_cast<const int32_t*>(args.in[ids_]), active);
    if (mine.ok()) mine = CountRows(args);
    NPUMESH_RETURN_IF_ERROR(Agree(args, mine));
    Pack(args);
    NPUMESH_RETURN_IF_ERROR(group_->AllToAllV(At(args, rows_at_), send_counts_, send_at_,
                                              At(args, back_at_), recv_counts_, recv_at_,
                                              DataType::kInt8, node_));
    Sum(args);
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
  // Rows of expand_x that are of use.
  int64_t Rows(const KernelArgs& args) const {
    const int64_t last = plan_.placement.local_experts() * plan_.placement.ranks - 1;
    return static_cast<const int32_t*>(args.in[ends_])[last];
  }
  int64_t SourceOf(const KernelArgs& args, int64_t row) const {
    return static_cast<const int32_t*>(args.in[assist_])[row * kAssist];
  }

  // Bytes to and from each rank.
  Status CountRows(const KernelArgs& args) {
    const int64_t rows = Rows(args);
    if (rows < 0 || rows > plan_.rows) {
      return Error(Code::kInvalidArgument, "{}: ep_send_counts says {} rows, expand_x has {}", who_,
                   rows, plan_.rows);
    }
    const auto bytes = static_cast<uint64_t>(plan_.row_bytes());
    std::fill(send_counts_.begin(), send_counts_.end(), 0);
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t source = SourceOf(args, row);
      if (source < 0 || source >= plan_.placement.ranks) {
        return Error(Code::kInvalidArgument,
                     "{}: assist_info_for_combine says that row {} is of rank {}", who_, row,
                     source);
      }
      send_counts_[static_cast<size_t>(source)] += bytes;
    }
    uint64_t sent = 0;
    uint64_t received = 0;
    for (size_t r = 0; r < send_counts_.size(); ++r) {
      recv_counts_[r] = routes_.count(static_cast<int64_t>(r)) * bytes;
      send_at_[r] = sent;
      recv_at_[r] = received;
      sent += send_counts_[r];
      received += recv_counts_[r];
    }
    return Status();
  }

  // Collective over the group: each rank hears how much the others will send it, and all leave
  // together when that is not what one of them waits for.
  Status Agree(const KernelArgs& args, const Status& mine) {
    auto* counts = reinterpret_cast<int64_t*>(At(args, counts_at_));
    const auto ranks = static_cast<size_t>(plan_.placement.ranks);
    int64_t* theirs = counts + ranks;
    int64_t* verdict = theirs + ranks;
    for (size_t r = 0; r < ranks; ++r) {
      counts[r] = mine.ok() ? static_cast<int64_t>(send_counts_[r]) : -1;
    }
    NPUMESH_RETURN_IF_ERROR(group_->AllToAll(counts, theirs, 1, DataType::kInt64, node_));
    Status found = mine;
    for (size_t r = 0; r < ranks && found.ok(); ++r) {
      if (theirs[r] == static_cast<int64_t>(recv_counts_[r])) continue;
      found = theirs[r] < 0
                  ? Error(Code::kPeerLost, "{}: rank {} of the group refuses its inputs", who_, r)
                  : Error(Code::kMismatch,
                          "{}: rank {} of the group returns {} bytes of rows, expert_ids ask for "
                          "{}",
                          who_, r, theirs[r], recv_counts_[r]);
    }
    *verdict = found.ok() ? 0 : 1;
    NPUMESH_RETURN_IF_ERROR(
        group_->AllReduce(verdict, verdict, 1, DataType::kInt64, ReduceOp::kMax, node_));
    if (!found.ok() || *verdict == 0) return found;
    return Error(Code::kPeerLost, "{}: another rank of the group failed; see its message", who_);
  }

  // Rows by the rank they go to, in their order.
  void Pack(const KernelArgs& args) {
    const auto bytes = static_cast<size_t>(plan_.row_bytes());
    const auto* from = static_cast<const std::byte*>(args.in[x_]);
    next_ = send_at_;
    for (int64_t row = 0; row < Rows(args); ++row, from += bytes) {
      uint64_t& at = next_[static_cast<size_t>(SourceOf(args, row))];
      std::memcpy(At(args, rows_at_) + at, from, bytes);
      at += bytes;
    }
  }

  // The choices of a token are added in their order, wherever their experts live.
  void Sum(const KernelArgs& args) {
    std::fill(place_.begin(), place_.end(), -1);
    const std::vector<Route>& routes = routes_.all();
    for (size_t i = 0; i < routes.size(); ++i) {
      const int64_t at = routes[i].token * routes_.choices() + routes[i].choice;
      place_[static_cast<size_t>(at)] = static_cast<int64_t>(i);
    }
    const int64_t n = plan_.width;
    auto* sum = reinterpret_cast<float*>(At(args, sum_at_));
    for (int64_t token = 0; token < plan_.tokens; ++token) {
      std::fill_n(sum, n, 0.0f);
      for (int64_t choice = 0; choice < routes_.choices(); ++choice) {
        AddChoice(args, token, choice, sum);
      }
      if (plan_.shared_x >= 0) Add(args.in[plan_.shared_x], token * n, 1, sum);
      StoreRow(plan_.dtype, sum, args.out[0], token * n, n);
    }
  }

  void AddChoice(const KernelArgs& args, int64_t token, int64_t choice, float* sum) const {
    const int64_t route = place_[static_cast<size_t>(token * routes_.choices() + choice)];
    const bool shared = choice >= plan_.k;
    const float weight =
        shared || !plan_.weights.given() ? 1.0f : plan_.weights.At(args, token * plan_.k + choice);
    if (route >= 0) {
      Add(At(args, back_at_), route * plan_.width, weight, sum);
      return;
    }
    const bool idle =
        plan_.active >= 0 && static_cast<const uint8_t*>(args.in[plan_.active])[token] == 0;
    if (shared || idle) return;
    const int64_t id = static_cast<const int32_t*>(args.in[ids_])[token * plan_.k + choice];
    const int64_t special = id - plan_.placement.experts - plan_.zeros;
    if (special < 0) return;
    if (special < plan_.copies) {
      Add(args.in[plan_.original], token * plan_.width, weight, sum);
    } else {
      AddConstant(args, token, special - plan_.copies, weight, sum);
    }
  }

  void Add(const void* rows, int64_t first, float weight, float* sum) const {
    float* row = sum + plan_.width;
    LoadNumbers(plan_.dtype, rows, first, plan_.width, row);
    for (int64_t i = 0; i < plan_.width; ++i) sum[i] += weight * row[i];
  }

  void AddConstant(const KernelArgs& args, int64_t token, int64_t expert, float weight,
                   float* sum) const {
    const int64_t n = plan_.width;
    float* row = sum + n;
    float* constant = row + n;
    LoadNumbers(plan_.dtype, args.in[plan_.original], token * n, n, row);
    plan_.constant.Load(args, expert * n, n, constant);
    const auto alpha = [&](const Factors& factors, int64_t i) {
      return factors.At(args, factors.count() == plan_.constants ? expert : expert * n + i);
    };
    for (int64_t i = 0; i < n; ++i) {
      sum[i] += weight * (alpha(plan_.alpha1, i) * row[i] + alpha(plan_.alpha2, i) * constant[i]);
    }
  }

  std::string who_;
  std::string node_;
  Combine plan_;
  Communicator* group_;
  int x_;
  int ids_;
  int assist_;
  int ends_;
  Routes routes_;
  std::vector<int64_t> place_;  // route of (token, choice); -1: none
  std::vector<uint64_t> send_counts_;
  std::vector<uint64_t> send_at_;
  std::vector<uint64_t> recv_counts_;
  std::vector<uint64_t> recv_at_;
  std::vector<uint64_t> next_;
  uint64_t scratch_bytes_ = 0;
  uint64_t counts_at_ = 0;
  uint64_t rows_at_ = 0;
  uint64_t back_at_ = 0;
  uint64_t sum_at_ = 0;
};

Result<std::unique_ptr<Kernel>> MakeCombine(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Combine plan, PlanCombine(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op, "group_ep"));
  return std::unique_ptr<Kernel>(std::make_unique<CombineKernel>(op, plan, group));
}

}  // namespace

void RegisterMoeCombineOps(OpRegistry& registry) {
  std::vector<PortSpec> inputs = {{"expand_x"},
                                  {"expert_ids"},
                                  {"assist_info_for_combine"},
                                  {"ep_send_counts"},
                                  {"expert_scales"}};
  for (const std::string_view port :
       {"tp_send_counts", "x_active_mask", "activation_scale", "weight_scale", "group_list",
        "expand_scales", "shared_expert_x", "elastic_info", "ori_x", "const_expert_alpha_1",
        "const_expert_alpha_2", "const_expert_v", "performance_info"}) {
    inputs.push_back({port, PortKind::kOptional});
  }
  const auto integer = [](std::string_view name, int64_t value) {
    return AttrSpec{name, AttrValue::Int(value)};
  };
  registry.Add({.schema = {"MoeDistributeCombineV2",
                           std::move(inputs),
                           {{"x"}},
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
                            integer("global_bs", 0),
                            integer("out_dtype", 0),
                            integer("comm_quant_mode", 0),
                            integer("group_list_type", 0),
                            {"comm_alg", AttrValue::String("")},
                            integer("zero_expert_num", 0),
                            integer("copy_expert_num", 0),
                            integer("const_expert_num", 0)}},
                .infer = InferCombine,
                .make_kernel = MakeCombine,
                .collective = true});
}

}  // namespace npumesh
