// MoeInitRouting, MoeInitRoutingV2 and MoeInitRoutingV3: tokens sorted by the experts they go to.
//
// Position p of expert_idx is choice p % K of token p / K. Positions are sorted by expert; those of
// equal experts stay in order. The first version carries a row number with each choice, that of
// MoeGatingTopKSoftmax: choice j of token t is row j * tokens + t. In the third, experts outside of
// active_expert_range are not expanded. Expanded rows that nothing goes to are zero.
#include <algorithm>
#include <type_traits>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/quantised_row.h"

namespace npumesh {
namespace {

// What each version gives of the tokens of an expert.
enum class Counts : uint8_t { kNone, kSums, kCounts, kPairs };

struct Routing : Planned {
  int64_t tokens = 0, k = 0, width = 0;
  int64_t row_bytes = 0;  // of x
  DataType x_dtype = DataType::kUndefined, id_dtype = DataType::kInt32;
  int64_t rows = 0;     // of expanded_x
  int64_t experts = 0;  // 0: any number
  int64_t first = 0;    // active experts [first, last)
  int64_t last = INT64_MAX;
  int64_t capacity = 0;  // rows of each expert; 0: they follow each other
  Counts counts = Counts::kNone;
  Workspace<int32_t> order;      // positions by expert
  Workspace<int64_t> tokens_of;  // of each expert

  int64_t positions() const { return tokens * k; }
  Shape expanded() const {
    return capacity > 0 ? Shape{experts, capacity, width} : Shape{rows, width};
  }
};

// x [tokens, H], expert_idx [tokens, K].
Routing PlanPositions(const OpContext& op, TypeSet ids_types, Check& check) {
  const TensorType &x = op.in("x"), &ids = op.in("expert_idx");
  Routing plan;
  const auto element = static_cast<int64_t>(check.Take(ElementBytes(op, x.dtype)));
  check.That(x.shape.rank() == 2 && ids.shape.rank() == 2 && ids.shape[0] == x.shape[0] &&
                 ids_types.Contains(ids.dtype),
             "x is {} and expert_idx {}, expected [tokens,H] and [tokens,K] of {}", x, ids,
             ids_types);
  if (!check.ok()) return plan;
  plan.tokens = x.shape[0];
  plan.k = ids.shape[1];
  plan.width = x.shape[1];
  plan.row_bytes = plan.width * element;
  plan.x_dtype = x.dtype;
  plan.id_dtype = ids.dtype;
  plan.order = plan.scratch.Take<int32_t>(plan.positions());
  return plan;
}

// Sets the rows, of which the attribute active_num leaves that many; 0 or less: all.
void SetRows(Check& check, const OpContext& op, Routing& plan) {
  check.Keep(AskForLists(op, plan.experts));
  const int64_t active = op.attr_int("active_num");
  plan.rows = active > 0 ? std::min(active, plan.positions()) : plan.positions();
  if (plan.capacity > 0 && __builtin_mul_overflow(plan.experts, plan.capacity, &plan.rows)) {
    plan.rows = INT64_MAX;  // SetOutput refuses it
  }
  plan.tokens_of = plan.scratch.Take<int64_t>(plan.experts);
}

// Sorts the positions of active experts and counts the tokens of each expert. Returns how many
// positions these are. Error: an id that is no expert.
template <typename Id>
Result<int64_t> Sort(const Routing& plan, const KernelArgs& args, const Id* ids) {
  int32_t* const order = plan.order(args);
  int64_t* const tokens_of = plan.tokens_of(args);
  std::fill_n(tokens_of, plan.experts, 0);
  int64_t active = 0;
  for (int64_t p = 0; p < plan.positions(); ++p) {
    if (ids[p] < 0 || (plan.experts > 0 && ids[p] >= plan.experts)) {
      return Error(Code::kInvalidArgument, "{}: expert_idx holds {} for token {}, expected 0 to {}",
                   plan.who, ids[p], p / plan.k, plan.experts > 0 ? plan.experts - 1 : INT32_MAX);
    }
    if (ids[p] < plan.first || ids[p] >= plan.last) continue;
    order[active++] = static_cast<int32_t>(p);
    if (plan.experts > 0) ++tokens_of[ids[p]];
  }
  std::sort(order, order + active,
            [ids](int32_t a, int32_t b) { return ids[a] != ids[b] ? ids[a] < ids[b] : a < b; });
  return active;
}

void CopyRow(const Routing& plan, const KernelArgs& args, int64_t token, int64_t row) {
  std::copy_n(static_cast<const std::byte*>(args.in[0]) + token * plan.row_bytes, plan.row_bytes,
              static_cast<std::byte*>(args.out[0]) + row * plan.row_bytes);
}

// What `counts` says of the active experts.
template <typename T>
void StoreCounts(const Routing& plan, const KernelArgs& args, Counts counts, void* out) {
  T* to = static_cast<T*>(out);
  if (counts == Counts::kPairs) std::fill_n(to, 2 * plan.experts, T{0});
  T sum = 0;
  const int64_t end = std::min(plan.last, plan.experts);
  for (int64_t e = plan.first; e < end; ++e) {
    const T count = static_cast<T>(plan.tokens_of(args)[e]);
    sum += count;
    if (counts != Counts::kPairs) {
      *to++ = counts == Counts::kSums ? sum : count;
    } else if (count > 0) {
      *to++ = static_cast<T>(e);
      *to++ = count;
    }
  }
}

// ---- MoeInitRouting ----

Routing PlanFirst(const OpContext& op, Check& check) {
  Routing plan = PlanPositions(op, DataType::kInt32, check);
  const TensorType &rows = op.in("row_idx"), &ids = op.in("expert_idx");
  const int64_t active = op.attr_int("active_num");
  check.That(rows == ids && active >= 0,
             "row_idx is {}, expert_idx {} and active_num {}; expected two of one type and 0 or "
             "more",
             rows, ids, active);
  plan.rows = std::min(active, plan.tokens) * plan.k;
  const TensorType positions = {DataType::kInt32, {plan.positions()}};
  plan.outputs = {{plan.x_dtype, {plan.rows, plan.width}}, positions, positions};
  return plan;
}

Status RunFirst(const Routing& plan, const KernelArgs& args) {
  const auto* rows = static_cast<const int32_t*>(args.in[1]);
  const auto* ids = static_cast<const int32_t*>(args.in[2]);
  auto* row_at = static_cast<int32_t*>(args.out[1]);
  NPUMESH_RETURN_IF_ERROR(Sort(plan, args, ids).status());
  std::fill_n(row_at, plan.positions(), 0);
  for (int64_t i = 0; i < plan.positions(); ++i) {
    const int32_t position = plan.order(args)[i], row = rows[position];
    if (row < 0 || row >= plan.positions()) {
      return Error(Code::kInvalidArgument, "{}: row_idx holds {} at {}, expected 0 to {}", plan.who,
                   row, position, plan.positions() - 1);
    }
    row_at[row] = static_cast<int32_t>(i);
    static_cast<int32_t*>(args.out[2])[i] = ids[position];
    if (i < plan.rows) CopyRow(plan, args, row % plan.tokens, i);
  }
  return Status();
}

// ---- MoeInitRoutingV2, MoeInitRoutingV3 ----

enum class Quant : uint8_t { kNone, kStatic, kDynamic };

struct Expansion : Routing {
  bool raw_counts = false;  // output 3: the tokens of each expert, dropped ones included
  Quant quant = Quant::kNone;
  bool gathers = true;  // expanded_row_idx by position, not by row
  Factors scale, offset;
  Workspace<float> row, factors;
};

Expansion PlanSecond(const OpContext& op, Check& check) {
  Expansion plan{PlanPositions(op, kIndices, check)};
  plan.experts = op.attr_int("expert_num");
  const int64_t drop = op.attr_int("drop_pad_mode");
  const int64_t capacity = op.attr_int("expert_capacity");
  const int64_t active = op.attr_int("active_num");
  const int64_t flag = op.attr_int("expert_tokens_count_or_cumsum_flag");
  const bool modes = drop == 0 || (drop == 1 && capacity > 0);
  const bool named = plan.experts > 0 || (plan.experts == 0 && drop == 0 && flag == 0);
  check.That(flag >= 0 && flag <= 2 && modes && named && active >= 0,
             "expert_num {}, active_num {}, drop_pad_mode {} with expert_capacity {}, "
             "expert_tokens_count_or_cumsum_flag {}; expected 0 or more, mode 0 or 1 with a "
             "capacity, flag 0 to 2, and experts for counts and capacities",
             plan.experts, active, drop, capacity, flag);
  if (!check.ok()) return plan;
  plan.capacity = drop == 1 ? capacity : 0;
  constexpr Counts kCounts[] = {Counts::kNone, Counts::kSums, Counts::kCounts};
  if (drop == 0) plan.counts = kCounts[flag];
  plan.raw_counts = op.attr_bool("expert_tokens_before_capacity_flag") && drop == 1;
  SetRows(check, op, plan);
  const bool counted = plan.counts != Counts::kNone;
  plan.outputs = {{plan.x_dtype, plan.expanded()},
                  {DataType::kInt32, {plan.positions()}},
                  {DataType::kInt32, {counted ? plan.experts : 0}},
                  {DataType::kInt32, {plan.raw_counts ? plan.experts : 0}}};
  return plan;
}

void ReadExperts(Check& check, const OpContext& op, Expansion& plan) {
  plan.experts = op.attr_int("expert_num");
  const std::vector<int64_t> range = op.attr_ints("active_expert_range");
  plan.last = plan.experts;
  if (range.size() == 2) {
    plan.first = range[0];
    plan.last = range[1];
  }
  const bool range_fits = (range.empty() || range.size() == 2) && plan.first >= 0 &&
                          plan.first < plan.last && plan.last <= plan.experts;
  const int64_t drop = op.attr_int("drop_pad_mode");
  plan.capacity = drop == 1 ? op.attr_int("expert_capacity") : 0;
  check.That(plan.experts >= 1 && range_fits && (drop == 0 || (drop == 1 && plan.capacity >= 1)),
             "expert_num {}, active_expert_range of {} numbers, drop_pad_mode {} with "
             "expert_capacity {}",
             plan.experts, range.size(), drop, op.attr_int("expert_capacity"));
}

// Static: one; dynamic: smoothing of all tokens or of each expert.
bool ScaleFits(const Expansion& plan) {
  const int64_t count = plan.scale.count(), n = plan.width;
  if (plan.quant == Quant::kStatic) return count == 1 && plan.offset.count() <= 1;
  if (!plan.scale.given()) return true;
  if (plan.quant == Quant::kNone) return count == plan.tokens;
  return count == n || count == n * plan.experts || count == n * (plan.last - plan.first);
}

Expansion PlanThird(const OpContext& op, Check& check) {
  Expansion plan{PlanPositions(op, DataType::kInt32, check)};
  ReadExperts(check, op, plan);
  const int64_t mode = op.attr_int("quant_mode");
  check.Supported(mode >= -1 && mode <= 1, "quant_mode {} is not supported, expected -1, 0 or 1",
                  mode);
  if (!check.ok()) return plan;
  plan.quant = static_cast<Quant>(mode + 1);
  plan.scale = check.Take(Factors::Of(op, "scale"));
  plan.offset = check.Take(Factors::Of(op, "offset"));
  check.That(ScaleFits(plan) && (plan.quant == Quant::kNone || kFloats.Contains(plan.x_dtype)),
             "{} scales for x {} and quant_mode {}", plan.scale.count(), op.in("x"), mode);
  constexpr Counts kCounts[] = {Counts::kSums, Counts::kCounts, Counts::kPairs};
  const int64_t counts = check.Between("expert_tokens_num_type", 0, 2);
  if (!check.ok()) return plan;
  if (op.attr_bool("expert_tokens_num_flag")) plan.counts = kCounts[counts];
  plan.gathers = op.attr_int("row_idx_type") == 0;
  SetRows(check, op, plan);
  const Shape count_shape = plan.counts == Counts::kNone    ? Shape{0}
                            : plan.counts == Counts::kPairs ? Shape{plan.experts, 2}
                                                            : Shape{plan.last - plan.first};
  plan.outputs = {{plan.quant == Quant::kNone ? plan.x_dtype : DataType::kInt8, plan.expanded()},
                  {DataType::kInt32, {plan.positions()}},
                  {DataType::kInt64, count_shape},
                  {DataType::kFloat, {plan.rows}}};
  plan.scratch.Take(plan.width, {&plan.row, &plan.factors});
  return plan;
}

void Smooth(const Expansion& plan, const KernelArgs& args, int64_t expert, float* x) {
  const int64_t n = plan.width;
  float* const factors = plan.factors(args);
  const int64_t sets = plan.scale.count() / n;
  const int64_t set = sets == 1 ? 0 : sets == plan.experts ? expert : expert - plan.first;
  plan.scale.Load(args, set * n, n, factors);
  MultiplyRow(x, factors, n, x);
}

// A token into a row of expanded_x.
void Expand(const Expansion& plan, const KernelArgs& args, int64_t token, int64_t expert,
            int64_t row) {
  auto* scales = static_cast<float*>(args.out[3]);
  if (plan.quant == Quant::kNone) {
    CopyRow(plan, args, token, row);
    if (plan.scale.given()) scales[row] = plan.scale.At(args, token);
    return;
  }
  const int64_t n = plan.width;
  float* const x = plan.row(args);
  int8_t* const to = static_cast<int8_t*>(args.out[0]) + row * n;
  LoadNumbers(plan.x_dtype, args.in[0], token * n, n, x);
  if (plan.quant == Quant::kDynamic) {
    if (plan.scale.given()) Smooth(plan, args, expert, x);
    scales[row] = QuantiseToInt8(x, n, to);
    return;
  }
  const float scale = plan.scale.At(args, 0);
  const float offset = plan.offset.For(args, 0, 0.0f);
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] * scale + offset;
  StoreIntegers(DataType::kInt8, Rounding::kNearest, x, to, 0, n);
}

// Writes the positions of the experts that are not active after those of the `active` ones: by
// expert, those before the range last, as the device sorts them.
template <typename Id>
void NameOtherPositions(const Expansion& plan, const KernelArgs& args, int64_t active,
                        const Id* ids) {
  auto* const to = static_cast<int32_t*>(args.out[1]) + active;
  int64_t count = 0;
  for (int64_t p = 0; p < plan.positions(); ++p) {
    if (ids[p] < plan.first || ids[p] >= plan.last) to[count++] = static_cast<int32_t>(p);
  }
  const auto key = [&](int32_t p) { return ids[p] < plan.first ? INT64_MAX : int64_t{ids[p]}; };
  std::sort(to, to + count,
            [key](int32_t a, int32_t b) { return key(a) != key(b) ? key(a) < key(b) : a < b; });
}

// Expands the sorted positions that get a row, which may lie after the last one of expanded_x.
template <typename Id>
void ExpandAll(const Expansion& plan, const KernelArgs& args, int64_t active, const Id* ids) {
  const int32_t* order = plan.order(args);
  auto* row_of = static_cast<int32_t*>(args.out[1]);
  int64_t in_expert = 0;
  for (int64_t i = 0; i < active; ++i) {
    const int32_t position = order[i];
    const int64_t expert = ids[position];
    in_expert = i > 0 && ids[order[i - 1]] == expert ? in_expert + 1 : 0;
    if (plan.capacity > 0 && in_expert >= plan.capacity) continue;
    const int64_t row = plan.capacity > 0 ? expert * plan.capacity + in_expert : i;
    row_of[plan.gathers ? position : i] = plan.gathers ? static_cast<int32_t>(row) : position;
    if (row < plan.rows) Expand(plan, args, position / plan.k, expert, row);
  }
}

// Clears expanded_x where not all of its rows are written. Counts are int32 in the second version;
// output 3 of the third has the scales of the rows.
template <typename Id, bool kThird>
Status RunExpansion(const Expansion& plan, const KernelArgs& args) {
  using Count = std::conditional_t<kThird, int64_t, int32_t>;
  const auto* ids = static_cast<const Id*>(args.in[1]);
  NPUMESH_ASSIGN_OR_RETURN(const int64_t active, Sort(plan, args, ids));
  if (plan.capacity > 0 || active < plan.rows) ClearOutput(plan, args, 0);
  if (kThird) std::fill_n(static_cast<float*>(args.out[3]), plan.rows, 0.0f);
  std::fill_n(static_cast<int32_t*>(args.out[1]), plan.positions(), -1);
  ExpandAll(plan, args, active, ids);
  if (!plan.gathers) NameOtherPositions(plan, args, active, ids);
  if (plan.counts != Counts::kNone) StoreCounts<Count>(plan, args, plan.counts, args.out[2]);
  if (plan.raw_counts) StoreCounts<int32_t>(plan, args, Counts::kCounts, args.out[3]);
  return Status();
}

Status RunSecond(const Expansion& plan, const KernelArgs& args) {
  return plan.id_dtype == DataType::kInt64 ? RunExpansion<int64_t, false>(plan, args)
                                           : RunExpansion<int32_t, false>(plan, args);
}

}  // namespace

void RegisterMoeRoutingOps(OpRegistry& registry) {
  registry.Add(Define<PlanFirst, RunFirst>(
      "MoeInitRouting(x, row_idx, expert_idx; active_num:int) -> expanded_x, expanded_row_idx, "
      "expanded_expert_idx"));
  registry.Add(Define<PlanSecond, RunSecond>(
      "MoeInitRoutingV2(x, expert_idx; active_num=0, expert_capacity=0, expert_num=0, "
      "drop_pad_mode=0, expert_tokens_count_or_cumsum_flag=0, "
      "expert_tokens_before_capacity_flag=false) -> expanded_x, expanded_row_idx, "
      "expert_tokens_count_or_cumsum, expert_tokens_before_capacity"));
  registry.Add(Define<PlanThird, RunExpansion<int32_t, true>>(
      "MoeInitRoutingV3(x, expert_idx, scale?, offset?; active_num=-1, expert_capacity=-1, "
      "expert_num=-1, drop_pad_mode=0, expert_tokens_num_type=0, expert_tokens_num_flag=false, "
      "quant_mode=-1, active_expert_range=[], row_idx_type=0) -> expanded_x, expanded_row_idx, "
      "expert_tokens_count_or_cumsum, expanded_scale"));
}

}  // namespace npumesh
