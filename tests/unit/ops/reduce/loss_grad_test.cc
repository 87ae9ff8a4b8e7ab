// Losses over classes, PReluGrad, and the gradients of rotary embeddings.
#include "tests/unit/op_gradient.h"
#include "tests/unit/op_reference.h"

namespace npumesh {
namespace {

Tensor Targets(Shape shape, const std::vector<int32_t>& values) {
  return Make<int32_t>(DataType::kInt32, std::move(shape), values);
}

std::pair<std::string, AttrValue> ReductionAttr(const char* name) {
  return {"reduction", AttrValue::String(name)};
}

TEST(NllLoss, GradientIsTheSlope) {
  struct Case {
    Shape x;
    Tensor target;
  };
  const Case cases[] = {{{3, 4}, Targets({3}, {1, 2, 0})},
                        {{2, 4, 1, 3}, Targets({2, 1, 3}, {1, 3, 2, 0, 2, 1})},
                        {{4}, Targets({}, {3})}};
  for (const Case& test : cases) {
    for (const char* reduction : {"none", "sum", "mean"}) {
      const Tensor x = Waves(kF64, test.x), weight = Scaled(Waves(kF64, {4}, 3), 0.5, 1);
      const OpCall forward = {
          .type = "NLLLoss",
          .inputs = {{"x", x}, {"target", test.target}, {"weight", weight}},
          .attrs = {ReductionAttr(reduction), {"ignore_index", AttrValue::Int(2)}}};
      const std::vector<Tensor> y = Outputs(forward);
      const Tensor dy = Waves(kF64, y[0].shape(), 5);
      const Tensor dx = RunOne({.type = "NLLLossGrad",
                                .inputs = {{"x", x},
                                           {"y_grad", dy},
                                           {"target", test.target},
                                           {"weight", weight},
                                           {"total_weight", y[1]}},
                                .attrs = forward.attrs});
      ExpectGradient(forward, "x", dy, dx);
    }
  }
}

// Row n: -sum of labels * log softmax.
double EntropyOf(const std::vector<double>& x, const std::vector<double>& labels, size_t n,
                 size_t classes) {
  double sum = 0, loss = 0;
  for (size_t c = 0; c < classes; ++c) sum += std::exp(x[n * classes + c]);
  for (size_t c = 0; c < classes; ++c) {
    loss -= labels[n * classes + c] * (x[n * classes + c] - std::log(sum));
  }
  return loss;
}

TEST(CrossEntropy, LossAndItsSlope) {
  const Tensor x = Waves(kF64, {3, 4});
  const std::vector<double> labels = {0.25, 0.5, 0.25, 0, 0, 0, 1, 0, 0.1, 0.2, 0.3, 0.4};
  const OpCall call = {.type = "SoftmaxCrossEntropyWithLogits",
                       .inputs = {{"features", x}, {"labels", FromDoubles(kF64, {3, 4}, labels)}}};
  const std::vector<Tensor> out = Outputs(call);
  for (size_t n = 0; n < 3; ++n) {
    EXPECT_NEAR(ToDoubles(out[0])[n], EntropyOf(ToDoubles(x), labels, n, 4), 1e-12);
  }
  ExpectGradient(call, "features", FromDoubles(kF64, {3}, {1, 1, 1}), out[1]);
  const std::vector<Tensor> sparse =
      Outputs({.type = "SparseSoftmaxCrossEntropyWithLogits",
               .inputs = {{"features", x}, {"labels", Targets({3}, {2, 2, 2})}}});
  const std::vector<Tensor> one_hot =
      Outputs({.type = "SoftmaxCrossEntropyWithLogits",
               .inputs = {{"features", x}, {"labels", FromDoubles(kF64, {1, 4}, {0, 0, 1, 0})}}});
  EXPECT_TRUE(SameBytes(sparse[0], one_hot[0]));
  EXPECT_TRUE(SameBytes(sparse[1], one_hot[1]));
}

// A class that is impossible and has no label does not spoil the loss; large logits do not
// overflow.
TEST(CrossEntropy, OfExtremeLogits) {
  const Tensor x = FromDoubles(kF32, {1, 3}, {1000, -INFINITY, 1000});
  const std::vector<Tensor> out =
      Outputs({.type = "SparseSoftmaxCrossEntropyWithLogits",
               .inputs = {{"features", x}, {"labels", Targets({1}, {0})}}});
  ExpectNear(out[0], {std::log(2)}, 1e-6);
  EXPECT_EQ(ToDoubles(out[1]), (std::vector<double>{-0.5, 0, 0.5}));
}

TEST(PReluGrad, IsTheSlope) {
  for (const int64_t weights : {1, 3}) {
    const Tensor x = Waves(kF64, {2, 3, 2}), weight = Waves(kF64, {weights}, 2),
                 dy = Waves(kF64, {2, 3, 2}, 3);
    const OpCall forward = {.type = "PRelu", .inputs = {{"x", x}, {"weight", weight}}};
    const std::vector<Tensor> grad = Outputs(
        {.type = "PReluGrad", .inputs = {{"grads", dy}, {"features", x}, {"weights", weight}}});
    ExpectGradient(forward, "x", dy, grad[0]);
    ExpectGradient(forward, "weight", dy, grad[1]);
  }
}

// ---- rotary embedding, which knows no float64: by the formula ----

// y by the operator's definition, mode 0 to 3.
std::vector<double> Rotated(int mode, const std::vector<double>& x, const std::vector<double>& cos,
                            const std::vector<double>& sin) {
  const size_t n = x.size(), h = n / 2, q = n / 4;
  std::vector<double> base = x, rotated(n);
  if (mode == 3) {
    for (size_t i = 0; i < h; ++i) {
      base[i] = x[2 * i];
      base[h + i] = x[2 * i + 1];
    }
  }
  for (size_t j = 0; j < n; ++j) {
    if (mode == 1) {
      rotated[j] = j % 2 == 0 ? -x[j + 1] : x[j - 1];
    } else if (mode == 2) {
      rotated[j] = j % h < q ? -x[j + q] : x[j - q];
    } else {
      rotated[j] = j < h ? -base[j + h] : base[j - h];
    }
  }
  std::vector<double> y(n);
  for (size_t j = 0; j < n; ++j) y[j] = base[j] * cos[j] + rotated[j] * sin[j];
  return y;
}

// Sum of dy times the rotation of x [2, 3, 4], tables [2, 1, 4].
double RotaryLoss(int mode, const std::vector<double>& x, const std::vector<double>& cos,
                  const std::vector<double>& sin, const std::vector<double>& dy) {
  double loss = 0;
  const auto part = [](const std::vector<double>& from, size_t first) {
    return std::vector<double>(from.begin() + static_cast<int64_t>(first),
                               from.begin() + static_cast<int64_t>(first) + 4);
  };
  for (size_t row = 0; row < 6; ++row) {
    const size_t table = row / 3 * 4;
    const std::vector<double> y =
        Rotated(mode, part(x, row * 4), part(cos, table), part(sin, table));
    for (size_t j = 0; j < 4; ++j) loss += y[j] * dy[row * 4 + j];
  }
  return loss;
}

// The loss is linear in every argument, so one step of any size gives the slope.
template <typename Loss>
std::vector<double> Slopes(std::vector<double> at, Loss loss) {
  std::vector<double> slopes;
  const double base = loss(at);
  for (double& value : at) {
    value += 1;
    slopes.push_back(loss(at) - base);
    value -= 1;
  }
  return slopes;
}

TEST(RotaryGrad, IsTheSlope) {
  const Tensor x = Waves(kF64, {2, 3, 4}), cos = Waves(kF64, {2, 1, 4}, 2),
               sin = Waves(kF64, {2, 1, 4}, 3), dy = Waves(kF64, {2, 3, 4}, 4);
  const std::vector<double> vx = ToDoubles(x), vc = ToDoubles(cos), vs = ToDoubles(sin),
                            vd = ToDoubles(dy);
  for (int mode = 0; mode < 4; ++mode) {
    SCOPED_TRACE(mode);
    const std::vector<Tensor> grad =
        Outputs({.type = "RotaryPositionEmbeddingGrad",
                 .inputs = {{"dy", dy}, {"cos", cos}, {"sin", sin}, {"x", x}},
                 .attrs = {{"mode", AttrValue::Int(mode)}}});
    ExpectNear(grad[0], Slopes(vx, [&](const auto& v) { return RotaryLoss(mode, v, vc, vs, vd); }),
               1e-12);
    ExpectNear(grad[1], Slopes(vc, [&](const auto& v) { return RotaryLoss(mode, vx, v, vs, vd); }),
               1e-12);
    ExpectNear(grad[2], Slopes(vs, [&](const auto& v) { return RotaryLoss(mode, vx, vc, v, vd); }),
               1e-12);
    if (mode > 0) continue;
    const auto run = [&](bool backward) {
      return Outputs({.type = "RotaryMulGrad",
                      .inputs = {{"x", x}, {"r1", cos}, {"r2", sin}, {"dy", dy}},
                      .attrs = {{"need_backward", AttrValue::Bool(backward)}}});
    };
    for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(SameBytes(run(true)[i], grad[i]));
    EXPECT_EQ(ToDoubles(run(false)[1]), std::vector<double>(8, 0));
  }
}

}  // namespace
}  // namespace npumesh
