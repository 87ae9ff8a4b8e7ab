// RNN, GRU and LSTM: one step after the other is written down.
#include <algorithm>

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

using Activation = std::function<Value(Value)>;

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
    made.push_back([&at, rule, alpha, beta](Value x) { return rule->apply(at, x, alpha, beta); });
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

struct RecurrentRule {
  int gates;
  bool has_cell;
  std::vector<std::string> activations;
  Step step;
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

struct DirectionResult {
  std::vector<Value> outputs;  // by time, [N, H]
  StateOf last;
};

// x is [T, N, I].
DirectionResult RunDirection(Lowering& at, const RecurrentRule& rule, const Direction& one,
                             Value x) {
  const int64_t steps = at.Dim(x, 0);
  DirectionResult result;
  constexpr int64_t kMostNodes = 64;  // of one step
  if (!at.Affords(steps, kMostNodes)) return result;
  result.outputs.resize(static_cast<size_t>(steps));
  result.last = {one.hidden, one.cell};
  std::optional<Value> lengths;
  if (at.has(4)) lengths = at.Unsqueeze(at.Cast(at.in(4), DataType::kInt64), {1});
  for (int64_t i = 0; i < steps && at.ok(); ++i) {
    const int64_t t = one.reverse ? steps - 1 - i : i;
    const Value row = at.Squeeze(at.Slice(x, 0, t, t + 1), {0});
    Value xw = at.Op("MatMulV2", {row, one.w}, {{"transpose_x2", true}});
    if (one.bias) xw = at.Add(xw, *one.bias);
    StateOf next = rule.step(at, one, xw, result.last);
    Value output = next.hidden;
    if (lengths) {
      // Rows that have ended keep their state and leave 0.
      const Value runs = at.Binary("Greater", *lengths, at.IntScalar(t));
      output = at.Select(runs, output, at.Like(0, output));
      next.hidden = at.Select(runs, next.hidden, result.last.hidden);
      if (rule.has_cell) next.cell = at.Select(runs, next.cell, result.last.cell);
    }
    result.outputs[static_cast<size_t>(t)] = output;
    result.last = next;
  }
  return result;
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
    std::vector<Value> rows;
    for (size_t t = 0; t < results[0].outputs.size(); ++t) {
      std::vector<Value> both;
      for (const DirectionResult& result : results) {
        both.push_back(at.Unsqueeze(result.outputs[t], {0, 1}));
      }
      rows.push_back(both.size() == 1 ? both[0] : at.Concat(both, 1));
    }
    const auto stacked = [&](Value StateOf::*part) {
      std::vector<Value> all;
      for (const DirectionResult& result : results) {
        all.push_back(at.Unsqueeze(result.last.*part, {batch_first ? 1 : 0}));
      }
      return all.size() == 1 ? all[0] : at.Concat(all, batch_first ? 1 : 0);
    };
    const Value y = rows.size() == 1 ? rows[0] : at.Concat(rows, 0);
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
  return {one.activations[0](Clipped(at, sum)), {}};
}

// Gates: update, reset, hidden.
StateOf GruStep(Lowering& at, const Direction& one, Value xw, const StateOf& before) {
  const int64_t hidden = at.Dim(one.r, 1);
  const Value h = before.hidden;
  const auto gate = [&](int64_t g) {
    const Value sum = at.Add(HiddenSlice(at, xw, g, hidden, 1), Recurred(at, one, h, g));
    return one.activations[0](Clipped(at, sum));
  };
  const Value update = gate(0), reset = gate(1);
  const Value recurred = at.Int("linear_before_reset", 0) != 0
                             ? at.Mul(reset, Recurred(at, one, h, 2))
                             : Recurred(at, one, at.Mul(reset, h), 2);
  const Value fresh =
      one.activations[1](Clipped(at, at.Add(HiddenSlice(at, xw, 2, hidden, 1), recurred)));
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
  const Value input = f(Clipped(at, peeped(sum(0), 0, before.cell)));
  const Value forget = at.Int("input_forget", 0) != 0
                           ? at.Sub(at.Like(1, input), input)
                           : f(Clipped(at, peeped(sum(2), 2, before.cell)));
  const Value fresh = g(Clipped(at, sum(3)));
  const Value cell = at.Add(at.Mul(forget, before.cell), at.Mul(input, fresh));
  const Value output = f(Clipped(at, peeped(sum(1), 1, cell)));
  return {at.Mul(output, h(cell)), cell};
}

}  // namespace

void AddRecurrentRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"GRU", 7, Recurrent({3, false, {"Sigmoid", "Tanh"}, GruStep}), "MatMulV2, Mul, Add",
       "T=R T T T? J? T? activation_alpha:floats activation_beta:floats activations:strings "
       "clip:float direction:string hidden_size:int layout:int@14 linear_before_reset:int"},
      {"LSTM", 7, Recurrent({4, true, {"Sigmoid", "Tanh", "Tanh"}, LstmStep}), "MatMulV2, Mul, Add",
       "T=R T T T? J? T? T? T? activation_alpha:floats activation_beta:floats activations:strings "
       "clip:float direction:string hidden_size:int input_forget:int layout:int@14"},
      {"RNN", 7, Recurrent({1, false, {"Tanh"}, RnnStep}), "MatMulV2, Add",
       "T=R T T T? J? T? activation_alpha:floats activation_beta:floats activations:strings "
       "clip:float direction:string hidden_size:int layout:int@14"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
