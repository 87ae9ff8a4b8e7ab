#include "tests/models/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/op_values.h"

namespace npumesh::models {

// splitmix64 (Steele, Lea and Flood, 2014), as a multiple of 1/256 in [-1, 1).
double Parameters::Noise() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t bits = state_;
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
  return static_cast<double>((bits ^ (bits >> 31)) >> 55) / 256 - 1;
}

void Parameters::Add(const std::string& name, Shape shape, double spread, double middle) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) {
    value = static_cast<double>(static_cast<float>(middle + spread * Noise()));
  }
  all_.push_back({name, std::move(shape), std::move(values)});
}

Parameter& Parameters::at(const std::string& name) {
  return *std::find_if(all_.begin(), all_.end(), [&](const auto& p) { return p.name == name; });
}

const Parameter& Parameters::at(const std::string& name) const {
  return const_cast<Parameters*>(this)->at(name);
}

ParameterReals Parameters::Constants() const {
  ParameterReals reals;
  for (const Parameter& parameter : all_) {
    reals[parameter.name] = Reals(parameter.values.begin(), parameter.values.end());
  }
  return reals;
}

LossAndGradients Differentiate(const Parameters& parameters, const LossFunction& loss) {
  Tape tape;
  ParameterReals reals;
  for (const Parameter& parameter : parameters.all()) {
    Reals& own = reals[parameter.name];
    for (const double value : parameter.values) own.push_back(tape.Variable(value));
  }
  const Real result = loss(reals);
  const std::vector<double> slopes = tape.Gradients(result);
  LossAndGradients all{result.value, {}};
  for (const auto& [name, own] : reals) {
    for (const Real& real : own) {
      all.gradients[name].push_back(slopes[static_cast<size_t>(real.place)]);
    }
  }
  return all;
}

void ExpectCentralDifferences(const Parameters& parameters, const LossFunction& loss,
                              const LossAndGradients& seen, int samples) {
  constexpr double kStep = 1e-5;
  for (const Parameter& parameter : parameters.all()) {
    const size_t count = parameter.values.size();
    for (int sample = 0; sample < samples; ++sample) {
      const size_t i = (static_cast<size_t>(sample) * 7919 + count / 3) % count;
      ParameterReals moved = parameters.Constants();
      moved[parameter.name][i] = parameter.values[i] + kStep;
      const double above = loss(moved).value;
      moved[parameter.name][i] = parameter.values[i] - kStep;
      const double below = loss(moved).value;
      const double slope = seen.gradients.at(parameter.name)[i];
      EXPECT_NEAR((above - below) / (2 * kStep), slope, 1e-8 + 1e-6 * std::abs(slope))
          << parameter.name << "[" << i << "]";
    }
  }
}

void AdamW::Step(Parameters& parameters, const LossAndGradients& at) {
  ++steps;
  for (const Parameter& parameter : parameters.all()) {
    const std::vector<double>& g = at.gradients.at(parameter.name);
    std::vector<double>& first = m[parameter.name];
    std::vector<double>& second = v[parameter.name];
    first.resize(g.size());
    second.resize(g.size());
    std::vector<double>& p = parameters.at(parameter.name).values;
    for (size_t i = 0; i < g.size(); ++i) {
      first[i] = beta1 * first[i] + (1 - beta1) * g[i];
      second[i] = beta2 * second[i] + (1 - beta2) * g[i] * g[i];
      const double mean = first[i] / (1 - std::pow(beta1, steps));
      const double root = std::sqrt(second[i] / (1 - std::pow(beta2, steps)));
      p[i] -= lr * weight_decay * p[i];
      p[i] -= lr * mean / (root + epsilon);
    }
  }
}

void Momentum::Step(Parameters& parameters, const LossAndGradients& at) {
  for (const Parameter& parameter : parameters.all()) {
    const std::vector<double>& g = at.gradients.at(parameter.name);
    std::vector<double>& moving = accum[parameter.name];
    moving.resize(g.size());
    std::vector<double>& p = parameters.at(parameter.name).values;
    for (size_t i = 0; i < g.size(); ++i) {
      moving[i] = momentum * moving[i] + g[i] + weight_decay * p[i];
      p[i] -= lr * moving[i];
    }
  }
}

Tensor TensorOf(const Shape& shape, const std::vector<double>& values, DataType dtype) {
  return FromDoubles(dtype, shape, values);
}

Tensor TensorOf(const Parameter& parameter, DataType dtype) {
  return FromDoubles(dtype, parameter.shape, parameter.values);
}

std::vector<double> ValuesIn(const Tensor& tensor) {
  return ToDoubles(tensor);
}

}  // namespace npumesh::models
