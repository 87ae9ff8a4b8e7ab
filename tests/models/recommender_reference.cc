// The recommender of recommender.h in plain loops.
#include <cmath>

#include "tests/models/plain_math.h"
#include "tests/models/recommender.h"

namespace npumesh::models {
namespace {

// Rows `ids[i]` of `table`, summed into rows `sample(i)` of [samples, kEmbedding].
template <typename SampleOf>
Reals SumRows(const Reals& table, const std::vector<int64_t>& ids, int64_t samples,
              SampleOf sample) {
  Reals sums(At(samples * kEmbedding));
  for (size_t i = 0; i < ids.size(); ++i) {
    for (int64_t e = 0; e < kEmbedding; ++e) {
      sums[At(sample(i) * kEmbedding + e)] += table[At(ids[i] * kEmbedding + e)];
    }
  }
  return sums;
}

Reals Active(Reals x) {
  for (Real& value : x) value = Relu(value);
  return x;
}

}  // namespace

Reals RecommenderLogits(const ParameterReals& p, const Clicks& clicks) {
  const int64_t samples = clicks.samples();
  const Reals dense(clicks.dense.begin(), clicks.dense.end());
  const Reals bottom =
      Active(WithBias(LinearOf(dense, p.at("wb"), kDenseFeatures, kEmbedding), p.at("bb")));
  const Reals bag = SumRows(p.at("first"), clicks.first_ids, samples, [&](size_t i) {
    int64_t sample = 0;
    for (int64_t s = 0; s < samples; ++s) {
      if (clicks.first_offsets[At(s)] <= static_cast<int64_t>(i)) sample = s;
    }
    return sample;
  });
  const Reals projected = LinearOf(p.at("second"), p.at("wp"), kEmbedding, kEmbedding);
  const Reals sums = SumRows(projected, clicks.second_ids, samples,
                             [&](size_t i) { return clicks.second_segments[i]; });
  Reals features;
  for (int64_t s = 0; s < samples; ++s) {
    const size_t row = At(s * kEmbedding);
    for (size_t e = 0; e < At(kEmbedding); ++e) features.push_back(bottom[row + e]);
    for (const auto& [a, b] : {std::pair(&bag, &bottom), {&sums, &bottom}, {&sums, &bag}}) {
      Real product;
      for (size_t e = 0; e < At(kEmbedding); ++e) product += (*a)[row + e] * (*b)[row + e];
      features.push_back(product);
    }
  }
  const Reals top =
      Active(WithBias(LinearOf(features, p.at("w1"), kEmbedding + 3, kTop), p.at("b1")));
  return WithBias(LinearOf(top, p.at("w2"), kTop, 1), p.at("b2"));
}

// Mean of -log of the probability of each label.
Real RecommenderLoss(const ParameterReals& p, const Clicks& clicks) {
  const Reals logits = RecommenderLogits(p, clicks);
  Real loss;
  for (size_t i = 0; i < logits.size(); ++i) {
    loss += clicks.labels[i] == 1 ? Softplus(-logits[i]) : Softplus(logits[i]);
  }
  return loss / static_cast<double>(clicks.samples());
}

Clicks MakeClicks(int64_t samples, uint64_t seed, bool no_ids) {
  Parameters noise(seed);
  noise.Add("dense", {samples, kDenseFeatures}, 1);
  Clicks clicks{noise.at("dense").values, {}, {}, {}, {}, {}};
  const auto salt = static_cast<int64_t>(seed);
  for (int64_t s = 0; s < samples; ++s) {
    clicks.labels.push_back(static_cast<double>((s + salt) % 3 == 0));
    clicks.first_offsets.push_back(static_cast<int64_t>(clicks.first_ids.size()));
    const int64_t firsts = no_ids ? 0 : (s * 2 + salt) % 4;
    for (int64_t i = 0; i < firsts; ++i) {
      clicks.first_ids.push_back((s * 3 + i * i * 5 + salt) % kFirstRows);
    }
    const int64_t seconds = no_ids ? 0 : (s + salt) % 3;
    for (int64_t i = 0; i < seconds; ++i) {
      clicks.second_ids.push_back((s * s + i * 6 + salt) % kSecondRows);
      clicks.second_segments.push_back(s);
    }
  }
  return clicks;
}

std::map<std::string, Tensor> FeedsOf(const Clicks& clicks, bool training) {
  const auto ints = [](const std::vector<int64_t>& values) {
    return Tensor::FromVector<int64_t>({DataType::kInt64, {static_cast<int64_t>(values.size())}},
                                       values);
  };
  std::map<std::string, Tensor> feeds = {
      {"dense", TensorOf({clicks.samples(), kDenseFeatures}, clicks.dense)},
      {"first_ids", ints(clicks.first_ids)},
      {"first_offsets", ints(clicks.first_offsets)},
      {"second_ids", ints(clicks.second_ids)},
      {"second_segments", ints(clicks.second_segments)}};
  if (training) feeds["labels"] = TensorOf({clicks.samples()}, clicks.labels);
  return feeds;
}

Parameters RecommenderParameters(uint64_t seed) {
  Parameters p(seed);
  p.Add("wb", {kEmbedding, kDenseFeatures}, 0.5);
  p.Add("bb", {kEmbedding}, 0.5, 0.5);
  p.Add("first", {kFirstRows, kEmbedding}, 0.5);
  p.Add("second", {kSecondRows, kEmbedding}, 0.5);
  p.Add("wp", {kEmbedding, kEmbedding}, 0.5);
  p.Add("w1", {kTop, kEmbedding + 3}, 0.5);
  p.Add("b1", {kTop}, 0.5, 0.5);
  p.Add("w2", {1, kTop}, 0.5);
  p.Add("b2", {1}, 0.5);
  return p;
}

void Adagrad::Step(Parameters& parameters, const LossAndGradients& at) {
  for (const Parameter& parameter : parameters.all()) {
    const std::vector<double>& g = at.gradients.at(parameter.name);
    std::vector<double>& sum = accum[parameter.name];
    sum.resize(g.size(), start);
    std::vector<double>& p = parameters.at(parameter.name).values;
    for (size_t i = 0; i < g.size(); ++i) {
      sum[i] += g[i] * g[i];
      p[i] -= lr * g[i] / std::sqrt(sum[i]);
    }
  }
}

}  // namespace npumesh::models
