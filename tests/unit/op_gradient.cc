#include "tests/unit/op_gradient.h"

#include <cmath>

namespace npumesh {

Tensor Waves(DataType dtype, Shape shape, double seed) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::sin(seed + 1.7 * static_cast<double>(i) + 0.013 * static_cast<double>(i * i));
  }
  return FromDoubles(dtype, std::move(shape), values);
}

Tensor Scaled(const Tensor& tensor, double factor, double offset) {
  std::vector<double> values = ToDoubles(tensor);
  for (double& value : values) value = value * factor + offset;
  return FromDoubles(tensor.dtype(), tensor.shape(), values);
}

namespace {

const Tensor* InputOf(const OpCall& call, const std::string& port) {
  for (const OpInput& input : call.inputs) {
    if (input.port == port) return &input.value;
  }
  ADD_FAILURE() << call.type << " has no input " << port;
  return nullptr;
}

double Weighted(const OpCall& call, const Tensor& dy, int output) {
  const Result<std::vector<Tensor>> outputs = RunOp(call);
  EXPECT_TRUE(outputs.ok()) << call.type << ": " << outputs.status().ToString();
  if (!outputs.ok()) return 0;
  const std::vector<double> y = ToDoubles((*outputs)[static_cast<size_t>(output)]);
  const std::vector<double> weights = ToDoubles(dy);
  EXPECT_EQ(y.size(), weights.size());
  double sum = 0;
  for (size_t i = 0; i < y.size() && i < weights.size(); ++i) sum += y[i] * weights[i];
  return sum;
}

}  // namespace

void ExpectGradient(OpCall forward, const std::string& port, const Tensor& dy,
                    const Tensor& gradient, double tolerance, int output) {
  constexpr double kStep = 1e-5;
  const Tensor* input = InputOf(forward, port);
  ASSERT_NE(input, nullptr);
  ASSERT_EQ(input->dtype(), DataType::kDouble);
  const Tensor at = *input;
  const std::vector<double> found = ToDoubles(gradient);
  std::vector<double> values = ToDoubles(at);
  ASSERT_EQ(found.size(), values.size()) << forward.type << " by " << port;
  for (OpInput& entry : forward.inputs) {
    if (entry.port != port) continue;
    for (size_t i = 0; i < values.size(); ++i) {
      const double before = values[i];
      const auto value_at = [&](double value) {
        values[i] = value;
        entry.value = FromDoubles(DataType::kDouble, at.shape(), values);
        return Weighted(forward, dy, output);
      };
      const double slope = (value_at(before + kStep) - value_at(before - kStep)) / (2 * kStep);
      values[i] = before;
      EXPECT_NEAR(found[i], slope, tolerance * (1 + std::abs(slope)))
          << forward.type << ", element " << i << " of " << port;
    }
  }
}

std::vector<Tensor> Outputs(const OpCall& call) {
  Result<std::vector<Tensor>> outputs = RunOp(call);
  EXPECT_TRUE(outputs.ok()) << call.type << ": " << outputs.status().ToString();
  if (!outputs.ok()) return {};
  return std::move(outputs).value();
}

void ExpectNear(const Tensor& actual, const std::vector<double>& expected, double tolerance,
                const std::string& what) {
  const std::vector<double> values = ToDoubles(actual);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i])))
        << what << ", element " << i;
  }
}

}  // namespace npumesh
