// RecurrentGatedDeltaRule and ChunkGatedDeltaRule: linear attention with a state for each head of
// values. Ops reference 5.19.
//
//   S = S * exp(g) * exp(gk);  S += beta (v - S k) k^T;  out = S (q * scale_value)
//
// S is [Dv, Dk]; head h of values reads head h / (Nv / Nk) of queries and keys. States stay in
// float32 from token to token of a sequence and are rounded where they are written.
//
// RecurrentGatedDeltaRule reads the state of a sequence at the index of its first token, or of the
// last token that was accepted, and writes the state behind every token at that token's index.
#include <algorithm>
#include <cmath>
#include <string>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"

namespace npumesh {
namespace {

struct DeltaPlan {
  int64_t tokens = 0;
  int64_t key_heads = 0;
  int64_t heads = 0;  // of values
  int64_t key_width = 0;
  int64_t width = 0;  // of values
  int64_t states = 0;
  int64_t sequences = 0;
  DataType dtype = DataType::kUndefined;
  DataType state_dtype = DataType::kUndefined;
  bool recurrent = false;
  int lengths = -1;  // slots
  int indices = -1;
  int accepted = -1;
  Factors beta;
  Factors gate;
  Factors key_gate;

  int64_t state_elements() const { return width * key_width; }
};

Status ExpectShape(const OpContext& op, std::string_view port, const Shape& shape) {
  if (!op.has(port) || op.in(port).shape == shape) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected {}", op.Who(), port,
               op.in(port).ToString(), shape.ToString());
}

Status ReadShapes(const OpContext& op, DeltaPlan& plan) {
  const TensorType &q = op.in("query"), &k = op.in("key"), &v = op.in("value");
  const std::string_view name = plan.recurrent ? "state" : "initial_state";
  const TensorType& state = op.in(name);
  bool fits = IsRowType(q.dtype) && k == q && v.dtype == q.dtype && q.shape.rank() == 3 &&
              v.shape.rank() == 3 && v.shape[0] == q.shape[0] && state.shape.rank() == 4 &&
              IsRowType(state.dtype);
  if (fits) {
    plan.tokens = q.shape[0];
    plan.key_heads = q.shape[1];
    plan.key_width = q.shape[2];
    plan.heads = v.shape[1];
    plan.width = v.shape[2];
    plan.states = state.shape[0];
    fits = plan.key_heads > 0 && plan.heads % plan.key_heads == 0 &&
           state.shape == Shape({plan.states, plan.heads, plan.width, plan.key_width});
  }
  if (fits) {
    plan.dtype = q.dtype;
    plan.state_dtype = state.dtype;
    return Status();
  }
  return Error(Code::kInvalidArgument,
               "{}: query is {}, key {}, value {} and {} {}; expected query and key [T,Nk,Dk], "
               "value [T,Nv,Dv] and states [..,Nv,Dv,Dk], Nv a multiple of Nk",
               op.Who(), q.ToString(), k.ToString(), v.ToString(), name, state.ToString());
}

Status ExpectInt32(const OpContext& op, std::string_view port, int64_t count, int& slot) {
  slot = SlotIfFed(op, port);
  if (slot < 0 || op.in(slot) == TensorType{DataType::kInt32, {count}}) return Status();
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected int32[{}]", op.Who(), port,
               op.in(slot).ToString(), count);
}

Result<DeltaPlan> PlanDelta(const OpContext& op) {
  DeltaPlan plan;
  plan.recurrent = op.schema().type == "RecurrentGatedDeltaRule";
  NPUMESH_RETURN_IF_ERROR(ReadShapes(op, plan));
  const TensorType& lengths = op.in("actual_seq_lengths");
  plan.sequences = lengths.shape.elements();
  NPUMESH_RETURN_IF_ERROR(ExpectInt32(op, "actual_seq_lengths", plan.sequences, plan.lengths));
  NPUMESH_RETURN_IF_ERROR(ExpectShape(op, "beta", {plan.tokens, plan.heads}));
  NPUMESH_RETURN_IF_ERROR(ExpectShape(op, "g", {plan.tokens, plan.heads}));
  NPUMESH_ASSIGN_OR_RETURN(plan.beta, Factors::Of(op, "beta"));
  NPUMESH_ASSIGN_OR_RETURN(plan.gate, Factors::Of(op, "g"));
  if (plan.recurrent) {
    NPUMESH_RETURN_IF_ERROR(ExpectShape(op, "gk", {plan.tokens, plan.heads, plan.key_width}));
    NPUMESH_ASSIGN_OR_RETURN(plan.key_gate, Factors::Of(op, "gk"));
    NPUMESH_RETURN_IF_ERROR(ExpectInt32(op, "ssm_state_indices", plan.tokens, plan.indices));
    NPUMESH_RETURN_IF_ERROR(ExpectInt32(op, "num_accepted_tokens", plan.sequences, plan.accepted));
    return plan;
  }
  if (plan.states == plan.sequences) return plan;
  return Error(Code::kInvalidArgument, "{}: initial_state has {} states for {} sequences", op.Who(),
               plan.states, plan.sequences);
}

Status InferDelta(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DeltaPlan plan, PlanDelta(op));
  const TensorType state = op.in(plan.recurrent ? "state" : "initial_state");
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.dtype, op.in("value").shape));
  return SetOutput(op, 1, state.dtype, state.shape);
}

class DeltaKernel final : public Kernel {
 public:
  DeltaKernel(const OpContext& op, DeltaPlan plan)
      : plan_(std::move(plan)), who_(op.Who()), scale_(op.attr_float("scale_value")) {}

  // A state, a key, a query, gates and a value.
  uint64_t scratch_bytes() const override {
    const int64_t floats = plan_.state_elements() + 3 * plan_.key_width + plan_.width;
    return static_cast<uint64_t>(floats) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    int64_t begin = 0;
    for (int64_t s = 0; s < plan_.sequences; ++s) {
      const int64_t length = Integer(args, plan_.lengths, s);
      if (length < 0 || begin + length > plan_.tokens) {
        return Error(Code::kInvalidArgument,
                     "{}: sequence {} would be tokens {} to {} of {} (actual_seq_lengths)", who_, s,
                     begin, begin + length, plan_.tokens);
      }
      if (length > 0) NPUMESH_RETURN_IF_ERROR(RunSequence(args, s, begin, begin + length));
      if (length == 0 && !plan_.recurrent) CopyState(args, s);
      begin += length;
    }
    ClearBehind(args, begin);
    return Status();
  }

 private:
  static int64_t Integer(const KernelArgs& args, int slot, int64_t i) {
    return static_cast<const int32_t*>(args.in[slot])[i];
  }

  int64_t StateOf(int64_t state, int64_t head) const {
    return (state * plan_.heads + head) * plan_.state_elements();
  }

  Result<int64_t> IndexOf(const KernelArgs& args, int64_t token) const {
    const int64_t index = Integer(args, plan_.indices, token);
    if (index >= 0 && index < plan_.states) return index;
    return Error(Code::kInvalidArgument,
                 "{}: \"ssm_state_indices\" names state {} for token {}, there are {}", who_, index,
                 token, plan_.states);
  }

  // The state that a sequence starts from.
  Result<int64_t> StartOf(const KernelArgs& args, int64_t sequence, int64_t begin,
                          int64_t end) const {
    if (!plan_.recurrent) return sequence;
    const int64_t accepted = plan_.accepted < 0 ? 1 : Integer(args, plan_.accepted, sequence);
    if (accepted < 1 || begin + accepted > end) {
      return Error(Code::kInvalidArgument,
                   "{}: \"num_accepted_tokens\" is {} for sequence {} of {} tokens", who_, accepted,
                   sequence, end - begin);
    }
    return IndexOf(args, begin + accepted - 1);
  }

  Status RunSequence(const KernelArgs& args, int64_t sequence, int64_t begin, int64_t end) const {
    NPUMESH_ASSIGN_OR_RETURN(const int64_t start, StartOf(args, sequence, begin, end));
    for (int64_t t = begin; plan_.recurrent && t < end; ++t) {
      NPUMESH_RETURN_IF_ERROR(IndexOf(args, t).status());
    }
    auto* state = static_cast<float*>(args.scratch);
    const void* from = plan_.recurrent ? args.out[1] : args.in[4];
    const int64_t elements = plan_.state_elements();
    for (int64_t h = 0; h < plan_.heads; ++h) {
      LoadNumbers(plan_.state_dtype, from, StateOf(start, h), elements, state);
      for (int64_t t = begin; t < end; ++t) {
        Step(args, t, h, state);
        if (!plan_.recurrent && t + 1 < end) continue;
        const int64_t to = plan_.recurrent ? Integer(args, plan_.indices, t) : sequence;
        StoreRow(plan_.state_dtype, state, args.out[1], StateOf(to, h), elements);
      }
    }
    return Status();
  }

  // One token of one head.
  void Step(const KernelArgs& args, int64_t t, int64_t h, float* state) const {
    const int64_t dk = plan_.key_width, dv = plan_.width;
    float* key = state + plan_.state_elements();
    float *query = key + dk, *gates = query + dk, *value = gates + dk;
    const int64_t key_head = h / (plan_.heads / plan_.key_heads);
    const int64_t row = (t * plan_.key_heads + key_head) * dk;
    const int64_t at = t * plan_.heads + h;
    LoadNumbers(plan_.dtype, args.in[0], row, dk, query);
    LoadNumbers(plan_.dtype, args.in[1], row, dk, key);
    LoadNumbers(plan_.dtype, args.in[2], at * dv, dv, value);
    LoadGates(args, at, gates);
    const float beta = plan_.beta.At(args, at);
    for (int64_t r = 0; r < dv; ++r) {
      float* line = state + r * dk;
      for (int64_t c = 0; c < dk; ++c) line[c] *= gates[c];
      double seen = 0;
      for (int64_t c = 0; c < dk; ++c) seen += static_cast<double>(line[c] * key[c]);
      const float change = (value[r] - static_cast<float>(seen)) * beta;
      double out = 0;
      for (int64_t c = 0; c < dk; ++c) {
        line[c] += change * key[c];
        out += static_cast<double>(line[c] * (query[c] * scale_));
      }
      value[r] = static_cast<float>(out);
    }
    StoreRow(plan_.dtype, value, args.out[0], at * dv, dv);
  }

  void LoadGates(const KernelArgs& args, int64_t at, float* gates) const {
    const int64_t dk = plan_.key_width;
    const float gate = plan_.gate.given() ? std::exp(plan_.gate.At(args, at)) : 1.0f;
    std::fill_n(gates, dk, 0.0f);
    if (plan_.key_gate.given()) plan_.key_gate.Load(args, at * dk, dk, gates);
    for (int64_t c = 0; c < dk; ++c) gates[c] = gate * std::exp(gates[c]);
  }

  // The state of an empty sequence.
  void CopyState(const KernelArgs& args, int64_t sequence) const {
    auto* state = static_cast<float*>(args.scratch);
    for (int64_t h = 0; h < plan_.heads; ++h) {
      const int64_t at = StateOf(sequence, h);
      LoadNumbers(plan_.state_dtype, args.in[4], at, plan_.state_elements(), state);
      StoreRow(plan_.state_dtype, state, args.out[1], at, plan_.state_elements());
    }
  }

  // Tokens behind the last sequence give zeros.
  void ClearBehind(const KernelArgs& args, int64_t begin) const {
    const int64_t row = plan_.heads * plan_.width * BitsOf(plan_.dtype) / 8;
    std::fill_n(static_cast<std::byte*>(args.out[0]) + begin * row,
                static_cast<size_t>((plan_.tokens - begin) * row), std::byte{0});
  }

  DeltaPlan plan_;
  std::string who_;
  float scale_;
};

Result<std::unique_ptr<Kernel>> MakeDelta(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(DeltaPlan plan, PlanDelta(op));
  return std::unique_ptr<Kernel>(std::make_unique<DeltaKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterGatedDeltaOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  const AttrSpec scale = {"scale_value", AttrValue::Float(1.0f)};
  registry.Add({.schema = {"RecurrentGatedDeltaRule",
                           {{"query"},
                            {"key"},
                            {"value"},
                            {"beta"},
                            {"state"},
                            {"actual_seq_lengths"},
                            {"ssm_state_indices"},
                            optional("g"),
                            optional("gk"),
                            optional("num_accepted_tokens")},
                           {{"out"}, {"state"}},
                           {scale}},
                .infer = InferDelta,
                .make_kernel = MakeDelta,
                .in_place = {{1, 4}}});
  registry.Add({.schema = {"ChunkGatedDeltaRule",
                           {{"query"},
                            {"key"},
                            {"value"},
                            {"beta"},
                            {"initial_state"},
                            {"actual_seq_lengths"},
                            optional("g")},
                           {{"out"}, {"final_state"}},
                           {scale}},
                .infer = InferDelta,
                .make_kernel = MakeDelta});
}

}  // namespace npumesh
