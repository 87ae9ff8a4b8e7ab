// MoeDistributeCombine, MoeDistributeCombineV2 and MoeDistributeCombineAddRmsNorm: the results of
// the experts travel back to the ranks of their tokens and are summed there. Ops reference 5.12.
//
// The rank of a token knows from its own expert_ids which rows come back and in which order, and
// tells the ranks of the experts, which compare that with what they have. Large tensors go in
// chunks of tokens: one is packed, or weighted and summed, while others are on their way.
#include <cstring>

#include "graph/ops/collective.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/moe_combine.h"
#include "graph/ops/norm.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

using moe::Combine;
using moe::ExpandedRows;
using moe::kAssist;
using moe::PlanCombine;
using moe::Route;
using moe::Routes;
using moe::Segment;

Status InferCombine(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Combine plan, PlanCombine(op));
  if (plan.residual < 0) return SetOutput(op, 0, plan.dtype, {plan.tokens, plan.width});
  const Shape y = op.in(plan.residual).shape;
  Shape rstd = y;
  rstd.mutable_dims().back() = 1;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.dtype, y));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, rstd));
  return SetOutput(op, 2, plan.dtype, y);
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
        ends_(op.slot("ep_send_counts")),
        routes_(op.Who(), plan.placement, plan.chunks(), plan.tokens, plan.k),
        rows_(op.Who(), node_, plan.placement, plan.chunks()),
        travel_(plan.placement.ranks, plan.chunks().count, plan.row_bytes()),
        place_(static_cast<size_t>(routes_.most())) {
    counts_at_ = Reserve(static_cast<int64_t>(rows_.scratch_bytes()));
    verdict_at_ = Reserve(sizeof(int64_t));
    rows_at_ = Reserve(plan.rows * plan.row_bytes());
    back_at_ = Reserve(routes_.most() * plan.row_bytes());
    sum_at_ = Reserve(5 * plan.width * int64_t{sizeof(float)});
  }

  uint64_t scratch_bytes() const override { return scratch_bytes_; }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    const auto* active =
        plan_.active < 0 ? nullptr : static_cast<const uint8_t*>(args.in[plan_.active]);
    const Status mine = routes_.Find(static_cast<const int32_t*>(args.in[ids_]), active);
    NPUMESH_RETURN_IF_ERROR(
        rows_.Hear(*group_, At(args, counts_at_), routes_, mine, plan_.group_tokens));
    NPUMESH_RETURN_IF_ERROR(Agree(args, CheckRows(args)));
    moe::LayOut(routes_, rows_, plan_.placement.ranks, true, travel_);
    FindPlaces();
    const auto pack = [&](int64_t chunk) { return Pack(args, chunk); };
    const auto sum = [&](int64_t chunk) { return Sum(args, chunk); };
    return travel_.Run(*group_, node_, At(args, rows_at_), At(args, back_at_), pack, sum);
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

  // Whether the rows of expand_x are those that the ranks wait for.
  Status CheckRows(const KernelArgs& args) const {
    NPUMESH_RETURN_IF_ERROR(
        moe::CheckEnds(who_, rows_, plan_.placement, static_cast<const int32_t*>(args.in[ends_])));
    if (rows_.total() > plan_.rows) {
      return Error(Code::kInvalidArgument, "{}: ep_send_counts says {} rows, expand_x has {}", who_,
                   rows_.total(), plan_.rows);
    }
    if (plan_.assist < 0) return Status();
    const auto* assist = static_cast<const int32_t*>(args.in[plan_.assist]);
    for (int64_t e = 0; e < plan_.placement.local_experts(); ++e) {
      for (int64_t r = 0; r < plan_.placement.ranks; ++r) {
        for (int64_t row = rows_.First(e, r); row < rows_.First(e, r + 1); ++row) {
          if (assist[row * kAssist] == r) continue;
          return Error(Code::kInvalidArgument,
                       "{}: assist_info_for_combine says that row {} is of rank {}, ep_send_counts "
                       "that it is of rank {}",
                       who_, row, assist[row * kAssist], r);
        }
      }
    }
    return Status();
  }

  // Collective over the group: all leave together when one of them cannot go on.
  Status Agree(const KernelArgs& args, const Status& mine) {
    auto* verdict = reinterpret_cast<int64_t*>(At(args, verdict_at_));
    *verdict = mine.ok() ? 0 : 1;
    NPUMESH_RETURN_IF_ERROR(
        group_->AllReduce(verdict, verdict, 1, DataType::kInt64, ReduceOp::kMax, node_));
    if (!mine.ok() || *verdict == 0) return mine;
    return Error(Code::kPeerLost, "{}: another rank of the group failed; see its message", who_);
  }

  // Rows in the order in which they travel.
  Status Pack(const KernelArgs& args, int64_t chunk) {
    const auto* x = static_cast<const std::byte*>(args.in[x_]);
    std::byte* to = At(args, rows_at_) + travel_.send_at(chunk, 0);
    rows_.EachSegment(chunk, [&](const Segment& segment) {
      const int64_t bytes = segment.count * plan_.row_bytes();
      std::copy_n(x + segment.first * plan_.row_bytes(), bytes, to);
      to += bytes;
    });
    return Status();
  }

  void FindPlaces() {
    std::fill(place_.begin(), place_.end(), -1);
    const std::vector<Route>& routes = routes_.all();
    for (size_t i = 0; i < routes.size(); ++i) {
      const int64_t at = routes[i].token * routes_.choices() + routes[i].choice;
      place_[static_cast<size_t>(at)] = static_cast<int64_t>(i);
    }
  }

  // The choices of a token are added in their order, wherever their experts live.
  Status Sum(const KernelArgs& args, int64_t chunk) {
    const int64_t n = plan_.width;
    const moe::Chunks chunks = plan_.chunks();
    auto* sum = reinterpret_cast<float*>(At(args, sum_at_));
    for (int64_t token = chunks.First(chunk, plan_.tokens);
         token < chunks.First(chunk + 1, plan_.tokens); ++token) {
      std::fill_n(sum, n, 0.0f);
      for (int64_t choice = 0; choice < routes_.choices(); ++choice) {
        AddChoice(args, token, choice, sum);
      }
      if (plan_.shared_x >= 0) Add(args.in[plan_.shared_x], token * n, 1, sum);
      if (plan_.residual >= 0) {
        Normalise(args, token, sum);
      } else {
        StoreRow(plan_.dtype, sum, args.out[0], token * n, n);
      }
    }
    return Status();
  }

  // As AddRmsNorm does: the sum is rounded before it is normalised.
  void Normalise(const KernelArgs& args, int64_t token, float* sum) const {
    const int64_t n = plan_.width;
    float* y = sum + 3 * n;
    Add(args.in[plan_.residual], token * n, 1, sum);
    StoreRow(plan_.dtype, sum, args.out[2], token * n, n);
    const float* x = LoadRow(plan_.dtype, args.out[2], token * n, n, sum);
    const float* gamma = LoadRow(plan_.dtype, args.in[plan_.gamma], 0, n, sum + 4 * n);
    static_cast<float*>(args.out[1])[token] =
        NormaliseRow(plan_.dtype, x, gamma, n, plan_.epsilon, true, y, args.out[0], token * n);
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
  int ends_;
  Routes routes_;
  ExpandedRows rows_;
  fused::RowTravel travel_;
  std::vector<int64_t> place_;  // route of (token, choice); -1: none
  uint64_t scratch_bytes_ = 0;
  uint64_t counts_at_ = 0;
  uint64_t verdict_at_ = 0;
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
  for (OpSchema& schema : moe::CombineSchemas()) {
    registry.Add({.schema = std::move(schema),
                  .infer = InferCombine,
                  .make_kernel = MakeCombine,
                  .collective = CollectiveTrait{.group = "group_ep"}});
  }
}

}  // namespace npumesh
