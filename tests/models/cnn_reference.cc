// The network of cnn.h in plain loops.
#include <algorithm>

#include "tests/models/aten_image.h"
#include "tests/models/cnn.h"
#include "tests/models/plain_math.h"

namespace npumesh::models {
namespace {

const std::vector<CnnUnit>& Units() {
  static const std::vector<CnnUnit> units = {{"stem", kImageChannels, 6, 3, 1, 1, false},
                                             {"a1", 6, 6, 3, 1, 1, false},
                                             {"a2", 6, 6, 3, 1, 1, false},
                                             {"b1", 6, 8, 3, 2, 1, false},
                                             {"b2", 8, 8, 3, 1, 8, true},
                                             {"skip", 6, 8, 1, 2, 1, false}};
  return units;
}

// [n, channels, side, side].
struct Image {
  int64_t n = 0, channels = 0, side = 0;
  Reals values;
  size_t at(int64_t b, int64_t c, int64_t i, int64_t j) const {
    return At(((b * channels + c) * side + i) * side + j);
  }
};

Image Convolved(const Image& x, const CnnUnit& unit, const Reals& filter, const Reals* bias) {
  const int64_t pad = unit.kernel / 2, share = unit.inputs / unit.groups;
  Image y{x.n, unit.outputs, (x.side + 2 * pad - unit.kernel) / unit.stride + 1, {}};
  for (int64_t b = 0; b < y.n; ++b) {
    for (int64_t o = 0; o < y.channels; ++o) {
      const int64_t first = o / (unit.outputs / unit.groups) * share;
      for (int64_t i = 0; i < y.side; ++i) {
        for (int64_t j = 0; j < y.side; ++j) {
          Real sum = bias == nullptr ? Real(0) : (*bias)[At(o)];
          for (int64_t c = 0; c < share; ++c) {
            for (int64_t k = 0; k < unit.kernel * unit.kernel; ++k) {
              const int64_t row = i * unit.stride + k / unit.kernel - pad;
              const int64_t column = j * unit.stride + k % unit.kernel - pad;
              if (row < 0 || row >= x.side || column < 0 || column >= x.side) continue;
              sum += x.values[x.at(b, first + c, row, column)] *
                     filter[At((o * share + c) * unit.kernel * unit.kernel + k)];
            }
          }
          y.values.push_back(sum);
        }
      }
    }
  }
  return y;
}

Image Pooled(const Image& x) {
  Image y{x.n, x.channels, (x.side + 1) / 2, {}};
  for (int64_t plane = 0; plane < x.n * x.channels; ++plane) {
    for (int64_t cell = 0; cell < y.side * y.side; ++cell) {
      const Real* best = nullptr;
      for (int64_t k = 0; k < 9; ++k) {
        const int64_t i = cell / y.side * 2 + k / 3 - 1, j = cell % y.side * 2 + k % 3 - 1;
        if (i < 0 || i >= x.side || j < 0 || j >= x.side) continue;
        const Real& value = x.values[At((plane * x.side + i) * x.side + j)];
        if (best == nullptr || value.value > best->value) best = &value;
      }
      y.values.push_back(*best);
    }
  }
  return y;
}

// Says what mean and variance a channel is normalised with.
using Moments = std::function<std::pair<Real, Real>(const CnnUnit&, const Image&, int64_t channel)>;

class CnnPass {
 public:
  CnnPass(const ParameterReals& p, Moments moments) : p_(p), moments_(std::move(moments)) {}

  Reals Logits(const std::vector<double>& images) const {
    constexpr int64_t kPixels = kImageChannels * kImageSide * kImageSide;
    Image x{static_cast<int64_t>(images.size()) / kPixels, kImageChannels, kImageSide,
            Reals(images.begin(), images.end())};
    x = Pooled(Active(Apply("stem", x)));
    x = Active(Sum(Apply("a2", Active(Apply("a1", x))), x));
    x = Active(Sum(Apply("b2", Active(Apply("b1", x))), Apply("skip", x)));
    Reals means(At(x.n * x.channels));
    const int64_t cells = x.side * x.side;
    for (size_t i = 0; i < x.values.size(); ++i) {
      means[i / At(cells)] += x.values[i] / static_cast<double>(cells);
    }
    return WithBias(LinearOf(means, p_.at("fc.w"), x.channels, kClasses), p_.at("fc.b"));
  }

 private:
  Image Apply(const std::string& name, const Image& x) const {
    const CnnUnit& unit = UnitOf(name);
    Image y = Convolved(x, unit, p_.at(name + ".w"), unit.bias ? &p_.at(name + ".b") : nullptr);
    Image out = y;
    for (int64_t c = 0; c < y.channels; ++c) {
      const auto [mean, variance] = moments_(unit, y, c);
      const Real root = Sqrt(variance + kBatchNormEpsilon);
      for (size_t i = 0; i < y.values.size(); ++i) {
        if (static_cast<int64_t>(i) / (y.side * y.side) % y.channels != c) continue;
        out.values[i] = (y.values[i] - mean) / root * p_.at(name + ".gamma")[At(c)] +
                        p_.at(name + ".beta")[At(c)];
      }
    }
    return out;
  }
  static Image Active(Image x) {
    for (Real& value : x.values) value = Relu(value);
    return x;
  }
  static Image Sum(Image a, const Image& b) {
    a.values = SumOf(std::move(a.values), b.values);
    return a;
  }

  const ParameterReals& p_;
  Moments moments_;
};

// Of one channel over batch and image; the variance biased.
std::pair<Real, Real> MomentsOf(const Image& x, int64_t channel) {
  const size_t cells = At(x.side * x.side);
  Reals values;
  for (int64_t b = 0; b < x.n; ++b) {
    const auto first = x.values.begin() + static_cast<ptrdiff_t>(x.at(b, channel, 0, 0));
    values.insert(values.end(), first, first + static_cast<ptrdiff_t>(cells));
  }
  const auto count = static_cast<double>(values.size());
  Real mean, variance;
  for (const Real& value : values) mean += value / count;
  for (const Real& value : values) variance += (value - mean) * (value - mean) / count;
  return {mean, variance};
}

}  // namespace

const CnnUnit& UnitOf(const std::string& name) {
  return *std::find_if(Units().begin(), Units().end(),
                       [&](const CnnUnit& unit) { return unit.name == name; });
}

Parameters CnnParameters(uint64_t seed) {
  Parameters p(seed);
  for (const CnnUnit& unit : Units()) {
    p.Add(unit.name + ".w", {unit.outputs, unit.inputs / unit.groups, unit.kernel, unit.kernel},
          0.5);
    if (unit.bias) p.Add(unit.name + ".b", {unit.outputs}, 0.25);
    p.Add(unit.name + ".gamma", {unit.outputs}, 0.25, 1);
    p.Add(unit.name + ".beta", {unit.outputs}, 0.25);
  }
  p.Add("fc.w", {kClasses, 8}, 0.5);
  p.Add("fc.b", {kClasses}, 0.25);
  return p;
}

Parameters CnnStatistics(uint64_t seed) {
  Parameters p(seed);
  for (const CnnUnit& unit : Units()) {
    p.Add(unit.name + ".mean", {unit.outputs}, 0.25);
    p.Add(unit.name + ".var", {unit.outputs}, 0.5, 1);
  }
  return p;
}

std::vector<double> CnnImages(int64_t images, uint64_t seed) {
  Parameters noise(seed);
  noise.Add("image", {images, kImageChannels, kImageSide, kImageSide}, 1);
  return noise.at("image").values;
}

Reals CnnLogits(const ParameterReals& parameters, const ParameterReals& statistics,
                const std::vector<double>& images) {
  const CnnPass pass(parameters, [&](const CnnUnit& unit, const Image&, int64_t channel) {
    return std::pair(statistics.at(unit.name + ".mean")[At(channel)],
                     statistics.at(unit.name + ".var")[At(channel)]);
  });
  return pass.Logits(images);
}

Real CnnLoss(const ParameterReals& parameters, const std::vector<double>& images,
             const std::vector<int64_t>& labels, Parameters* moved) {
  const CnnPass pass(parameters, [&](const CnnUnit& unit, const Image& x, int64_t channel) {
    const auto moments = MomentsOf(x, channel);
    if (moved != nullptr) {
      const auto count = static_cast<double>(x.n * x.side * x.side);
      double& mean = moved->at(unit.name + ".mean").values[At(channel)];
      double& variance = moved->at(unit.name + ".var").values[At(channel)];
      mean += kBatchNormMomentum * (moments.first.value - mean);
      variance += kBatchNormMomentum * (moments.second.value * count / (count - 1) - variance);
    }
    return moments;
  });
  return CrossEntropyOf(pass.Logits(images), labels, kClasses);
}

}  // namespace npumesh::models
