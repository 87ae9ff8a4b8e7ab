// Optimizers of ai.onnx.preview.training: operands are the rate R, the count of updates T, then all
// tensors, all gradients, and the states of all tensors.
#include "graph/onnx/op_table.h"

namespace npumesh {
namespace {

// One tensor with everything that belongs to it.
struct Trained {
  Value x, gradient;
  std::vector<Value> states;
};

std::vector<Trained> TrainedOf(Lowering& at, int states) {
  const int count = (at.inputs() - 2) / (2 + states);
  if ((at.inputs() - 2) % (2 + states) != 0 || at.outputs() != count * (1 + states)) {
    at.Fail(Code::kCorrupt,
            "has {} tensors and {} results; expected {} and {} for each tensor that is trained",
            at.inputs() - 2, at.outputs(), 2 + states, 1 + states);
    return {};
  }
  std::vector<Trained> all;
  for (int i = 0; i < count; ++i) {
    Trained one{at.in(2 + i), at.in(2 + count + i), {}};
    for (int s = 0; s < states; ++s) one.states.push_back(at.in(2 + (2 + s) * count + i));
    // The penalty on the size of x.
    const Value penalty = at.Like(at.Float("norm_coefficient", 0), one.x);
    one.gradient = at.Add(at.Mul(penalty, one.x), one.gradient);
    all.push_back(std::move(one));
  }
  return all;
}

// Outputs: all tensors, then their states.
void OutAll(Lowering& at, const std::vector<Trained>& all) {
  const auto count = static_cast<int>(all.size());
  for (int i = 0; i < count; ++i) {
    const Trained& one = all[static_cast<size_t>(i)];
    at.Out(i, one.x);
    for (size_t s = 0; s < one.states.size(); ++s) {
      at.Out(static_cast<int>(s + 1) * count + i, one.states[s]);
    }
  }
}

// a * old + b * now
Value Mixed(Lowering& at, double a, Value old, Value b, Value now) {
  return at.Add(at.Mul(at.Like(a, old), old), at.Mul(b, now));
}

void LowerAdagrad(Lowering& at) {
  std::vector<Trained> all = TrainedOf(at, 1);
  for (Trained& one : all) {
    const Value updates = at.Cast(at.in(1), at.dtype(one.x)), unit = at.Like(1, one.x);
    const Value decay = at.Mul(updates, at.Like(at.Float("decay_factor", 0), one.x));
    const Value rate = at.Div(at.in(0), at.Add(unit, decay));
    Value& squares = one.states[0];
    squares = at.Add(squares, at.Mul(one.gradient, one.gradient));
    const Value root =
        at.Add(at.Unary("Sqrt", squares), at.Like(at.Float("epsilon", 1e-6F), one.x));
    one.x = at.Sub(one.x, at.Div(at.Mul(rate, one.gradient), root));
  }
  OutAll(at, all);
}

void LowerAdam(Lowering& at) {
  const double alpha = at.Float("alpha", 0.9F), beta = at.Float("beta", 0.999F);
  std::vector<Trained> all = TrainedOf(at, 2);
  for (Trained& one : all) {
    const Value unit = at.Like(1, one.x), updates = at.Cast(at.in(1), at.dtype(one.x));
    Value &mean = one.states[0], &squares = one.states[1];
    mean = Mixed(at, alpha, mean, at.Like(1 - alpha, one.x), one.gradient);
    squares =
        Mixed(at, beta, squares, at.Like(1 - beta, one.x), at.Mul(one.gradient, one.gradient));
    const auto rest = [&](double base) {
      return at.Sub(unit, at.Binary("Pow", at.Like(base, one.x), updates));
    };
    const Value corrected = at.Div(at.Mul(at.in(0), at.Unary("Sqrt", rest(beta))), rest(alpha));
    const Value later = at.Binary("Greater", updates, at.Like(0, one.x));
    const Value rate = at.Select(later, corrected, at.in(0));
    const Value root =
        at.Add(at.Unary("Sqrt", squares), at.Like(at.Float("epsilon", 1e-6F), one.x));
    const Value moved = at.Sub(one.x, at.Div(at.Mul(rate, mean), root));
    one.x = at.Mul(moved, at.Like(1 - double{at.Float("norm_coefficient_post", 0)}, one.x));
  }
  OutAll(at, all);
}

void LowerMomentum(Lowering& at) {
  const double alpha = at.Float("alpha", 0);
  const bool nesterov = at.Text("mode", "standard") == "nesterov";
  std::vector<Trained> all = TrainedOf(at, 1);
  for (Trained& one : all) {
    Value& speed = one.states[0];
    const Value later = at.Binary("Greater", at.in(1), at.Like(0, at.in(1)));
    const Value share = at.Select(later, at.Like(at.Float("beta", 0), one.x), at.Like(1, one.x));
    speed = Mixed(at, alpha, speed, share, one.gradient);
    const Value step =
        nesterov ? at.Add(one.gradient, at.Mul(at.Like(alpha, speed), speed)) : speed;
    one.x = at.Sub(one.x, at.Mul(at.in(0), step));
  }
  OutAll(at, all);
}

}  // namespace

void AddTrainingRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"Adagrad", 1, LowerAdagrad, "Mul, Add, Sqrt, Div",
       "D L D... decay_factor:float epsilon:float norm_coefficient:float", kTrainingDomain},
      {"Adam", 1, LowerAdam, "Mul, Add, Sqrt, Div, Pow",
       "D L D... alpha:float beta:float epsilon:float norm_coefficient:float "
       "norm_coefficient_post:float",
       kTrainingDomain},
      {"Momentum", 1, LowerMomentum, "Mul, Add",
       "D L D... alpha:float! beta:float! mode:string! norm_coefficient:float!", kTrainingDomain},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
