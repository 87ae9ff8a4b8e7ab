// RecurrentGatedDeltaRule and ChunkGatedDeltaRule: linear attention with a state for each head of
// values.
//
//   S = S * exp(g) * exp(gk);  S += beta (v - S k) k^T;  out = S (q * scale_value)
//
// S is [Dv, Dk]; head h of values reads head h / (Nv / Nk) of queries and keys. States stay in
// float32 from token to token of a sequence and are rounded where they are written.
//
// RecurrentGatedDeltaRule reads the state of a sequence at the index of its first token, or of the
// last token that was accepted, and writes the state after every token at that token's index.
#include <algorithm>
#include <cmath>
#include <string>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/row_io.h"

namespace npumesh {
namespace {

struct DeltaPlan : Planned {
  int64_t tokens = 0, sequences = 0;
  int64_t heads = 0, width = 0;  // of values
  int64_t key_heads = 0, key_width = 0;
  int64_t states = 0, state_elements = 0;
  DataType dtype = DataType::kUndefined, state_dtype = DataType::kUndefined;
  bool recurrent = false;
  float scale = 1;
  Integers lengths, indices, accepted;
  Factors beta, gate, key_gate;
  Workspace<float> state, query, key, gates, value;
};

// query and key are [T, Nk, Dk], value [T, Nv, Dv], the states [.., Nv, Dv, Dk].
void ReadShapes(const OpContext& op, std::string_view states, Check& check, DeltaPlan& plan) {
  check.Rank("query", kFloats, 3);
  check.Rank("value", kFloats, 3);
  check.Rank(states, kFloats, 4);
  check.SameTensor("key", "query");
  check.SameType("value", "query");
  if (!check.ok()) return;
  const Shape &query = op.in("query").shape, &value = op.in("value").shape;
  plan.dtype = op.in("query").dtype;
  plan.state_dtype = op.in(states).dtype;
  plan.tokens = query[0];
  plan.key_heads = query[1], plan.key_width = query[2];
  plan.heads = value[1], plan.width = value[2];
  plan.states = op.in(states).shape[0];
  plan.state_elements = plan.width * plan.key_width;
  check.Shape("value", {plan.tokens, plan.heads, plan.width});
  check.Shape(states, {plan.states, plan.heads, plan.width, plan.key_width});
  check.That(plan.key_heads > 0 && plan.heads % plan.key_heads == 0,
             "value has {} heads and key {}, expected a multiple", plan.heads, plan.key_heads);
}

template <bool kRecurrent>
DeltaPlan PlanDelta(const OpContext& op, Check& check) {
  constexpr std::string_view kStates = kRecurrent ? "state" : "initial_state";
  DeltaPlan plan;
  ReadShapes(op, kStates, check, plan);
  plan.recurrent = kRecurrent;
  plan.scale = op.attr_float("scale_value");
  plan.lengths = Integers::OfSlot(op, op.slot("actual_seq_lengths"));
  plan.sequences = plan.lengths.count();
  check.TypeAndShape("actual_seq_lengths", DataType::kInt32, {plan.sequences});
  for (const std::string_view gate : {"beta", "g"}) check.Shape(gate, {plan.tokens, plan.heads});
  plan.beta = check.Take(Factors::Of(op, "beta"));
  plan.gate = check.Take(Factors::Of(op, "g"));
  if constexpr (kRecurrent) {
    check.Shape("gk", {plan.tokens, plan.heads, plan.key_width});
    check.TypeAndShape("ssm_state_indices", DataType::kInt32, {plan.tokens});
    check.TypeAndShape("num_accepted_tokens", DataType::kInt32, {plan.sequences});
    plan.key_gate = check.Take(Factors::Of(op, "gk"));
    plan.indices = Integers::OfSlot(op, op.slot("ssm_state_indices"));
    plan.accepted = Integers::Of(op, "num_accepted_tokens");
  } else {
    check.That(plan.states == plan.sequences, "initial_state has {} states for {} sequences",
               plan.states, plan.sequences);
  }
  plan.outputs = {op.in("value"), op.in(kStates)};
  plan.state = plan.scratch.Floats(plan.state_elements);
  plan.scratch.Take(plan.key_width, {&plan.query, &plan.key, &plan.gates});
  plan.value = plan.scratch.Floats(plan.width);
  return plan;
}

Result<int64_t> IndexOf(const DeltaPlan& plan, const KernelArgs& args, int64_t token) {
  const int64_t index = plan.indices.At(args, token);
  if (index >= 0 && index < plan.states) return index;
  return Error(Code::kInvalidArgument,
               "{}: \"ssm_state_indices\" names state {} for token {}, there are {}", plan.who,
               index, token, plan.states);
}

// The state that a sequence starts from.
Result<int64_t> StartOf(const DeltaPlan& plan, const KernelArgs& args, int64_t sequence,
                        int64_t begin, int64_t end) {
  if (!plan.recurrent) return sequence;
  const int64_t accepted = plan.accepted.given() ? plan.accepted.At(args, sequence) : 1;
  if (accepted < 1 || begin + accepted > end) {
    return Error(Code::kInvalidArgument,
                 "{}: \"num_accepted_tokens\" is {} for sequence {} of {} tokens", plan.who,
                 accepted, sequence, end - begin);
  }
  return IndexOf(plan, args, begin + accepted - 1);
}

void LoadGates(const DeltaPlan& plan, const KernelArgs& args, int64_t at, float* gates) {
  const int64_t dk = plan.key_width;
  const float gate = std::exp(plan.gate.For(args, at, 0.0f));
  std::fill_n(gates, dk, 0.0f);
  if (plan.key_gate.given()) plan.key_gate.Load(args, at * dk, dk, gates);
  for (int64_t c = 0; c < dk; ++c) gates[c] = gate * std::exp(gates[c]);
}

// One token of one head.
void Step(const DeltaPlan& plan, const KernelArgs& args, int64_t t, int64_t h) {
  const int64_t dk = plan.key_width, dv = plan.width;
  float *state = plan.state(args), *key = plan.key(args), *query = plan.query(args);
  float *gates = plan.gates(args), *value = plan.value(args);
  const int64_t key_head = h / (plan.heads / plan.key_heads);
  const int64_t row = (t * plan.key_heads + key_head) * dk;
  const int64_t at = t * plan.heads + h;
  LoadNumbers(plan.dtype, args.in[0], row, dk, query);
  LoadNumbers(plan.dtype, args.in[1], row, dk, key);
  LoadNumbers(plan.dtype, args.in[2], at * dv, dv, value);
  LoadGates(plan, args, at, gates);
  const float beta = plan.beta.At(args, at), scale = plan.scale;
  for (int64_t r = 0; r < dv; ++r) {
    float* line = state + r * dk;
    for (int64_t c = 0; c < dk; ++c) line[c] *= gates[c];
    const float change = (value[r] - static_cast<float>(SumOfProducts(line, key, dk))) * beta;
    double out = 0;
    for (int64_t c = 0; c < dk; ++c) {
      line[c] += change * key[c];
      out += static_cast<double>(line[c] * (query[c] * scale));
    }
    value[r] = static_cast<float>(out);
  }
  StoreRow(plan.dtype, value, args.out[0], at * dv, dv);
}

// Without tokens the final state is the one that the sequence starts from.
Status RunSequence(const DeltaPlan& plan, const KernelArgs& args, int64_t sequence, int64_t begin,
                   int64_t end) {
  if (plan.recurrent && begin == end) return Status();
  NPUMESH_ASSIGN_OR_RETURN(const int64_t start, StartOf(plan, args, sequence, begin, end));
  for (int64_t t = begin; plan.recurrent && t < end; ++t) {
    NPUMESH_RETURN_IF_ERROR(IndexOf(plan, args, t).status());
  }
  const void* from = plan.recurrent ? args.out[1] : args.in[4];
  float* state = plan.state(args);
  for (int64_t h = 0; h < plan.heads; ++h) {
    const int64_t count = plan.state_elements;
    const auto store = [&](int64_t to) {
      StoreRow(plan.state_dtype, state, args.out[1], (to * plan.heads + h) * count, count);
    };
    LoadNumbers(plan.state_dtype, from, (start * plan.heads + h) * count, count, state);
    for (int64_t t = begin; t < end; ++t) {
      Step(plan, args, t, h);
      if (plan.recurrent) store(plan.indices.At(args, t));
    }
    if (!plan.recurrent) store(sequence);
  }
  return Status();
}

// Tokens after the last sequence give zeros.
Status RunDelta(const DeltaPlan& plan, const KernelArgs& args) {
  int64_t begin = 0;
  for (int64_t s = 0; s < plan.sequences; ++s) {
    const int64_t end = begin + plan.lengths.At(args, s);
    if (end < begin || end > plan.tokens) {
      return Error(Code::kInvalidArgument,
                   "{}: sequence {} would be tokens {} to {} of {} (actual_seq_lengths)", plan.who,
                   s, begin, end, plan.tokens);
    }
    NPUMESH_RETURN_IF_ERROR(RunSequence(plan, args, s, begin, end));
    begin = end;
  }
  const int64_t row = plan.heads * plan.width * BitsOf(plan.dtype) / 8;
  std::fill_n(static_cast<std::byte*>(args.out[0]) + begin * row, (plan.tokens - begin) * row,
              std::byte{0});
  return Status();
}

}  // namespace

void RegisterGatedDeltaOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  registry.Add(Define<PlanDelta<true>, RunDelta>(
      "RecurrentGatedDeltaRule(query, key, value, beta, state, actual_seq_lengths, "
      "ssm_state_indices, g?, gk?, num_accepted_tokens?; scale_value=1.0) -> out, state",
      {.in_place = {{1, 4}}}));
  registry.Add(Define<PlanDelta<false>, RunDelta>(
      "ChunkGatedDeltaRule(query, key, value, beta, initial_state, actual_seq_lengths, g?; "
      "scale_value=1.0) -> out, final_state"));
}

}  // namespace npumesh
