// AlltoAllvGroupedMatMul and GroupedMatMulAlltoAllv, and both with 8-bit operands: rows travel to
// the experts of other ranks and are multiplied there, or are multiplied and travel back.
//
// Counts are by rank, then by its experts; so are the rows a rank sends to experts or gets back
// from them. The rows of this rank's experts lie by expert, then by rank. Some experts are a chunk,
// which travels while others are multiplied, at most eight of them; what they are is all that the
// ranks know of each other.
#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "graph/ops/collective/chunked_exchange.h"
#include "graph/ops/collective/local_product.h"
#include "graph/ops/toolbox/product/scaled_matmul.h"

namespace npumesh::fused {
namespace {

struct ExpertsPlan : hcom::Meeting {
  Ring ring;
  bool exchange_first = true;
  bool gives = false;           // rows by expert are output 2
  int64_t experts = 0;          // of this rank
  Local routed;                 // the product of one expert
  std::optional<Local> shared;  // that of the shared expert
  DataType y_dtype = DataType::kUndefined, shared_dtype = DataType::kUndefined;
  std::vector<int64_t> sent;      // by rank and expert
  std::vector<int64_t> received;  // by rank and expert
  // From Prepare.
  std::vector<int64_t> here;  // first row of each expert and rank, and the end
  std::vector<int64_t> away;  // first row of each rank and its expert, and the end
  Products products;          // by expert, then the shared one
  std::unique_ptr<RowTravel> travel;
  Workspace<std::byte> travelling, sorted;

  // First of the rows that belong to `rank` at this rank's expert, and how many they are.
  int64_t Here(int64_t expert, int64_t rank) const {
    return here[static_cast<size_t>(expert * ring.ranks + rank)];
  }
  int64_t Count(int64_t expert, int64_t rank) const {
    return Here(expert, rank + 1) - Here(expert, rank);
  }
  // First of the rows that come from an expert of `rank`, or go there.
  int64_t Away(int64_t rank, int64_t expert) const {
    return away[static_cast<size_t>(rank * experts + expert)];
  }
  int64_t chunks() const { return std::min<int64_t>(experts, 8); }
  int64_t FirstExpert(int64_t chunk) const { return chunk * experts / chunks(); }
  int64_t y_row_bytes() const { return routed.n * BitsOf(y_dtype) / 8; }
  // Bytes of a row that travels.
  int64_t row_bytes() const { return exchange_first ? routed.x_row_bytes() : y_row_bytes(); }
};

// How the operators tell the product of the routed experts, and that of the shared one. Scales of
// 8-bit operands have the name of the operand with "_scale", their modes with "_quant_mode".
constexpr LocalForm FormOf(std::string_view x, std::string_view w, std::string_view transposed,
                           int experts) {
  LocalForm form{.x = x, .w = w, .bias = "", .transposed_x = "", .transposed_w = transposed};
  form.most_rank = 2;
  form.experts = experts;
  form.packs = false;
  return form;
}
constexpr LocalForm kRouted = FormOf("gmm_x", "gmm_weight", "trans_gmm_weight", 1);
constexpr LocalForm kShared = FormOf("mm_x", "mm_weight", "trans_mm_weight", 0);

// Wraps around: messages also print what is refused.
int64_t Sum(const std::vector<int64_t>& counts) {
  return static_cast<int64_t>(std::accumulate(
      counts.begin(), counts.end(), uint64_t{0},
      [](uint64_t sum, int64_t count) { return sum + static_cast<uint64_t>(count); }));
}

void ReadCounts(const OpContext& op, Check& check, ExpertsPlan& plan) {
  check.NotFed({"send_counts_tensor", "recv_counts_tensor"});
  plan.sent = op.attr_ints("send_counts");
  plan.received = op.attr_ints("recv_counts");
  const auto expected = static_cast<size_t>(plan.ring.ranks * plan.experts);
  const auto fit = [&](const std::vector<int64_t>& counts) {
    return counts.size() == expected && std::ranges::all_of(counts, [](int64_t count) {
             return count >= 0 && count <= INT32_MAX;
           });
  };
  const TensorType& x = op.in("gmm_x");
  check.That(
      plan.experts > 0 && fit(plan.sent) && fit(plan.received) && Sum(plan.sent) == x.shape[0],
      "{} send_counts of together {} rows and {} recv_counts for gmm_x {}, {} ranks and {} "
      "experts of each; expected {} of each, none below 0, and the rows of gmm_x",
      plan.sent.size(), Sum(plan.sent), plan.received.size(), x, plan.ring.ranks, plan.experts,
      expected);
}

// Scales of 8-bit operands. One for each tensor, mode 1, is what is supported.
void ReadScales(const OpContext& op, const LocalForm& form, Check& check, Local& local) {
  for (const std::string_view operand : {form.x, form.w}) {
    const std::string attribute = fmt::format("{}_quant_mode", operand);
    const int64_t mode = op.attr_int(attribute);
    check.Supported(mode == 1, "{} {} is not supported, expected 1, one scale for the tensor",
                    attribute, mode);
  }
  check.Keep(ExpectEightBits(op, form.x, form.w));
  const std::string x_scale = fmt::format("{}_scale", form.x);
  const std::string w_scale = fmt::format("{}_scale", form.w);
  for (const std::string_view port : {x_scale, w_scale}) {
    const int slot = SlotIfFed(op, port);
    const bool fits =
        slot >= 0 && op.in(slot).dtype == DataType::kFloat && op.in(slot).shape.elements() == 1;
    check.Supported(fits, "{} is {}, expected one float32 for the tensor", port,
                    slot < 0 ? std::string("not fed") : op.in(slot).ToString());
  }
  local.row_scale_slot = op.slot(x_scale);
  local.column_scale = check.Take(Factors::Of(op, w_scale));
}

void ReadFloats(Check& check, ExpertsPlan& plan) {
  plan.y_dtype = plan.shared_dtype = plan.routed.x_dtype;
  const auto typed = [&](const Local& local) {
    return local.x_dtype == plan.y_dtype && local.w_dtype == plan.y_dtype;
  };
  check.Supported(
      kFloats.Contains(plan.y_dtype) && typed(plan.routed) && (!plan.shared || typed(*plan.shared)),
      "gmm_x is {} and gmm_weight {}; expected float16 or bfloat16, the same for all "
      "inputs",
      Name(plan.y_dtype), Name(plan.routed.w_dtype));
}

void ReadEightBits(const OpContext& op, Check& check, ExpertsPlan& plan) {
  if (!plan.exchange_first) {
    check.NotFed({"comm_quant_scale"});
    check.OnlyZero({"comm_quant_mode"});
  }
  check.OnlyZero({"group_size"});
  ReadScales(op, kRouted, check, plan.routed);
  if (plan.shared) ReadScales(op, kShared, check, *plan.shared);
  plan.y_dtype = FloatTypeOf(op, "y_dtype", DataType::kUndefined, check);
  plan.shared_dtype = FloatTypeOf(op, "mm_dtype", plan.y_dtype, check);
}

// `kFirst`: the exchange comes first; `kScaled`: the operands have 8 bits.
template <bool kFirst, bool kScaled>
ExpertsPlan PlanExperts(const OpContext& op, Check& check) {
  ExpertsPlan plan;
  plan.exchange_first = kFirst;
  plan.ring = RingOf(op, "ep_world_size", check);
  plan.routed = PlanLocal(op, check, kRouted);
  if (!check.ok()) return plan;
  plan.experts = op.in("gmm_weight").shape[0];
  ReadCounts(op, check, plan);
  const bool shared = SlotIfFed(op, "mm_x") >= 0;
  check.That(shared == (SlotIfFed(op, "mm_weight") >= 0), "of mm_x and mm_weight only one is fed");
  if (!check.ok()) return plan;
  if (shared) plan.shared = PlanLocal(op, check, kShared);
  if (kScaled) ReadEightBits(op, check, plan);
  if (!kScaled) ReadFloats(check, plan);
  plan.gives = kFirst && op.attr_bool("permute_out_flag");
  const int64_t rows = Sum(plan.received);
  plan.outputs = {
      {plan.y_dtype, {rows, plan.routed.n}},
      {plan.shared_dtype, plan.shared ? Shape{plan.shared->m, plan.shared->n} : Shape{0}}};
  if (kFirst) {
    const Shape sorted = plan.gives ? Shape{rows, plan.routed.k} : Shape{0};
    plan.outputs.push_back({plan.routed.x_dtype, sorted});
  }
  return plan;
}

// Fills here and away.
void FindRows(ExpertsPlan* plan) {
  const bool sends = plan->exchange_first;
  const std::vector<int64_t>& counts = sends ? plan->received : plan->sent;  // at this rank
  plan->here = plan->away = {0};
  for (int64_t expert = 0; expert < plan->experts; ++expert) {
    for (int64_t rank = 0; rank < plan->ring.ranks; ++rank) {
      const int64_t count = counts[static_cast<size_t>(rank * plan->experts + expert)];
      plan->here.push_back(plan->here.back() + count);
    }
  }
  for (const int64_t count : sends ? plan->sent : plan->received) {
    plan->away.push_back(plan->away.back() + count);
  }
}

void LayOut(ExpertsPlan* plan) {
  RowTravel& travel = *plan->travel;
  const bool sends = plan->exchange_first;  // rows to other ranks' experts
  int64_t row = 0;
  for (int64_t chunk = 0; chunk < travel.chunks(); ++chunk) {
    const int64_t first = plan->FirstExpert(chunk), end = plan->FirstExpert(chunk + 1);
    for (int64_t rank = 0; rank < plan->ring.ranks; ++rank) {
      int64_t here = 0;
      for (int64_t expert = first; expert < end; ++expert) here += plan->Count(expert, rank);
      const int64_t there = plan->Away(rank, first);
      const int64_t away = plan->Away(rank, end) - there;
      travel.SetRows(chunk, rank, sends ? away : here, sends ? here : away);
      travel.SetPlace(chunk, rank, sends ? there : row, sends ? row : there);
      row += here;
    }
  }
}

Status PrepareExperts(const OpContext& op, ExpertsPlan* plan) {
  NPUMESH_RETURN_IF_ERROR(hcom::Meet(op, plan));
  FindRows(plan);
  plan->travel = std::make_unique<RowTravel>(plan->ring.ranks, plan->chunks(), plan->row_bytes());
  LayOut(plan);
  const int64_t bytes = plan->here.back() * plan->row_bytes();
  plan->travelling = plan->scratch.Take<std::byte>(bytes);
  if (!plan->gives) plan->sorted = plan->scratch.Take<std::byte>(bytes);
  for (int64_t e = 0; e < plan->experts; ++e) {
    const int64_t m = plan->Here(e + 1, 0) - plan->Here(e, 0);
    NPUMESH_RETURN_IF_ERROR(plan->products.Add(op, plan->routed, m, plan->y_dtype));
  }
  if (plan->shared) {
    const Local& shared = *plan->shared;
    NPUMESH_RETURN_IF_ERROR(plan->products.Add(op, shared, shared.m, plan->shared_dtype));
  }
  plan->products.Reserve(op, plan);
  return Status();
}

// Copies the rows of a chunk between where they travel and where they lie by expert.
void Sort(const ExpertsPlan& plan, int64_t chunk, std::byte* travelling, std::byte* sorted) {
  const RowTravel& travel = *plan.travel;
  for (int64_t rank = 0; rank < plan.ring.ranks; ++rank) {
    std::byte* there = travelling + (plan.exchange_first ? travel.recv_at(chunk, rank)
                                                         : travel.send_at(chunk, rank));
    for (int64_t e = plan.FirstExpert(chunk); e < plan.FirstExpert(chunk + 1); ++e) {
      const int64_t bytes = plan.Count(e, rank) * plan.row_bytes();
      std::byte* const here = sorted + plan.Here(e, rank) * plan.row_bytes();
      std::copy_n(plan.exchange_first ? there : here, bytes, plan.exchange_first ? here : there);
      there += bytes;
    }
  }
}

// The experts of a chunk on their rows of `x`.
Status Multiply(const ExpertsPlan& plan, const KernelArgs& args, int64_t chunk, const std::byte* x,
                std::byte* y) {
  const Local& routed = plan.routed;
  const auto* weights = static_cast<const std::byte*>(args.in[routed.w_slot]);
  const int64_t weight_bytes = routed.k * routed.n * BitsOf(routed.w_dtype) / 8;
  for (int64_t e = plan.FirstExpert(chunk); e < plan.FirstExpert(chunk + 1); ++e) {
    const int64_t row = plan.Here(e, 0);
    NPUMESH_RETURN_IF_ERROR(plan.products.Run(args,
                                              {{routed.x_slot, x + row * routed.x_row_bytes()},
                                               {routed.w_slot, weights + e * weight_bytes}},
                                              y + row * plan.y_row_bytes(),
                                              static_cast<size_t>(e)));
  }
  return Status();
}

// Collective over the group.
Status RunExperts(const ExpertsPlan& plan, const KernelArgs& args) {
  std::byte* const travelling = plan.travelling(args);
  std::byte* const sorted = plan.gives ? static_cast<std::byte*>(args.out[2]) : plan.sorted(args);
  const std::byte* const x = plan.routed.RowsOfX(args);
  auto* const y = static_cast<std::byte*>(args.out[0]);
  const auto shared = [&] {
    if (!plan.shared) return Status();
    return plan.products.Run(args, {}, args.out[1], static_cast<size_t>(plan.experts));
  };
  if (plan.exchange_first) {
    const auto use = [&](int64_t chunk) {
      Sort(plan, chunk, travelling, sorted);
      return Multiply(plan, args, chunk, sorted, y);
    };
    return plan.travel->Run(*plan.group, plan.node, x, travelling, Nothing(), use, shared);
  }
  const auto prepare = [&](int64_t chunk) -> Status {
    NPUMESH_RETURN_IF_ERROR(Multiply(plan, args, chunk, x, sorted));
    Sort(plan, chunk, travelling, sorted);
    return Status();
  };
  return plan.travel->Run(*plan.group, plan.node, travelling, y, prepare, Nothing(), shared);
}

}  // namespace

}  // namespace npumesh::fused

namespace npumesh {

void RegisterExpertMatmulOps(OpRegistry& registry) {
  using namespace fused;
  registry.Add(hcom::Collective<PlanExperts<true, false>, RunExperts, PrepareExperts>(
      "AlltoAllvGroupedMatMul(gmm_x, gmm_weight, send_counts_tensor?, recv_counts_tensor?, mm_x?, "
      "mm_weight?; group:string, ep_world_size:int, send_counts:ints, recv_counts:ints, "
      "trans_gmm_weight=false, trans_mm_weight=false, comm_mode=\"\", permute_out_flag=false) -> "
      "gmm_y, mm_y, permute_out"));
  registry.Add(hcom::Collective<PlanExperts<false, false>, RunExperts, PrepareExperts>(
      "GroupedMatMulAlltoAllv(gmm_x, gmm_weight, send_counts_tensor?, recv_counts_tensor?, mm_x?, "
      "mm_weight?; group:string, ep_world_size:int, send_counts:ints, recv_counts:ints, "
      "trans_gmm_weight=false, trans_mm_weight=false, comm_mode=\"\") -> y, mm_y"));
  registry.Add(hcom::Collective<PlanExperts<true, true>, RunExperts, PrepareExperts>(
      "AlltoAllvQuantGroupedMatMul(gmm_x, gmm_weight, gmm_x_scale, gmm_weight_scale, "
      "send_counts_tensor?, recv_counts_tensor?, mm_x?, mm_weight?, mm_x_scale?, mm_weight_scale?; "
      "group:string, ep_world_size:int, send_counts:ints, recv_counts:ints, "
      "trans_gmm_weight=false, trans_mm_weight=false, comm_mode=\"\", gmm_x_quant_mode:int, "
      "gmm_weight_quant_mode:int, mm_x_quant_mode=0, mm_weight_quant_mode=0, group_size=0, "
      "y_dtype=28, mm_dtype=28, permute_out_flag=false) -> gmm_y, mm_y, permute_out"));
  registry.Add(hcom::Collective<PlanExperts<false, true>, RunExperts, PrepareExperts>(
      "QuantGroupedMatMulAlltoAllv(gmm_x, gmm_weight, gmm_x_scale, gmm_weight_scale, "
      "send_counts_tensor?, recv_counts_tensor?, mm_x?, mm_weight?, mm_x_scale?, mm_weight_scale?, "
      "comm_quant_scale?; group:string, ep_world_size:int, send_counts:ints, recv_counts:ints, "
      "trans_gmm_weight=false, trans_mm_weight=false, comm_mode=\"\", gmm_x_quant_mode:int, "
      "gmm_weight_quant_mode:int, mm_x_quant_mode=0, mm_weight_quant_mode=0, group_size=0, "
      "y_dtype=28, mm_dtype=28, comm_quant_mode=0, comm_quant_dtype=0) -> y, mm_y"));
}

}  // namespace npumesh
