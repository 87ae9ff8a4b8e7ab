// ScaledMaskedSoftmax, CrossEntropyLoss, GemmaRmsNorm and their gradients, against the definitions
// in double with drawn shapes.
#include "tests/unit/op_gradient.h"
#include "tests/unit/op_reference.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

int64_t DrawnExtent(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random.Bits() % static_cast<uint64_t>(most - least + 1));
}

double TypeBound(DataType dtype) {
  return dtype == kF32 ? 2e-6 : dtype == kF16 ? 0x1p-10 : 0x1p-7;
}

TEST(ScaledMaskedSoftmax, RandomMasks) {
  Random random(20261130);
  const DataType types[] = {kF32, kF16, kBf16};
  for (int turn = 0; turn < 90; ++turn) {
    const DataType dtype = types[turn % 3];
    const Shape shape = {DrawnExtent(random, 1, 3), DrawnExtent(random, 1, 3),
                         DrawnExtent(random, 1, 4), DrawnExtent(random, 1, 9)};
    std::vector<int64_t> dims = shape.dims();
    for (int64_t& dim : dims) dim = random.Bits() % 3 == 0 ? 1 : dim;
    if (turn % 7 == 0) dims.erase(dims.begin());
    const Shape mask_shape(dims);
    const bool masks = turn % 5 != 0;
    std::vector<double> bits(static_cast<size_t>(mask_shape.elements()));
    for (double& bit : bits) bit = random.Bits() % 3 == 0 ? 1 : 0;
    const Tensor x = Scaled(Waves(dtype, shape, turn), 3, 0),
                 mask = FromDoubles(kBool, mask_shape, bits);
    const double scale = turn % 2 == 0 ? 1.0 : 0.375;
    OpCall call = {.type = turn % 2 == 0 ? "ScaledMaskedSoftmax" : "ScaledMaskedSoftmaxV2",
                   .inputs = {{"x", x}},
                   .attrs = {{"scale", AttrValue::Float(static_cast<float>(scale))}}};
    if (masks) call.inputs.push_back({"mask", mask});
    const auto hidden = [&](size_t at) {
      return masks && bits[SourceOf(mask_shape, shape, at)] != 0;
    };
    std::vector<double> y = ToDoubles(x);
    const auto width = static_cast<size_t>(shape[3]);
    for (size_t r = 0; r < y.size(); r += width) {
      double sum = 0, most = -1e300;
      for (size_t i = r; i < r + width; ++i) {
        y[i] = hidden(i) ? -10000 : y[i] * scale;
        most = std::max(most, y[i]);
      }
      for (size_t i = r; i < r + width; ++i) sum += y[i] = std::exp(y[i] - most);
      for (size_t i = r; i < r + width; ++i) y[i] /= sum;
    }
    const Tensor got = Results(call)[0];
    ExpectNear(got, y, TypeBound(dtype), "turn " + std::to_string(turn));

    const Tensor dy = Waves(dtype, shape, turn + 0.5);
    OpCall backward = {
        .type = turn % 2 == 0 ? "ScaledMaskedSoftmaxGrad" : "ScaledMaskedSoftmaxGradV2",
        .inputs = {{"y_grad", dy}, {"y", got}},
        .attrs = call.attrs};
    if (masks) backward.inputs.push_back({"mask", mask});
    std::vector<double> dx(y.size());
    const std::vector<double> p = ToDoubles(got), slope = ToDoubles(dy);
    for (size_t r = 0; r < y.size(); r += width) {
      double dot = 0;
      for (size_t i = r; i < r + width; ++i) dot += p[i] * slope[i];
      for (size_t i = r; i < r + width; ++i) {
        dx[i] = hidden(i) ? 0 : (slope[i] - dot) * p[i] * scale;
      }
    }
    ExpectNear(Results(backward)[0], dx, TypeBound(dtype),
               "gradient, turn " + std::to_string(turn));
  }
}

TEST(CrossEntropyLoss, RandomBatches) {
  Random random(20261201);
  const char* const reductions[] = {"none", "mean", "sum"};
  for (int turn = 0; turn < 90; ++turn) {
    const int64_t n = DrawnExtent(random, 1, 5), classes = DrawnExtent(random, 1, 6);
    const Tensor x = Scaled(Waves(kF64, {n, classes}, turn), 3, 0);
    const bool weighs = turn % 2 == 0;
    const Tensor weight = Scaled(Waves(kF64, {classes}, turn + 1), 0.4, 0.6);
    const int64_t ignored = turn % 4 == 0 ? DrawnExtent(random, 0, classes - 1) : -100;
    std::vector<double> ids;
    for (int64_t i = 0; i < n; ++i)
      ids.push_back(static_cast<double>(DrawnExtent(random, 0, classes - 1)));
    if (ignored >= 0) ids[0] = static_cast<double>((ignored + 1) % classes);
    const Tensor target =
        FromDoubles(turn % 3 == 0 ? DataType::kInt32 : DataType::kInt64, {n}, ids);
    const char* const reduction = reductions[turn % 3];
    const double smooth = turn % 5 == 0 ? 0.25 : 0;
    OpCall call = {.type = "CrossEntropyLoss",
                   .inputs = {{"input", x}, {"target", target}},
                   .attrs = {{"reduction", AttrValue::String(reduction)},
                             {"ignore_index", AttrValue::Int(ignored)},
                             {"label_smoothing", AttrValue::Float(static_cast<float>(smooth))}}};
    if (weighs) call.inputs.push_back({"weight", weight});
    if (classes == 1 && ignored == 0) continue;  // no sample is left, and the mean is 0 / 0
    const std::vector<double> values = ToDoubles(x), w = ToDoubles(weight);
    std::vector<double> log_prob, loss;
    double total = 0;
    for (size_t s = 0; s < static_cast<size_t>(n); ++s) {
      const auto c = static_cast<size_t>(classes);
      double sum = 0;
      for (size_t i = 0; i < c; ++i) sum += std::exp(values[s * c + i]);
      for (size_t i = 0; i < c; ++i) log_prob.push_back(values[s * c + i] - std::log(sum));
      const auto y = static_cast<size_t>(ids[s]);
      double all = 0;
      for (size_t i = 0; i < c; ++i) all += (weighs ? w[i] : 1) * log_prob[s * c + i];
      const double factor = weighs ? w[y] : 1;
      const bool counts = ids[s] != static_cast<double>(ignored);
      if (counts) total += factor;
      loss.push_back(counts ? -(1 - smooth) * factor * log_prob[s * c + y] -
                                  smooth / static_cast<double>(classes) * all
                            : 0);
    }
    if (std::string(reduction) != "none") {
      double sum = 0;
      for (const double each : loss) sum += each;
      loss = {std::string(reduction) == "mean" ? sum / total : sum};
    }
    const std::vector<Tensor> out = Results(call);
    const std::string what = "turn " + std::to_string(turn);
    ExpectNear(out[0], loss, 1e-12, what);
    ExpectNear(out[1], log_prob, 1e-12, what);
    EXPECT_EQ(out[2].shape(), Shape{0});
    EXPECT_EQ(out[3].shape(), Shape{0});

    const Tensor dy = Scaled(Waves(kF64, out[0].shape(), turn), 1, 1.5);
    OpCall backward = {.type = "CrossEntropyLossGrad",
                       .inputs = {{"grad_loss", dy}, {"log_prob", out[1]}, {"target", target}},
                       .attrs = call.attrs};
    if (weighs) backward.inputs.push_back({"weight", weight});
    ExpectGradient(call, "input", dy, Results(backward)[0]);
  }
}

TEST(GemmaRmsNorm, AddsOneToGamma) {
  Random random(20261202);
  const DataType types[] = {kF32, kF16, kBf16};
  for (int turn = 0; turn < 80; ++turn) {
    const DataType dtype = types[turn % 3];
    const Shape shape = {DrawnExtent(random, 1, 3), DrawnExtent(random, 1, 4),
                         DrawnExtent(random, 1, 40)};
    const Shape span = turn % 4 == 0 ? Shape{shape[1], shape[2]} : Shape{shape[2]};
    const Tensor x = Waves(dtype, shape, turn), gamma = Waves(dtype, span, turn + 0.5);
    const std::vector<double> values = ToDoubles(x), scale = ToDoubles(gamma);
    const auto width = static_cast<size_t>(span.elements());
    std::vector<double> y, rstd;
    for (size_t r = 0; r < values.size(); r += width) {
      double squares = 0;
      for (size_t i = 0; i < width; ++i) squares += values[r + i] * values[r + i];
      rstd.push_back(1 / std::sqrt(squares / static_cast<double>(width) + 1e-6));
      for (size_t i = 0; i < width; ++i) y.push_back(values[r + i] * rstd.back() * (1 + scale[i]));
    }
    const std::vector<Tensor> out =
        Results({.type = "GemmaRmsNorm", .inputs = {{"x", x}, {"gamma", gamma}}});
    ExpectNear(out[0], y, TypeBound(dtype), "turn " + std::to_string(turn));
    ExpectNear(out[1], rstd, 2e-6);
    EXPECT_EQ(out[1].dtype(), kF32);
  }
}

}  // namespace
}  // namespace npumesh
