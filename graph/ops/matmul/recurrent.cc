// DynamicRNN and DynamicGRUV2: all steps of an LSTM and of a GRU, over sequences of any length.
//
//   DynamicRNN:   g = x[t] wx + b + h wh,  w = [wx; wh]
//                 c = sigmoid(f + forget_bias) c + sigmoid(i) tanh(j),  h = sigmoid(o) tanh(c)
//   DynamicGRUV2: z = sigmoid(xz + hz),  r = sigmoid(xr + hr)
//                 n = tanh(xh + r (h wh + bh)), or with reset_after false tanh(xh + (r h) wh + bh)
//                 h = (1 - z) n + z h
//
// The products with x of all steps are one product. Rows of the batch that have ended (seq_length)
// keep their state and leave zeros. REDIRECTIONAL goes from the last step to the first; its outputs
// stand where their x stands.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/lanes/lane_table.h"
#include "graph/ops/toolbox/product/panel_product.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// A weight [k, n] that may be constant: rows [begin, begin + k) and columns [column, column + n) of
// an input whose rows have `width` elements.
struct StepWeight {
  int slot = -1;
  int64_t begin = 0, column = 0;
  int64_t k = 0, n = 0, width = 0;
  std::shared_ptr<const Panels> packed;  // null: not constant

  // Packs a constant weight.
  void Prepare(const OpContext& op) {
    const Tensor* const value = op.value(slot);
    if (value == nullptr || k == 0 || n == 0) return;
    const std::string form = fmt::format("recurrent {} {} {} {}", begin, column, k, n);
    packed = PackOnce(op.packed(), *value, form, [&] {
      Tensor part = Tensor::Allocate({DataType::kFloat, {k, n}});
      constexpr int64_t kBytes = sizeof(float);
      const std::byte* const from = value->data() + (begin * width + column) * kBytes;
      for (int64_t row = 0; row < k; ++row) {
        std::memcpy(part.mutable_data() + row * n * kBytes, from + row * width * kBytes,
                    static_cast<size_t>(n * kBytes));
      }
      return PackPanels(part, k, n, false, nullptr);
    });
  }
  FloatMatrix Stored(const KernelArgs& args) const {
    return {static_cast<const float*>(args.in[slot]) + begin * width + column, width, false};
  }
};

// What both operators have: x [steps, batch, inner], states [batch, hidden].
struct StepsPlan : Planned {
  int64_t steps = 0, batch = 0, inner = 0, hidden = 0;
  int64_t gates = 0;  // hidden times the number of gates
  bool backwards = false;
  int h_slot = -1, lengths_slot = -1;
  int threads = 1, step_threads = 1;
  StepWeight of_x, of_h;
  PanelProduct all_steps, one_step;
  Workspace<float> sums, room, zeros;

  int64_t states() const { return batch * hidden; }
};

// A row of numbers through a function of the lanes, in place.
void Through(LoopOp op, float* row, int64_t count) {
  static const LaneFn sigmoid = FindLanes(LoopOp::kSigmoid, LoopType::kFloat);
  static const LaneFn tanh = FindLanes(LoopOp::kTanh, LoopType::kFloat);
  const void* const in[] = {row};
  (op == LoopOp::kTanh ? tanh : sigmoid)(in, row, static_cast<size_t>(count), {});
}

// Reads what both have in common. `weight` has rows of `gate_count` times hidden elements.
void ReadSteps(const OpContext& op, Check& check, std::string_view weight, int64_t gate_count,
               StepsPlan& plan) {
  check.Rank("x", DataType::kFloat, 3);
  const auto [height, width] = check.Matrix(weight, DataType::kFloat);
  plan.backwards =
      check.Meaning<bool>("direction", {{"UNIDIRECTIONAL", false}, {"REDIRECTIONAL", true}});
  check.OneOf("activation", {"tanh"});
  if (!check.ok()) return;
  const Shape& x = op.in("x").shape;
  plan.steps = x[0], plan.batch = x[1], plan.inner = x[2];
  plan.gates = width, plan.hidden = width / gate_count;
  check.That(width % gate_count == 0 && width > 0, "{} is {}, expected rows of {} gates", weight,
             op.in(weight), gate_count);
  check.TypeAndShape("seq_length", DataType::kInt32, {plan.batch});
  plan.lengths_slot = SlotIfFed(op, "seq_length");
}

// A state before the first step: [batch, hidden], or with one dimension of 1 before these.
int StateSlot(const OpContext& op, Check& check, std::string_view port, const StepsPlan& plan) {
  const int slot = SlotIfFed(op, port);
  if (slot < 0 || !check.ok()) return -1;
  check.Type(port, DataType::kFloat);
  const Shape plain({plan.batch, plan.hidden}), deep({1, plan.batch, plan.hidden});
  check.That(op.in(slot).shape == plain || op.in(slot).shape == deep, "{} is {}, expected {} or {}",
             port, op.in(slot), plain, deep);
  return slot;
}

void TakeRoom(const OpContext& op, StepsPlan& plan) {
  plan.threads = op.threads();
  const auto work = static_cast<double>(plan.batch * plan.hidden) * static_cast<double>(plan.gates);
  plan.step_threads = WorthThreads(work, op.threads());
  const int64_t rows = plan.steps * plan.batch;
  int64_t room = 0;
  if (rows > 0 && plan.inner > 0) {
    plan.all_steps = PanelProduct(rows, plan.gates, plan.inner);
    room = plan.threads * plan.all_steps.room_floats();
  }
  if (plan.batch > 0) {
    plan.one_step = PanelProduct(plan.batch, plan.gates, plan.hidden);
    room = std::max(room, plan.step_threads * plan.one_step.room_floats());
  }
  plan.room = plan.scratch.Floats(room);
  plan.sums = plan.scratch.Floats(rows * plan.gates);
  plan.zeros = plan.scratch.Floats(plan.states());
}

// y = x w, or y += x w.
void Multiply(const PanelProduct& product, const KernelArgs& args, FloatMatrix x,
              const StepWeight& weight, const float* bias, bool adds, float* y, int64_t y_stride,
              int threads, float* room) {
  PanelProduct::Operands operands;
  operands.x = x;
  operands.packed = weight.packed.get();
  if (weight.packed == nullptr) operands.w = weight.Stored(args);
  operands.bias = bias;
  operands.y = y;
  operands.y_stride = y_stride;
  operands.adds = adds;
  product.Run(operands, threads, room);
}

// sums = x of all steps times its weight, plus the bias, which may be null.
void MultiplyAllSteps(const StepsPlan& plan, const KernelArgs& args, const float* bias) {
  float* const sums = plan.sums(args);
  const int64_t rows = plan.steps * plan.batch;
  if (plan.inner > 0) {
    const FloatMatrix x{static_cast<const float*>(args.in[0]), plan.inner, false};
    Multiply(plan.all_steps, args, x, plan.of_x, bias, false, sums, plan.gates, plan.threads,
             plan.room(args));
    return;
  }
  for (int64_t row = 0; row < rows; ++row) {
    float* const to = sums + row * plan.gates;
    bias == nullptr ? std::fill_n(to, plan.gates, 0.0F) : std::copy_n(bias, plan.gates, to);
  }
}

// Whether row `n` of the batch has ended at step `t`.
bool HasEnded(const StepsPlan& plan, const KernelArgs& args, int64_t t, int64_t n) {
  return plan.lengths_slot >= 0 && t >= static_cast<const int32_t*>(args.in[plan.lengths_slot])[n];
}

const float* StateOr(const KernelArgs& args, int slot, const float* zeros) {
  return slot >= 0 ? static_cast<const float*>(args.in[slot]) : zeros;
}

// Calls step(t, before) for each step in its order; `before` is the step whose state it takes, -1
// for the first.
template <typename Step>
void EachStep(const StepsPlan& plan, const Step& step) {
  for (int64_t i = 0, before = -1; i < plan.steps; ++i) {
    const int64_t t = plan.backwards ? plan.steps - 1 - i : i;
    step(t, before);
    before = t;
  }
}

// ---- DynamicRNN ----

struct LstmPlan : StepsPlan {
  std::array<int64_t, 4> place = {};  // of i, j, f, o in a row of sums
  int c_slot = -1;
  float forget_bias = 0;
};

LstmPlan PlanLstm(const OpContext& op, Check& check) {
  LstmPlan plan;
  check.NotFed({"wci", "wcf", "wco", "mask"});
  check.OneOf("cell_type", {"LSTM"});
  ReadSteps(op, check, "w", 4, plan);
  const auto order = check.Meaning<std::array<int64_t, 4>>(
      "gate_order", {{"ijfo", {0, 1, 2, 3}}, {"ifjo", {0, 2, 1, 3}}});
  if (!check.ok()) return plan;
  for (size_t gate = 0; gate < 4; ++gate) plan.place[gate] = order[gate] * plan.hidden;
  check.Shape("w", {plan.inner + plan.hidden, plan.gates});
  check.TypeAndShape("b", DataType::kFloat, {plan.gates});
  plan.h_slot = StateSlot(op, check, "init_h", plan);
  plan.c_slot = StateSlot(op, check, "init_c", plan);
  plan.forget_bias = op.attr_float("forget_bias");
  if (!check.ok()) return plan;
  plan.of_x = {op.slot("w"), 0, 0, plan.inner, plan.gates, plan.gates, nullptr};
  plan.of_h = {op.slot("w"), plan.inner, 0, plan.hidden, plan.gates, plan.gates, nullptr};
  plan.outputs.assign(8, {DataType::kFloat, {plan.steps, plan.batch, plan.hidden}});
  TakeRoom(op, plan);
  return plan;
}

Status PrepareLstm(const OpContext& op, LstmPlan* plan) {
  plan->of_x.Prepare(op);
  plan->of_h.Prepare(op);
  if (plan->of_h.packed != nullptr && (plan->of_x.packed != nullptr || plan->inner == 0)) {
    plan->taken = {op.slot("w")};
  }
  return Status();
}

Status RunLstm(const LstmPlan& plan, const KernelArgs& args) {
  if (plan.outputs[0].shape.elements() == 0) return Status();
  const int64_t states = plan.states(), hidden = plan.hidden;
  float* const zeros = plan.zeros(args);
  std::fill_n(zeros, states, 0.0F);
  MultiplyAllSteps(plan, args, static_cast<const float*>(args.in[2]));
  std::array<float*, 8> out = {};
  for (size_t port = 0; port < out.size(); ++port) out[port] = static_cast<float*>(args.out[port]);
  const auto& [y, hs, cs, is, js, fs, os, tanhs] = out;
  EachStep(plan, [&](int64_t t, int64_t before) {
    const float* h = before < 0 ? StateOr(args, plan.h_slot, zeros) : hs + before * states;
    const float* c = before < 0 ? StateOr(args, plan.c_slot, zeros) : cs + before * states;
    float* const sums = plan.sums(args) + t * plan.batch * plan.gates;
    Multiply(plan.one_step, args, {h, hidden, false}, plan.of_h, nullptr, true, sums, plan.gates,
             plan.step_threads, plan.room(args));
    for (int64_t n = 0; n < plan.batch; ++n) {
      const int64_t at = t * states + n * hidden, row = n * hidden;
      const float* const sum = sums + n * plan.gates;
      float* const gates[] = {is + at, js + at, fs + at, os + at};
      for (size_t gate = 0; gate < 4; ++gate) {
        std::copy_n(sum + plan.place[gate], hidden, gates[gate]);
      }
      if (plan.forget_bias != 0) ShiftRow(fs + at, plan.forget_bias, hidden, fs + at);
      Through(LoopOp::kSigmoid, is + at, hidden);
      Through(LoopOp::kTanh, js + at, hidden);
      Through(LoopOp::kSigmoid, fs + at, hidden);
      Through(LoopOp::kSigmoid, os + at, hidden);
      const bool ended = HasEnded(plan, args, t, n);
      for (int64_t e = 0; e < hidden; ++e) {
        const float kept = fs[at + e] * c[row + e], fresh = is[at + e] * js[at + e];
        cs[at + e] = ended ? c[row + e] : kept + fresh;
      }
      std::copy_n(cs + at, hidden, tanhs + at);
      Through(LoopOp::kTanh, tanhs + at, hidden);
      for (int64_t e = 0; e < hidden; ++e) {
        hs[at + e] = ended ? h[row + e] : os[at + e] * tanhs[at + e];
        y[at + e] = ended ? 0.0F : hs[at + e];
      }
    }
  });
  return Status();
}

// ---- DynamicGRUV2 ----

struct GruPlan : StepsPlan {
  int64_t z = 0, r = 0;  // places in a row of sums; the new state is the last
  int x_bias = -1, h_bias = -1;
  bool reset_after = true;
  StepWeight of_reset;  // of the new state alone
  PanelProduct new_state;
  Workspace<float> products, reset;

  int64_t fresh() const { return 2 * hidden; }
};

GruPlan PlanGru(const OpContext& op, Check& check) {
  GruPlan plan;
  ReadSteps(op, check, "weight_hidden", 3, plan);
  const bool update_first = check.Meaning<bool>("gate_order", {{"zrh", true}, {"rzh", false}});
  if (!check.ok()) return plan;
  plan.z = update_first ? 0 : plan.hidden;
  plan.r = update_first ? plan.hidden : 0;
  check.TypeAndShape("weight_input", DataType::kFloat, {plan.inner, plan.gates});
  check.Shape("weight_hidden", {plan.hidden, plan.gates});
  for (const std::string_view bias : {"bias_input", "bias_hidden"}) {
    check.TypeAndShape(bias, DataType::kFloat, {plan.gates});
  }
  plan.x_bias = SlotIfFed(op, "bias_input");
  plan.h_bias = SlotIfFed(op, "bias_hidden");
  plan.h_slot = StateSlot(op, check, "init_h", plan);
  plan.reset_after = op.attr_bool("reset_after");
  if (!check.ok()) return plan;
  const int hidden_slot = op.slot("weight_hidden");
  const int64_t products = plan.reset_after ? plan.gates : plan.fresh();
  plan.of_x = {op.slot("weight_input"), 0, 0, plan.inner, plan.gates, plan.gates, nullptr};
  plan.of_h = {hidden_slot, 0, 0, plan.hidden, products, plan.gates, nullptr};
  plan.of_reset = {hidden_slot, 0, plan.fresh(), plan.hidden, plan.hidden, plan.gates, nullptr};
  plan.outputs.assign(6, {DataType::kFloat, {plan.steps, plan.batch, plan.hidden}});
  TakeRoom(op, plan);
  if (plan.batch > 0) {
    plan.one_step = PanelProduct(plan.batch, products, plan.hidden);
    plan.new_state = PanelProduct(plan.batch, plan.hidden, plan.hidden);
  }
  plan.products = plan.scratch.Floats(plan.batch * plan.gates);
  plan.reset = plan.scratch.Floats(plan.states());
  return plan;
}

Status PrepareGru(const OpContext& op, GruPlan* plan) {
  plan->of_x.Prepare(op);
  plan->of_h.Prepare(op);
  if (!plan->reset_after) plan->of_reset.Prepare(op);
  if (plan->of_x.packed != nullptr) plan->taken.push_back(op.slot("weight_input"));
  if (plan->of_h.packed != nullptr) plan->taken.push_back(op.slot("weight_hidden"));
  return Status();
}

const float* BiasOf(const KernelArgs& args, int slot) {
  return slot >= 0 ? static_cast<const float*>(args.in[slot]) : nullptr;
}

Status RunGru(const GruPlan& plan, const KernelArgs& args) {
  if (plan.outputs[0].shape.elements() == 0) return Status();
  const int64_t states = plan.states(), hidden = plan.hidden;
  float* const zeros = plan.zeros(args);
  std::fill_n(zeros, states, 0.0F);
  MultiplyAllSteps(plan, args, BiasOf(args, plan.x_bias));
  const float* const bias = BiasOf(args, plan.h_bias);
  std::array<float*, 6> out = {};
  for (size_t port = 0; port < out.size(); ++port) out[port] = static_cast<float*>(args.out[port]);
  const auto& [y, hs, updates, resets, news, recurred] = out;
  float *const products = plan.products(args), *const reset = plan.reset(args);
  EachStep(plan, [&](int64_t t, int64_t before) {
    const float* h = before < 0 ? StateOr(args, plan.h_slot, zeros) : hs + before * states;
    const float* const sums = plan.sums(args) + t * plan.batch * plan.gates;
    Multiply(plan.one_step, args, {h, hidden, false}, plan.of_h, bias, false, products, plan.gates,
             plan.step_threads, plan.room(args));
    const auto gate = [&](int64_t n, int64_t place, float* to) {
      AddRow(sums + n * plan.gates + place, products + n * plan.gates + place, hidden, to);
      Through(LoopOp::kSigmoid, to, hidden);
    };
    for (int64_t n = 0; n < plan.batch; ++n) {
      const int64_t at = t * states + n * hidden;
      gate(n, plan.z, updates + at);
      gate(n, plan.r, resets + at);
      MultiplyRow(resets + at, h + n * hidden, hidden, reset + n * hidden);
    }
    if (!plan.reset_after) {
      Multiply(plan.new_state, args, {reset, hidden, false}, plan.of_reset,
               bias == nullptr ? nullptr : bias + plan.fresh(), false, products + plan.fresh(),
               plan.gates, plan.step_threads, plan.room(args));
    }
    for (int64_t n = 0; n < plan.batch; ++n) {
      const int64_t at = t * states + n * hidden, row = n * hidden;
      std::copy_n(products + n * plan.gates + plan.fresh(), hidden, recurred + at);
      float* const fresh = news + at;
      if (plan.reset_after) {
        MultiplyRow(resets + at, recurred + at, hidden, fresh);
      } else {
        std::copy_n(recurred + at, hidden, fresh);
      }
      AddRow(sums + n * plan.gates + plan.fresh(), fresh, hidden, fresh);
      Through(LoopOp::kTanh, fresh, hidden);
      const bool ended = HasEnded(plan, args, t, n);
      for (int64_t e = 0; e < hidden; ++e) {
        const float taken = (1.0F - updates[at + e]) * fresh[e],
                    kept = updates[at + e] * h[row + e];
        hs[at + e] = ended ? h[row + e] : taken + kept;
        y[at + e] = ended ? 0.0F : hs[at + e];
      }
    }
  });
  return Status();
}

}  // namespace

void RegisterRecurrentOps(OpRegistry& registry) {
  registry.Usually(PrecisionClass::kWhite);
  registry.Add(Define<PlanLstm, RunLstm, PrepareLstm>(
      "DynamicRNN(x, w, b, seq_length?, init_h?, init_c?, wci?, wcf?, wco?, mask?; "
      "cell_type=\"LSTM\", direction=\"UNIDIRECTIONAL\", cell_depth==1, use_peephole==false, "
      "keep_prob==1.0, cell_clip==-1.0, num_proj==0, time_major==true, activation=\"tanh\", "
      "forget_bias=0.0, gate_order=\"ijfo\", is_training=true) -> y, output_h, output_c, i, j, f, "
      "o, tanhc"));
  registry.Add(Define<PlanGru, RunGru, PrepareGru>(
      "DynamicGRUV2(x, weight_input, weight_hidden, bias_input?, bias_hidden?, seq_length?, "
      "init_h?; direction=\"UNIDIRECTIONAL\", cell_depth==1, keep_prob==1.0, cell_clip==-1.0, "
      "num_proj==0, time_major==true, activation=\"tanh\", gate_order=\"zrh\", reset_after=true, "
      "is_training=true) -> y, output_h, update, reset, new, hidden_new"));
}

}  // namespace npumesh
