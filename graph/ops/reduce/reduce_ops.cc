// ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd, ReduceAny and ReduceAll.
//
// Neighbouring axes that are all reduced or all kept are merged, so that a tensor becomes
// alternating groups; each reduced group then takes one pass over [outer, size, inner], the last
// group first. Between passes the values stay in the type the fold accumulates in and lie in
// scratch memory; they are rounded to the output's type once, at the end. The order of folding
// depends on the shape alone.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "graph/ops/core/check.h"
#include "graph/ops/core/define.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/loop_program.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/reduce/reduce_ops_fold.h"
#include "graph/ops/toolbox/copy/block_operand.h"
#include "graph/ops/toolbox/lanes/lane_table.h"
#include "graph/ops/toolbox/rows/axis_kernel.h"
#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// One pass over [outer, size, inner]: folds the middle.
struct Pass {
  int64_t outer = 1, size = 1, inner = 1;
};

std::vector<Pass> PassesOf(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<Pass> passes;
  int64_t inner = 1;
  bool continues = false;  // the next axis belongs to the last pass
  for (int i = shape.rank(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (!reduced[static_cast<size_t>(i)]) {
      inner *= shape[i];
    } else if (continues) {
      passes.back().outer = ElementsBetween(shape, 0, i);
      passes.back().size *= shape[i];
    } else {
      passes.push_back({ElementsBetween(shape, 0, i), shape[i], inner});
    }
    continues = reduced[static_cast<size_t>(i)];
  }
  if (passes.empty()) passes.push_back({1, 1, shape.elements()});
  return passes;
}

constexpr int64_t kStep = kBlockElements;
static_assert(kStep == kJoinBlock);

// Rows so long, and so few, that threads share one.
bool HasLongRows(const Pass& pass) {
  constexpr int64_t kLong = 64 * kStep, kFew = 16;
  return pass.inner == 1 && pass.size >= kLong && pass.outer <= kFew;
}

// The whole blocks of the longest one.
int64_t BlocksOfLongRows(const std::vector<Pass>& passes) {
  int64_t most = 0;
  for (const Pass& pass : passes) {
    if (HasLongRows(pass)) most = std::max(most, pass.size / kStep);
  }
  return most;
}

struct ReducePlan : Planned {
  int64_t elements = 0;      // of x
  ConvertFn copy = nullptr;  // not null: nothing is folded, x is converted
  Fold fold = {};
  std::vector<Pass> passes;
  int64_t count = 1;  // elements folded into one, for the mean
  int threads = 1;
  size_t in_width = 0, out_width = 0;
  size_t width = 0;  // of the fold's type
  ConvertFn load = nullptr, store = nullptr;
  Workspace<std::byte> between;  // results of a pass that is not the last
  Workspace<std::byte> totals;   // of the blocks of a long row
};

// What grows with the number of elements, beyond float16.
template <FoldKind kKind>
constexpr bool kAddsUp =
    kKind == FoldKind::kSum || kKind == FoldKind::kMean || kKind == FoldKind::kProd;

// `kCasts`: attribute "dtype" names the type that is folded, which the elements of x are converted
// to; kUndefined: that of x.
template <FoldKind kKind, bool kCasts>
ReducePlan PlanReduce(const OpContext& op, Check& check) {
  const TensorType& x = op.in("x");
  const bool casts = kCasts && op.attr_int("dtype") != static_cast<int64_t>(DataType::kUndefined);
  const DataType folded = casts ? check.Take(op.attr_dtype("dtype")) : x.dtype;
  const std::string mode = kAddsUp<kKind> ? op.node().StringAttr(kImplMode, "") : "";
  const bool fast = mode == "high_performance";
  const std::optional<Fold> fold = FindFold(kKind, folded, fast);
  check.Supported(fold && FindConvert(x.dtype, folded) != nullptr, "not defined for x {}", x);
  const std::vector<int64_t> axes = check.Take(op.Ints("axes"));
  std::vector<bool> reduced = check.Take(ChooseAxes(op, x, axes, "axes"));
  if (!check.ok()) return {};
  const bool noop = axes.empty() && op.attr_bool("noop_with_empty_axes");
  if (noop) reduced.assign(reduced.size(), false);
  const bool flags = kKind == FoldKind::kAny || kKind == FoldKind::kAll;
  const DataType out = flags ? DataType::kBool : folded;
  ReducePlan plan;
  plan.elements = x.shape.elements();
  plan.threads = op.threads();
  plan.fold = *fold;
  if (!mode.empty() && IsFloating(folded)) {
    const std::string why = fmt::format("op_select_implmode={}", mode);
    plan.choice.Decide("sums in double", fast ? why : "");
    if (fast) plan.choice.Decide("sums in float32", "");
  }
  plan.passes = PassesOf(x.shape, reduced);
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (reduced[static_cast<size_t>(i)]) plan.count *= x.shape[i];
  }
  plan.in_width = WidthOf(x.dtype);
  plan.out_width = WidthOf(out);
  plan.width = WidthOf(fold->compute);
  plan.load = FindConvert(x.dtype, fold->compute);
  plan.store = FindConvert(fold->compute, out);
  if (noop) plan.copy = FindConvert(x.dtype, out);
  if (plan.passes.size() > 1) {
    const Pass& first = plan.passes[0];
    plan.between =
        plan.scratch.Take<std::byte>(first.outer * first.inner * static_cast<int64_t>(plan.width));
  }
  plan.totals = plan.scratch.Take<std::byte>(BlocksOfLongRows(plan.passes) *
                                             static_cast<int64_t>(plan.width));
  plan.outputs = {{out, Reduced(x.shape, reduced, op.attr_bool("keep_dims"))}};
  return plan;
}

// Where a pass reads.
struct Source {
  const std::byte* data;
  size_t width;
  ConvertFn load;  // null: already in the fold's type

  const void* Read(int64_t begin, size_t count, BlockBuffer& block) const {
    const std::byte* from = data + static_cast<size_t>(begin) * width;
    if (load == nullptr) return from;
    load(from, block.bytes, count);
    return block.bytes;
  }
};

void FoldRow(const Fold& fold, const Source& source, int64_t start, int64_t size,
             BlockBuffer& total) {
  BlockBuffer block;
  for (int64_t begin = 0; begin < size; begin += kStep) {
    const auto count = static_cast<size_t>(std::min(kStep, size - begin));
    fold.row(source.Read(start + begin, count, block), count, total.bytes);
  }
}

void FoldColumns(const Fold& fold, const Source& source, int64_t start, const Pass& pass,
                 size_t columns, BlockBuffer& total) {
  // Whole rows lie side by side.
  const bool whole = static_cast<int64_t>(columns) == pass.inner;
  const int64_t together = whole ? kStep / pass.inner : 1;
  BlockBuffer block;
  for (int64_t row = 0; row < pass.size; row += together) {
    const auto rows = static_cast<size_t>(std::min(together, pass.size - row));
    const void* const values = source.Read(start + row * pass.inner, rows * columns, block);
    fold.columns(values, rows, columns, total.bytes);
  }
}

// Writes totals in the fold's type, or after the last pass as results.
void Finish(const ReducePlan& plan, BlockBuffer& total, size_t columns, std::byte* to, bool last) {
  if (!last) {
    std::memcpy(to, total.bytes, columns * plan.width);
    return;
  }
  if (plan.fold.divide != nullptr) plan.fold.divide(total.bytes, columns, plan.count);
  plan.store(total.bytes, to, columns);
}

// Block `index` of the results of a pass: of one outer position, up to kStep inner ones.
void RunBlock(const ReducePlan& plan, const Pass& pass, const Source& source, int64_t index,
              std::byte* to, bool last) {
  const size_t step = last ? plan.out_width : plan.width;
  const int64_t blocks = CeilDiv(pass.inner, kStep), outer = index / blocks;
  const int64_t begin = index % blocks * kStep;
  const auto columns = static_cast<size_t>(std::min(kStep, pass.inner - begin));
  BlockBuffer total;
  plan.fold.fill(plan.fold.identity, total.bytes, columns);
  const int64_t start = outer * pass.size * pass.inner + begin;
  if (pass.inner == 1) {
    FoldRow(plan.fold, source, start, pass.size, total);
  } else {
    FoldColumns(plan.fold, source, start, pass, columns, total);
  }
  Finish(plan, total, columns, to + static_cast<size_t>(outer * pass.inner + begin) * step, last);
}

// Threads fold the whole blocks of a row, each into a separate total, which are then folded in
// the order of the blocks, as FoldRow does: the bits are the same.
void FoldLongRow(const ReducePlan& plan, const Source& source, int64_t start, int64_t size,
                 int parts, std::byte* totals, BlockBuffer& total) {
  const Fold& fold = plan.fold;
  const int64_t whole = size / kStep;
  fold.fill(fold.identity, totals, static_cast<size_t>(whole));
  RunRanges(parts, whole, 1, [&](int, int64_t first, int64_t end) {
    BlockBuffer block;
    for (int64_t i = first; i < end; ++i) {
      fold.row(source.Read(start + i * kStep, kStep, block), kStep,
               totals + static_cast<size_t>(i) * plan.width);
    }
  });
  for (int64_t i = 0; i < whole; ++i) {
    fold.columns(totals + static_cast<size_t>(i) * plan.width, 1, 1, total.bytes);
  }
  FoldRow(fold, source, start + whole * kStep, size % kStep, total);
}

void RunLongRows(const ReducePlan& plan, const Pass& pass, const Source& source, int parts,
                 std::byte* totals, std::byte* to, bool last) {
  const size_t step = last ? plan.out_width : plan.width;
  for (int64_t row = 0; row < pass.outer; ++row, to += step) {
    BlockBuffer total;
    plan.fold.fill(plan.fold.identity, total.bytes, 1);
    FoldLongRow(plan, source, row * pass.size, pass.size, parts, totals, total);
    Finish(plan, total, 1, to, last);
  }
}

// A pass may write over its own source, block by block: what it writes lies before what it has yet
// to read. Others are shared out among threads.
void RunPass(const ReducePlan& plan, const Pass& pass, const Source& source, std::byte* totals,
             std::byte* to, bool last) {
  const int64_t blocks = pass.outer * CeilDiv(pass.inner, kStep);
  const double work = kElementWork * static_cast<double>(pass.outer * pass.size * pass.inner);
  const int worth = WorthThreads(work, plan.threads);
  if (worth > 1 && HasLongRows(pass)) {
    return RunLongRows(plan, pass, source, worth, totals, to, last);
  }
  const int parts = source.data == to ? 1 : worth;
  RunRanges(parts, blocks, 1, [&](int, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) RunBlock(plan, pass, source, i, to, last);
  });
}

Status RunReduce(const ReducePlan& plan, const KernelArgs& args) {
  if (plan.copy != nullptr) {
    plan.copy(args.in[0], args.out[0], static_cast<size_t>(plan.elements));
    return Status();
  }
  Source source{static_cast<const std::byte*>(args.in[0]), plan.in_width, plan.load};
  for (size_t i = 0; i < plan.passes.size(); ++i) {
    const bool last = i + 1 == plan.passes.size();
    std::byte* to = last ? static_cast<std::byte*>(args.out[0]) : plan.between(args);
    RunPass(plan, plan.passes[i], source, plan.totals(args), to, last);
    source = {to, plan.width, nullptr};
  }
  return Status();
}

// The numbers of rows of `x`, of floating numbers, or of any numbers where flags are folded.
template <FoldKind kKind>
LoopValue LoopFold(LoopBuilder& loop, LoopValue x) {
  const bool flags = kKind == FoldKind::kAny || kKind == FoldKind::kAll;
  if (flags) x = loop.As(LoopType::kFloat, loop.As(LoopType::kBool, x));
  if (kAddsUp<kKind>) x = loop.As(LoopType::kDouble, x);
  switch (kKind) {
    case FoldKind::kSum:
      return loop.Emit(LoopOp::kRowTotal, {x});
    case FoldKind::kMean:
      return loop.Emit(LoopOp::kDiv,
                       {loop.Emit(LoopOp::kRowTotal, {x}),
                        loop.Constant(static_cast<double>(loop.columns()), LoopType::kDouble)});
    case FoldKind::kProd:
      return loop.Emit(LoopOp::kRowProduct, {x});
    case FoldKind::kMax:
    case FoldKind::kAny:
      return loop.Emit(LoopOp::kRowLargest, {x});
    case FoldKind::kMin:
    case FoldKind::kAll:
      return loop.Emit(LoopOp::kRowLeast, {x});
  }
  return -1;
}

// Over the last axis alone.
template <FoldKind kKind, bool kCasts>
void LoopReduce(const OpContext& op, LoopBuilder& loop) {
  const TensorType& x = op.in("x");
  const Result<std::vector<int64_t>> axes = op.Ints("axes");
  if (!axes.ok() || axes->size() != 1 || x.shape.rank() == 0) return;
  if ((*axes)[0] != -1 && (*axes)[0] != x.shape.rank() - 1) return;
  if (x.shape.dims().back() != loop.columns()) return;
  if (op.node().StringAttr(kImplMode, "") == "high_performance") return;
  const bool flags = kKind == FoldKind::kAny || kKind == FoldKind::kAll;
  const DataType out = op.out(0).dtype, folded = kCasts && !flags ? out : x.dtype;
  if (!flags && !IsFloating(folded)) {
    loop.Refuse("it folds integers");
    return;
  }
  loop.Give(loop.To(out, LoopFold<kKind>(loop, loop.In(op.slot("x")))));
}

// Both forms: with the axes as an input, and as an attribute.
template <FoldKind kKind>
void AddReductions(OpRegistry& registry, std::string_view by_input, std::string_view by_attr) {
  Operator op = Define<PlanReduce<kKind, false>, RunReduce>(
      "Reduce(x, axes; keep_dims=false, noop_with_empty_axes=true) -> y");
  op.loop = LoopReduce<kKind, false>;
  op.axes = "x[.. a! ..] -> y[.. a?keep_dims ..]; a = axes";
  if constexpr (kAddsUp<kKind>) {
    op.precision = PrecisionClass::kBlack;
    op.implementations = "Reduction";
  }
  Operator other = op;
  other.schema =
      Signature("Reduce(x; keep_dims=false, noop_with_empty_axes=false, axes:ints) -> y");
  other.schema.type = by_attr;
  registry.Add(std::move(other));
  op.value_inputs = {"axes"};
  op.schema.type = by_input;
  registry.Add(std::move(op));
}

}  // namespace

void RegisterReduceOps(OpRegistry& registry) {
  AddReductions<FoldKind::kSum>(registry, "ReduceSum", "ReduceSumD");
  AddReductions<FoldKind::kMean>(registry, "ReduceMean", "ReduceMeanD");
  AddReductions<FoldKind::kMax>(registry, "ReduceMax", "ReduceMaxD");
  AddReductions<FoldKind::kMin>(registry, "ReduceMin", "ReduceMinD");
  AddReductions<FoldKind::kProd>(registry, "ReduceProd", "ReduceProdD");
  AddReductions<FoldKind::kAny>(registry, "ReduceAny", "ReduceAnyD");
  AddReductions<FoldKind::kAll>(registry, "ReduceAll", "ReduceAllD");
  registry.Add(Define<PlanReduce<FoldKind::kMean, true>, RunReduce>(
      "ReduceMeanWithCast(x, axes; keep_dims=false, noop_with_empty_axes=true, dtype=28) -> y",
      {.value_inputs = {"axes"},
       .loop = LoopReduce<FoldKind::kMean, true>,
       .precision = PrecisionClass::kBlack,
       .implementations = "Reduction",
       .axes = "x[.. a! ..] -> y[.. a?keep_dims ..]; a = axes"}));
}

}  // namespace npumesh
