// RNN, GRU and LSTM. What DynamicRNN and DynamicGRUV2 can do becomes one of these for each
// direction. The rest is written down step by step where there are few, and is a loop otherwise.
#include <algorithm>

#include "graph/onnx/loop_writer.h"
#include "graph/onnx/op_table.h"

namespace npumesh {
namespace {

// ---- activations ----

// A function by its name in ONNX, with alpha and beta where it has them.
struct ActivationRule {
  std::string_view name;
  float alpha, beta;  // defaults
  Value (*apply)(Lowering&, Value, float, float);
};

Value ApplyAffine(Lowering& at, Value x, float alpha, float beta) {
  return at.Add(at.Mul(x, at.Like(alpha, x)), at.Like(beta, x));
}

const ActivationRule kActivations[] = {
    {"Sigmoid", 0, 0, [](Lowering& at, Value x, float, float) { return at.Unary("Sigmoid", x); }},
    {"Tanh", 0, 0, [](Lowering& at, Value x, float, float) { return at.Unary("Tanh", x); }},
    {"Relu", 0, 0, [](Lowering& at, Value x, float, float) { return at.Unary("Relu", x); }},
    {"Softsign", 0, 0, [](Lowering& at, Value x, float, float) { return at.Unary("Softsign", x); }},
    {"Softplus", 0, 0,
     [](Lowering& at, Value x, float, float) { return at.Unary("Log1p", at.Unary("Exp", x)); }},
    {"Affine", 1, 0, ApplyAffine},
    {"ScaledTanh", 1, 1,
     [](Lowering& at, Value x, float alpha, float beta) {
       return at.Mul(at.Like(alpha, x), at.Unary("Tanh", at.Mul(x, at.Like(beta, x))));
     }},
    {"LeakyRelu", 0.01F, 0,
     [](Lowering& at, Value x, float alpha, float) {
       return at.Op("LeakyRelu", {x}, {{"negative_slope", alpha}});
     }},
    {"ThresholdedRelu", 1, 0,
     [](Lowering& at, Value x, float alpha, float) {
       return at.Select(at.Binary("Greater", x, at.Like(alpha, x)), x, at.Like(0, x));
     }},
    {"HardSigmoid", 0.2F, 0.5F,
     [](Lowering& at, Value x, float alpha, float beta) {
       return at.Op("HardSigmoid", {x}, {{"alpha", alpha}, {"beta", beta}});
     }},
    {"Elu", 1, 0,
     [](Lowering& at, Value x, float alpha, float) {
       return at.Op("Elu", {x}, {{"alpha", alpha}});
     }},
};

// Names are compared without case, as files write them both ways.
bool SameWord(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x | 0x20) == (y | 0x20); });
}

using Activation = std::function<Value(Lowering&, Value)>;

// The activations of one direction; alphas and betas are given in the order of those that use them.
std::vector<Activation> ActivationsOf(Lowering& at, int direction,
                                      const std::vector<std::string>& defaults) {
  const OnnxAttribute* const named = at.node().Find("activations");
  const std::vector<std::string> names = named == nullptr ? defaults : named->strings;
  const std::vector<float> alphas = at.FloatList("activation_alpha"),
                           betas = at.FloatList("activation_beta");
  std::vector<Activation> made;
  for (size_t i = 0; i < defaults.size(); ++i) {
    const size_t place =
        (static_cast<size_t>(direction) * defaults.size() + i) % std::max<size_t>(names.size(), 1);
    const std::string& name = names.empty() ? defaults[i] : names[place];
    const auto* const rule = std::find_if(
        std::begin(kActivations), std::end(kActivations),
        [&](const ActivationRule& candidate) { return SameWord(candidate.name, name); });
    if (rule == std::end(kActivations)) {
      at.Refuse("has no activation \"{}\"", name);
      return {};
    }
    const float alpha = place < alphas.size() ? alphas[place] : rule->alpha;
    const float beta = place < betas.size() ? betas[place] : rule->beta;
    made.push_back(
        [rule, alpha, beta](Lowering& in, Value x) { return rule->apply(in, x, alpha, beta); });
  }
  return made;
}

// ---- what the three have in common ----

// Operands of one direction, the dimension of directions taken off.
struct Direction {
  bool reverse = false;
  Value w, r;                         // [gates * H, I], [gates * H, H]
  std::optional<Value> bias, r_bias;  // [gates * H]
  std::optional<Value> peephole;      // [3 * H]
  Value hidden, cell;                 // [N, H]
  std::vector<Activation> activations;
};

struct StateOf {
  Value hidden, cell;
};

// A step: the products of x with w (bias included) and the state before.
using Step = std::function<StateOf(Lowering&, const Direction&, Value xw, const StateOf&)>;

struct DirectionResult {
  Value y;  // [T, N, H]
  StateOf last;
};

// All steps of x [T, N, I] as one node of ours; lengths may be left out.
using AllSteps =
    std::function<DirectionResult(Lowering&, const Direction&, Value x, std::optional<Value>)>;

struct RecurrentRule {
  int gates;
  bool has_cell;
  std::vector<std::string> activations;
  Step step;
  AllSteps all_steps = nullptr;  // null: there is no such operator
};

Value HiddenSlice(Lowering& at, Value x, int64_t gate, int64_t hidden, int64_t axis) {
  return at.Slice(x, axis, gate * hidden, (gate + 1) * hidden);
}

Value Clipped(Lowering& at, Value x) {
  if (!at.has_attr("clip")) return x;
  const float limit = at.Float("clip", 0);
  return at.Max(at.Min(x, at.Like(limit, x)), at.Like(-limit, x));
}

Direction DirectionOf(Lowering& at, int number, const RecurrentRule& rule, Value x, bool last) {
  Direction one;
  const std::string way = at.Text("direction", "forward");
  one.reverse = way == "reverse" || number == 1;
  const int64_t hidden = at.Dim(at.in(2), 2);
  const auto part = [&](int input) {
    return at.Squeeze(at.Slice(at.in(input), 0, number, number + 1), {0});
  };
  one.w = part(1);
  one.r = part(2);
  if (at.has(3)) {
    one.bias = at.Slice(part(3), 0, 0, rule.gates * hidden);
    one.r_bias = at.Slice(part(3), 0, rule.gates * hidden, 2 * rule.gates * hidden);
  }
  // Zeros [N, H] where no first state is given.
  const auto state = [&](int input) {
    if (!at.has(input)) {
      const Value dims = at.Concat({at.DimOf(x, last ? 0 : 1), at.Ints({hidden})}, 0);
      return at.Filled(dims, at.Like(0, x));
    }
    const int64_t axis = last ? 1 : 0;
    return at.Squeeze(at.Slice(at.in(input), axis, number, number + 1), {axis});
  };
  one.hidden = state(5);
  if (rule.has_cell) one.cell = state(6);
  if (rule.has_cell && at.has(7)) one.peephole = part(7);
  one.activations = ActivationsOf(at, number, rule.activations);
  return one;
}

// One step: the state after it, and the row [N, H] that it leaves. `lengths` is [N, 1].
StateOf StepOf(Lowering& at, const RecurrentRule& rule, const Direction& one, Value row, Value t,
               std::optional<Value> lengths, const StateOf& before, Value& left) {
  Value xw = at.Op("MatMulV2", {row, one.w}, {{"transpose_x2", true}});
  if (one.bias) xw = at.Add(xw, *one.bias);
  StateOf next = rule.step(at, one, xw, before);
  left = next.hidden;
  if (!lengths) return next;
  // Rows that have ended keep their state and leave 0.
  const Value runs = at.Binary("Greater", *lengths, t);
  left = at.Select(runs, left, at.Like(0, left));
  next.hidden = at.Select(runs, next.hidden, before.hidden);
  if (rule.has_cell) next.cell = at.Select(runs, next.cell, before.cell);
  return next;
}

// One step after the other. x is [T, N, I].
DirectionResult WriteSteps(Lowering& at, const RecurrentRule& rule, const Direction& one, Value x,
                           std::optional<Value> lengths) {
  const int64_t steps = at.Dim(x, 0);
  DirectionResult result{x, {one.hidden, one.cell}};
  std::vector<Value> rows(static_cast<size_t>(steps));
  for (int64_t i = 0; i < steps && at.ok(); ++i) {
    const int64_t t = one.reverse ? steps - 1 - i : i;
    const Value row = at.Squeeze(at.Slice(x, 0, t, t + 1), {0});
    Value left;
    result.last = StepOf(at, rule, one, row, at.IntScalar(t), lengths, result.last, left);
    rows[static_cast<size_t>(t)] = at.Unsqueeze(left, {0});
  }
  if (steps > 0) result.y = steps == 1 ? rows[0] : at.Concat(rows, 0);
  return result;
}

// The operands of a direction as a body sees them.
Direction Captured(GraphScope& scope, const Direction& one) {
  Direction inner = one;
  for (Value* value : {&inner.w, &inner.r}) *value = scope.CaptureOf(*value);
  for (std::optional<Value>* value : {&inner.bias, &inner.r_bias, &inner.peephole}) {
    if (*value) *value = scope.CaptureOf(**value);
  }
  return inner;
}

// A While over the steps, which puts each row into its place.
DirectionResult WriteStepLoop(Lowering& at, const RecurrentRule& rule, const Direction& one,
                              Value x, std::optional<Value> lengths) {
  const Value steps = at.Reshape(at.DimOf(x, 0), {});
  const Value dims = at.Concat({at.DimOf(x, 0), at.DimOf(x, 1), at.Ints({at.Dim(one.r, 1)})}, 0);
  std::vector<Value> first = {at.Filled(dims, at.Like(0, x)), one.hidden};
  if (rule.has_cell) first.push_back(one.cell);
  const std::vector<Value> last = WriteLoop(
      at, steps, at.Scalar(1, DataType::kBool), first,
      [&](GraphScope& scope, Lowering& body, Value turn, const std::vector<Value>& now) {
        const Value whole = scope.CaptureOf(x);
        Value t = turn;
        if (one.reverse) {
          const Value count = body.Reshape(body.DimOf(whole, 0), {});
          t = body.Sub(body.Sub(count, body.IntScalar(1)), turn);
        }
        const StateOf before{now[1], rule.has_cell ? now[2] : Value()};
        std::optional<Value> inner_lengths;
        if (lengths) inner_lengths = scope.CaptureOf(*lengths);
        Value left;
        const StateOf next = StepOf(body, rule, Captured(scope, one), body.Gather(whole, t, 0), t,
                                    inner_lengths, before, left);
        const Value place = body.Reshape(t, {1, 1});
        LoopTurn turned;
        turned.next = {body.Op("TensorScatterUpdate", {now[0], place, body.Unsqueeze(left, {0})}),
                       next.hidden};
        if (rule.has_cell) turned.next.push_back(next.cell);
        turned.go_on = body.Scalar(1, DataType::kBool);
        return turned;
      });
  if (!at.ok()) return {};
  return {last[0], {last[1], rule.has_cell ? last[2] : Value()}};
}

// Whether the node asks for nothing that the operators of ours have not.
bool IsPlain(Lowering& at, const RecurrentRule& rule) {
  if (rule.all_steps == nullptr || at.has_attr("clip") || at.Int("input_forget", 0) != 0)
    return false;
  if (at.has(7) || at.dtype(at.in(0)) == DataType::kDouble || at.KnownSize(at.in(0), 0) == 0) {
    return false;
  }
  const OnnxAttribute* const named = at.node().Find("activations");
  if (named == nullptr) return true;
  for (size_t i = 0; i < named->strings.size(); ++i) {
    if (!SameWord(named->strings[i], rule.activations[i % rule.activations.size()])) return false;
  }
  return true;
}

DirectionResult RunDirection(Lowering& at, const RecurrentRule& rule, const Direction& one,
                             Value x) {
  constexpr int64_t kFewSteps = 32;
  if (IsPlain(at, rule)) return rule.all_steps(at, one, x, at.Given(4));
  std::optional<Value> lengths;
  if (at.has(4)) lengths = at.Unsqueeze(at.Cast(at.in(4), DataType::kInt64), {1});
  const int64_t steps = at.KnownSize(x, 0);
  return steps >= 0 && steps <= kFewSteps ? WriteSteps(at, rule, one, x, lengths)
                                          : WriteStepLoop(at, rule, one, x, lengths);
}

// layout 0: x [T, N, I], y [T, D, N, H], states [D, N, H]; 1: the batch first.
std::function<void(Lowering&)> Recurrent(RecurrentRule rule) {
  return [rule = std::move(rule)](Lowering& at) {
    const bool batch_first = at.Int("layout", 0) != 0;
    const Value given = at.in(0);
    const Value x = batch_first ? at.Transpose(given, {1, 0, 2}) : given;
    const int directions = at.Text("direction", "forward") == "bidirectional" ? 2 : 1;
    for (int i = 0; i < 3; ++i) (void)at.Rank(at.in(i));
    std::vector<DirectionResult> results;
    for (int d = 0; d < directions && at.ok(); ++d) {
      const Direction one = DirectionOf(at, d, rule, given, batch_first);
      if (at.ok()) results.push_back(RunDirection(at, rule, one, x));
    }
    if (!at.ok()) return;
    std::vector<Value> ways;
    for (const DirectionResult& result : results) ways.push_back(at.Unsqueeze(result.y, {1}));
    const Value y = ways.size() == 1 ? ways[0] : at.Concat(ways, 1);
    const auto stacked = [&](Value StateOf::*part) {
      std::vector<Value> all;
      for (const DirectionResult& result : results) {
        all.push_back(at.Unsqueeze(result.last.*part, {batch_first ? 1 : 0}));
      }
      return all.size() == 1 ? all[0] : at.Concat(all, batch_first ? 1 : 0);
    };
    at.Out(0, batch_first ? at.Transpose(y, {2, 0, 1, 3}) : y);
    at.Out(1, stacked(&StateOf::hidden));
    if (rule.has_cell) at.Out(2, stacked(&StateOf::cell));
  };
}

// h times one gate of r.
Value Recurred(Lowering& at, const Direction& one, Value h, int64_t gate) {
  const int64_t hidden = at.Dim(one.r, 1);
  Value y =
      at.Op("MatMulV2", {h, HiddenSlice(at, one.r, gate, hidden, 0)}, {{"transpose_x2", true}});
  if (one.r_bias) y = at.Add(y, HiddenSlice(at, *one.r_bias, gate, hidden, 0));
  return y;
}

StateOf RnnStep(Lowering& at, const Direction& one, Value xw, const StateOf& before) {
  const Value sum = at.Add(xw, Recurred(at, one, before.hidden, 0));
  return {one.activations[0](at, Clipped(at, sum)), {}};
}

// Gates: update, reset, hidden.
StateOf GruStep(Lowering& at, const Direction& one, Value xw, const StateOf& before) {
  const int64_t hidden = at.Dim(one.r, 1);
  const Value h = before.hidden;
  const auto gate = [&](int64_t g) {
    const Value sum = at.Add(HiddenSlice(at, xw, g, hidden, 1), Recurred(at, one, h, g));
    return one.activations[0](at, Clipped(at, sum));
  };
  const Value update = gate(0), reset = gate(1);
  const Value recurred = at.Int("linear_before_reset", 0) != 0
                             ? at.Mul(reset, Recurred(at, one, h, 2))
                             : Recurred(at, one, at.Mul(reset, h), 2);
  const Value fresh =
      one.activations[1](at, Clipped(at, at.Add(HiddenSlice(at, xw, 2, hidden, 1), recurred)));
  const Value rest = at.Sub(at.Like(1, update), update);
  return {at.Add(at.Mul(rest, fresh), at.Mul(update, h)), {}};
}

// Gates: input, output, forget, cell; peepholes of the first three.
StateOf LstmStep(Lowering& at, const Direction& one, Value xw, const StateOf& before) {
  const int64_t hidden = at.Dim(one.r, 1);
  const auto sum = [&](int64_t g) {
    return at.Add(HiddenSlice(at, xw, g, hidden, 1), Recurred(at, one, before.hidden, g));
  };
  const auto peeped = [&](Value x, int64_t g, Value cell) {
    if (!one.peephole) return x;
    return at.Add(x, at.Mul(HiddenSlice(at, *one.peephole, g, hidden, 0), cell));
  };
  const auto& [f, g, h] = std::tie(one.activations[0], one.activations[1], one.activations[2]);
  const Value input = f(at, Clipped(at, peeped(sum(0), 0, before.cell)));
  const Value forget = at.Int("input_forget", 0) != 0
                           ? at.Sub(at.Like(1, input), input)
                           : f(at, Clipped(at, peeped(sum(2), 2, before.cell)));
  const Value fresh = g(at, Clipped(at, sum(3)));
  const Value cell = at.Add(at.Mul(forget, before.cell), at.Mul(input, fresh));
  const Value output = f(at, Clipped(at, peeped(sum(1), 1, cell)));
  return {at.Mul(output, h(at, cell)), cell};
}

// ---- as operators of ours ----

// Rows [gates * H, ..] of ONNX in the order of other gates.
Value Reordered(Lowering& at, Value x, const std::vector<int64_t>& order, int64_t hidden) {
  std::vector<Value> parts;
  for (const int64_t gate : order) parts.push_back(HiddenSlice(at, x, gate, hidden, 0));
  return at.Concat(parts, 0);
}

// The bias, or zeros.
Value BiasOr(Lowering& at, const std::optional<Value>& bias, int64_t count) {
  if (bias) return at.Wide(*bias);
  return at.Floats(std::vector<float>(static_cast<size_t>(count)), Shape({count}));
}

NodeAttr DirectionAttr(const Direction& one) {
  return {"direction", one.reverse ? "REDIRECTIONAL" : "UNIDIRECTIONAL"};
}

// What is left of [T, N, H] after the last step that was made.
Value LastOf(Lowering& at, const Direction& one, Value states) {
  return at.Squeeze(one.reverse ? at.Slice(states, 0, 0, 1) : at.Slice(states, 0, -1, INT64_MAX),
                    {0});
}

DirectionResult AllLstmSteps(Lowering& at, const Direction& one, Value x,
                             std::optional<Value> lengths) {
  const std::vector<int64_t> order = {0, 3, 2, 1};  // of ijfo among ONNX's iofc
  const int64_t hidden = at.Dim(one.r, 1);
  const DataType dtype = at.dtype(x);
  const Value both = at.Concat({at.Wide(one.w), at.Wide(one.r)}, 1);
  const Value w = at.Transpose(Reordered(at, both, order, hidden), {1, 0});
  const int64_t gates = 4 * hidden;
  Value bias = BiasOr(at, one.bias, gates);
  if (one.bias) bias = Reordered(at, at.Add(bias, at.Wide(*one.r_bias)), order, hidden);
  const Value y =
      at.Op("DynamicRNN", {at.Wide(x), w, bias, lengths, at.Wide(one.hidden), at.Wide(one.cell)},
            {DirectionAttr(one), {"gate_order", "ijfo"}, {"is_training", false}}, 8);
  const auto last = [&](int port) {
    return at.Cast(LastOf(at, one, Lowering::Port(y, port)), dtype);
  };
  return {at.Cast(y, dtype), {last(1), last(2)}};
}

DirectionResult AllGruSteps(Lowering& at, const Direction& one, Value x,
                            std::optional<Value> lengths) {
  const int64_t gates = 3 * at.Dim(one.r, 1);
  const DataType dtype = at.dtype(x);
  const auto turned = [&](Value weight) { return at.Transpose(at.Wide(weight), {1, 0}); };
  const Value y = at.Op("DynamicGRUV2",
                        {at.Wide(x), turned(one.w), turned(one.r), BiasOr(at, one.bias, gates),
                         BiasOr(at, one.r_bias, gates), lengths, at.Wide(one.hidden)},
                        {DirectionAttr(one),
                         {"gate_order", "zrh"},
                         {"reset_after", at.Int("linear_before_reset", 0) != 0},
                         {"is_training", false}},
                        6);
  const Value last = LastOf(at, one, Lowering::Port(y, 1));
  return {at.Cast(y, dtype), {at.Cast(last, dtype), {}}};
}

}  // namespace

void AddRecurrentRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"GRU", 7, Recurrent({3, false, {"Sigmoid", "Tanh"}, GruStep, AllGruSteps}),
       "DynamicGRUV2; While, MatMulV2, Mul, Add",
       "T=R T T T? J? T? activation_alpha:floats activation_beta:floats activations:strings "
       "clip:float direction:string hidden_size:int layout:int@14 linear_before_reset:int"},
      {"LSTM", 7, Recurrent({4, true, {"Sigmoid", "Tanh", "Tanh"}, LstmStep, AllLstmSteps}),
       "DynamicRNN; While, MatMulV2, Mul, Add",
       "T=R T T T? J? T? T? T? activation_alpha:floats activation_beta:floats activations:strings "
       "clip:float direction:string hidden_size:int input_forget:int layout:int@14"},
      {"RNN", 7, Recurrent({1, false, {"Tanh"}, RnnStep}), "While, MatMulV2, Add",
       "T=R T T T? J? T? activation_alpha:floats activation_beta:floats activations:strings "
       "clip:float direction:string hidden_size:int layout:int@14"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
