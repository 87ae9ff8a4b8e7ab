// FusedCausalConv1d and InplaceFusedCausalConv1d: a depthwise convolution of three taps along
// packed sequences, each preceded by the rows that its cache holds.
//
//   y[i] = sum over k of w[k] * x'[i + k],  x' = K - 1 cached rows, then the sequence
//
// The residual x[i] is added after the activation. A line of the cache has S >= K - 1 rows, of
// which the last K - 1 count; with num_accepted_tokens those that end K - 2 + accepted rows after
// the first, because the rest of what speculation had drawn was refused. The line then holds the
// last rows of what counted, and what came before it, followed by the sequence. A sequence of which
// nothing is computed yet begins with zeros. Where caches are by block, a sequence reads one line,
// writes another, and fills a line for each block that it completes.
#include <algorithm>
#include <cmath>
#include <string>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

struct ConvPlan : Planned {
  bool in_place = false;  // y lies where x does
  int64_t rows = 0, width = 0, taps = 0;
  int64_t kept = 0;   // K - 1
  int64_t state = 0;  // S
  int64_t sequences = 0;
  int64_t length = 0;  // of every sequence of a three-dimensional x; 0: packed
  int64_t lines = 0;   // of the cache
  DataType dtype = DataType::kUndefined;
  Integers starts, indices, modes, accepted, computed;
  Integers first_block, last_block, initial;  // absent: caches are by sequence
  int64_t blocks = 1, block_size = 0;         // lines that cache_indices has of a sequence
  bool resets = false;  // y is zero where its window begins before the sequence
  int64_t skipped = -1;
  bool activates = false, residual = true;
  Workspace<float> weights, old, line, seen, y;

  bool by_block() const { return last_block.given(); }
};

// x is [rows, dim] or [batch, length, dim], weight [K, dim], conv_states [lines, S, dim].
void ReadShapes(const OpContext& op, Check& check, ConvPlan& plan) {
  const TensorType& x = op.in("x");
  const int rank = x.shape.rank();
  check.Type("x", kFloats);
  check.That(rank == 2 || rank == 3, "x is {}, expected [rows,dim] or [batch,length,dim]", x);
  const auto [taps, width] = check.Matrix("weight", kFloats);
  check.Rank("conv_states", kFloats, 3);
  for (const std::string_view port : {"weight", "conv_states"}) check.SameType(port, "x");
  if (!check.ok()) return;
  plan.dtype = x.dtype;
  plan.width = width;
  plan.rows = ElementsBetween(x.shape, 0, rank - 1);
  plan.taps = taps;
  plan.kept = taps - 1;
  plan.lines = op.in("conv_states").shape[0];
  plan.state = op.in("conv_states").shape[1];
  if (rank == 3) {
    plan.sequences = x.shape[0];
    plan.length = x.shape[1];
  }
  check.That(x.shape[rank - 1] == width && taps >= 1 && (rank == 2 || plan.length > 0),
             "x is {} and weight {}, expected rows of one width and at least one tap", x,
             op.in("weight"));
  check.Shape("conv_states", {plan.lines, plan.state, width});
  check.That(plan.state >= plan.kept, "conv_states is {}, expected at least {} rows in a line",
             op.in("conv_states"), plan.kept);
}

// cache_indices: a line of each sequence, or lines of its blocks.
void ReadBlocks(const OpContext& op, Check& check, ConvPlan& plan) {
  plan.indices = Integers::Of(op, "cache_indices");
  const bool all = plan.first_block.given() && plan.initial.given() && plan.computed.given() &&
                   plan.indices.given();
  check.That(plan.by_block() ? all : !plan.first_block.given() && !plan.initial.given(),
             "caches by block need cache_indices, num_computed_tokens, "
             "block_idx_first_scheduled_token, block_idx_last_scheduled_token and "
             "initial_state_idx");
  if (!plan.by_block()) {
    check.TypeAndShape("cache_indices", DataType::kInt32, {plan.sequences});
    return;
  }
  check.Rank("cache_indices", DataType::kInt32, 2);
  plan.block_size = check.Between("block_size", 1, INT32_MAX);
  if (!check.ok()) return;
  plan.blocks = op.in("cache_indices").shape[1];
  check.Shape("cache_indices", {plan.sequences, plan.blocks});
}

void ReadLists(const OpContext& op, Check& check, ConvPlan& plan) {
  plan.starts = Integers::Of(op, "query_start_loc");
  const bool packed = plan.length == 0;
  check.That(!packed || plan.starts.given(), "x is packed, \"query_start_loc\" is missing");
  if (!check.ok()) return;
  if (packed) {
    plan.sequences = plan.starts.count() - 1;
    check.TypeAndShape("query_start_loc", DataType::kInt32, {plan.sequences + 1});
  }
  constexpr std::string_view kLists[] = {"initial_state_mode",
                                         "num_accepted_tokens",
                                         "num_computed_tokens",
                                         "block_idx_first_scheduled_token",
                                         "block_idx_last_scheduled_token",
                                         "initial_state_idx"};
  Integers* const places[] = {&plan.modes,       &plan.accepted,   &plan.computed,
                              &plan.first_block, &plan.last_block, &plan.initial};
  for (size_t i = 0; i < std::size(kLists); ++i) {
    check.TypeAndShape(kLists[i], DataType::kInt32, {plan.sequences});
    *places[i] = Integers::Of(op, kLists[i]);
  }
  ReadBlocks(op, check, plan);
  check.That(plan.indices.given() || plan.lines >= plan.sequences,
             "{} cached lines for {} sequences", plan.lines, plan.sequences);
}

template <bool kInPlace>
ConvPlan PlanConv(const OpContext& op, Check& check) {
  ConvPlan plan;
  check.NotFed({"bias"});
  plan.resets = check.Among("conv_mode", {0, 1}) == 1;
  check.Among("run_mode", {0, 1});
  plan.activates = check.Among("activation_mode", {0, 1, 2}) != 0;
  plan.residual = check.Among("residual_connection", {0, 1}) == 1;
  plan.skipped = op.attr_int("pad_slot_id");
  plan.in_place = kInPlace;
  ReadShapes(op, check, plan);
  ReadLists(op, check, plan);
  check.That(!plan.resets || plan.computed.given(),
             "conv_mode is 1, \"num_computed_tokens\" is missing");
  plan.outputs = {op.in("conv_states"), op.in("x")};
  plan.weights = plan.scratch.Floats(plan.taps * plan.width);
  plan.scratch.Take(plan.state * plan.width, {&plan.old, &plan.line});
  plan.scratch.Take(plan.width, {&plan.seen, &plan.y});
  return plan;
}

// A sequence in one run.
struct Sequence {
  int64_t number = 0, begin = 0, length = 0;  // rows of x
  int64_t read = 0, write = 0;                // lines of the cache
  int64_t cached = 0;                         // rows of the old line that precede it
};

// Row `i` of the cached rows that precede the sequence, followed by it.
void LoadSeen(const ConvPlan& plan, const KernelArgs& args, const Sequence& of, int64_t i,
              float* to) {
  const int64_t n = plan.width;
  if (i < of.cached) {
    std::copy_n(plan.old(args) + i * n, n, to);
  } else {
    LoadNumbers(plan.dtype, args.in[0], (of.begin + i - of.cached) * n, n, to);
  }
}

void RunRow(const ConvPlan& plan, const KernelArgs& args, const Sequence& of, int64_t i,
            bool resets) {
  const int64_t n = plan.width;
  const float* weights = plan.weights(args);
  float *seen = plan.seen(args), *y = plan.y(args);
  std::fill_n(y, n, 0.0f);
  for (int64_t k = 0; k < plan.taps; ++k) {
    LoadSeen(plan, args, of, of.cached - plan.kept + i + k, seen);
    for (int64_t d = 0; d < n && !resets; ++d) y[d] += weights[k * n + d] * seen[d];
  }
  for (int64_t d = 0; plan.activates && d < n; ++d) y[d] /= 1.0f + std::exp(-y[d]);
  // The last tap saw x[i].
  for (int64_t d = 0; plan.residual && d < n; ++d) y[d] += seen[d];
  StoreRow(plan.dtype, y, args.out[1], (of.begin + i) * n, n);
}

// A line of the cache that a list names. Error: there is no such line.
Status CheckLine(const ConvPlan& plan, int64_t sequence, int64_t line) {
  if (line >= 0 && line < plan.lines) return Status();
  return Error(Code::kInvalidArgument, "{}: sequence {} has line {} of a cache of {}", plan.who,
               sequence, line, plan.lines);
}

// Line `block` of a sequence, of caches by block. Error: it has no such block.
Result<int64_t> LineOfBlock(const ConvPlan& plan, const KernelArgs& args, int64_t sequence,
                            int64_t block) {
  if (block < 0 || block >= plan.blocks) {
    return Error(Code::kInvalidArgument, "{}: sequence {} is at block {}, cache_indices has {}",
                 plan.who, sequence, block, plan.blocks);
  }
  return plan.indices.At(args, sequence * plan.blocks + block);
}

// Sets the lines of a sequence, unchecked.
Status FindLines(const ConvPlan& plan, const KernelArgs& args, Sequence* of) {
  const int64_t b = of->number;
  if (!plan.by_block()) {
    of->read = of->write = plan.indices.given() ? plan.indices.At(args, b) : b;
    return Status();
  }
  NPUMESH_ASSIGN_OR_RETURN(of->read, LineOfBlock(plan, args, b, plan.initial.At(args, b)));
  NPUMESH_ASSIGN_OR_RETURN(of->write, LineOfBlock(plan, args, b, plan.last_block.At(args, b)));
  return Status();
}

// Loads the old line; sets how many of its rows precede the sequence.
Status LoadHistory(const ConvPlan& plan, const KernelArgs& args, Sequence* of) {
  const int64_t b = of->number, elements = plan.state * plan.width;
  const int64_t mode = plan.modes.given() ? plan.modes.At(args, b) : 1;
  if (mode != 0 && mode != 1) {
    return Error(Code::kUnsupported, "{}: initial_state_mode of sequence {} is {}, expected 0 or 1",
                 plan.who, b, mode);
  }
  float* const old = plan.old(args);
  LoadNumbers(plan.dtype, args.out[0], of->read * elements, elements, old);
  of->cached = plan.state;
  if (mode == 0 || (plan.computed.given() && plan.computed.At(args, b) == 0)) {
    of->cached = plan.kept;
    std::fill_n(old, plan.kept * plan.width, 0.0f);
  } else if (plan.accepted.given()) {
    const int64_t accepted = plan.accepted.At(args, b);
    of->cached = plan.kept + accepted - 1;
    if (accepted < 1 || of->cached > plan.state) {
      return Error(Code::kInvalidArgument,
                   "{}: sequence {} has {} accepted tokens, expected 1 to {} for lines of {} rows",
                   plan.who, b, accepted, plan.state - plan.kept + 1, plan.state);
    }
  }
  return Status();
}

// Writes the last rows of a line, `count` of them, which are rows [first, first + count) of what
// LoadSeen gives. Its other rows stay.
void WriteLine(const ConvPlan& plan, const KernelArgs& args, const Sequence& of, int64_t line,
               int64_t first, int64_t count) {
  const int64_t n = plan.width;
  for (int64_t i = 0; i < count; ++i) {
    LoadSeen(plan, args, of, first + i, plan.line(args) + i * n);
  }
  StoreRow(plan.dtype, plan.line(args), args.out[0], ((line + 1) * plan.state - count) * n,
           count * n);
}

// Of caches by block: the rows before the end of each block that the sequence completes.
Status FillBlocks(const ConvPlan& plan, const KernelArgs& args, const Sequence& of) {
  const int64_t b = of.number, size = plan.block_size;
  const int64_t first = plan.first_block.At(args, b);
  const int64_t count = plan.last_block.At(args, b) - first;
  const int64_t open = size - plan.computed.At(args, b) % size;  // to the end of the first block
  const int64_t rest = ((of.length - open) % size + size) % size;
  const int64_t last_end = of.length - (rest == 0 ? size : rest);
  for (int64_t block = 0; block < count; ++block) {
    const int64_t end = last_end - (count - block - 1) * size;
    if (end <= 0 || end > of.length) {
      return Error(Code::kInvalidArgument,
                   "{}: sequence {} of {} tokens does not complete the blocks {} to {}", plan.who,
                   b, of.length, first, first + count - 1);
    }
    NPUMESH_ASSIGN_OR_RETURN(const int64_t line, LineOfBlock(plan, args, b, first + block));
    NPUMESH_RETURN_IF_ERROR(CheckLine(plan, b, line));
    WriteLine(plan, args, of, line, of.cached - plan.kept + end, plan.kept);
  }
  return Status();
}

Status RunSequence(const ConvPlan& plan, const KernelArgs& args, Sequence of) {
  NPUMESH_RETURN_IF_ERROR(FindLines(plan, args, &of));
  if (of.read == plan.skipped) return Status();
  NPUMESH_RETURN_IF_ERROR(CheckLine(plan, of.number, of.read));
  NPUMESH_RETURN_IF_ERROR(CheckLine(plan, of.number, of.write));
  NPUMESH_RETURN_IF_ERROR(LoadHistory(plan, args, &of));
  const int64_t seen = of.cached + of.length, count = std::min(plan.state, seen);
  WriteLine(plan, args, of, of.write, seen - count, count);
  if (plan.by_block()) NPUMESH_RETURN_IF_ERROR(FillBlocks(plan, args, of));
  const int64_t reset = plan.resets ? plan.kept - plan.computed.At(args, of.number) : 0;
  // From the end on, because y may lie where x does.
  for (int64_t i = of.length; i-- > 0;) RunRow(plan, args, of, i, i < reset);
  return Status();
}

Status RunConv(const ConvPlan& plan, const KernelArgs& args) {
  const bool packed = plan.length == 0;
  LoadNumbers(plan.dtype, args.in[1], 0, plan.taps * plan.width, plan.weights(args));
  if (!plan.in_place) ClearOutput(plan, args, 1);
  for (int64_t b = 0; b < plan.sequences; ++b) {
    const int64_t begin = packed ? plan.starts.At(args, b) : b * plan.length;
    const int64_t end = packed ? plan.starts.At(args, b + 1) : begin + plan.length;
    if (begin < 0 || end < begin || end > plan.rows) {
      return Error(Code::kInvalidArgument,
                   "{}: \"query_start_loc\" gives sequence {} rows {} to {} of {}", plan.who, b,
                   begin, end, plan.rows);
    }
    NPUMESH_RETURN_IF_ERROR(RunSequence(plan, args, {b, begin, end - begin}));
  }
  return Status();
}

}  // namespace

void RegisterCausalConvOps(OpRegistry& registry) {
  registry.Add(Define<PlanConv<false>, RunConv>(
      "FusedCausalConv1d(x, weight, conv_states, query_start_loc?, cache_indices?, "
      "initial_state_mode?, bias?, num_accepted_tokens?, num_computed_tokens?, "
      "block_idx_first_scheduled_token?, block_idx_last_scheduled_token?, initial_state_idx?; "
      "activation_mode=0, pad_slot_id=-1, run_mode=0, max_query_len=-1, residual_connection=1, "
      "block_size=128, conv_mode=0) -> conv_states, y",
      {.in_place = {{0, 2}}}));
  registry.Add(Define<PlanConv<true>, RunConv>(
      "InplaceFusedCausalConv1d(x, weight, conv_states, query_start_loc?, cache_indices?, "
      "initial_state_mode?, bias?, num_accepted_tokens?, num_computed_tokens?, "
      "block_idx_first_scheduled_token?, block_idx_last_scheduled_token?, initial_state_idx?; "
      "activation_mode=0, pad_slot_id=-1, run_mode=0, max_query_len=-1, residual_connection=1, "
      "block_size=128, conv_mode=0) -> conv_states, x",
      {.in_place = {{0, 2}, {1, 0}}}));
}

}  // namespace npumesh
