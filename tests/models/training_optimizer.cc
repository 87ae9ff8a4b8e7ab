#include "tests/models/training_optimizer.h"

namespace npumesh::models {

void OptimizerWriter::Declare(const Parameter& parameter, Value var) {
  const TensorType type{DataType::kFloat, parameter.shape};
  names_.push_back(parameter.name);
  vars_.push_back(var);
  firsts_.push_back(g_.RefInput(parameter.name + ".m", type));
  seconds_.push_back(g_.RefInput(parameter.name + ".v", type));
}

void OptimizerWriter::DeclareShared() {
  const TensorType scalar{DataType::kFloat, Shape()};
  if (config_.form == OptimizerForm::kFused) {
    beta1_power_ = g_.RefInput("beta1_power", scalar);
    beta2_power_ = g_.RefInput("beta2_power", scalar);
  } else {
    steps_ = g_.RefInput("steps", scalar);
  }
}

void OptimizerWriter::Write(const std::map<std::string, Value>& gradients) {
  if (config_.form == OptimizerForm::kFused) {
    WriteFused(gradients);
  } else {
    WriteForeach(gradients);
  }
}

// The powers are those of the step before; every parameter reads them before they move on.
void OptimizerWriter::WriteFused(const std::map<std::string, Value>& gradients) {
  const AdamW& adam = config_.adam;
  for (size_t i = 0; i < names_.size(); ++i) {
    g_.Op("ApplyAdamW", {{"var", vars_[i]},
                         {"m", firsts_[i]},
                         {"v", seconds_[i]},
                         {"beta1_power", beta1_power_},
                         {"beta2_power", beta2_power_},
                         {"lr", g_.Scalar(adam.lr)},
                         {"weight_decay", g_.Scalar(adam.weight_decay)},
                         {"beta1", g_.Scalar(adam.beta1)},
                         {"beta2", g_.Scalar(adam.beta2)},
                         {"epsilon", g_.Scalar(adam.epsilon)},
                         {"grad", gradients.at(names_[i])}});
  }
  Copy(beta1_power_, g_.MulScalar(beta1_power_, adam.beta1));
  Copy(beta2_power_, g_.MulScalar(beta2_power_, adam.beta2));
}

std::vector<Value> OptimizerWriter::Foreach(
    const std::string& type, const std::vector<std::pair<std::string, std::vector<Value>>>& lists,
    const std::string& scalar, double value) {
  std::vector<GraphBuilder::Input> inputs;
  for (const auto& [port, values] : lists) {
    for (size_t i = 0; i < values.size(); ++i) {
      inputs.emplace_back(fmt::format("{}{}", port, i), values[i]);
    }
  }
  inputs.emplace_back(scalar, g_.Scalar(value));
  const size_t count = lists.front().second.size();
  const Value first = g_.Op(type, std::move(inputs), {}, static_cast<int>(count));
  std::vector<Value> results;
  for (size_t i = 0; i < count; ++i) results.push_back(g_.Port(first, static_cast<int>(i)));
  return results;
}

// _multi_tensor_adamw of PyTorch with capturable=True, its in-place calls made functional.
void OptimizerWriter::WriteForeach(const std::map<std::string, Value>& gradients) {
  const AdamW& adam = config_.adam;
  std::vector<Value> grads;
  for (const std::string& name : names_) grads.push_back(gradients.at(name));
  const Value step = g_.AddScalar(steps_, 1);
  const std::vector<Value> decayed =
      Foreach("ForeachMulScalar", {{"x", vars_}}, "scalar", 1 - adam.lr * adam.weight_decay);
  const std::vector<Value> firsts =
      Foreach("ForeachLerpScalar", {{"x1", firsts_}, {"x2", grads}}, "weight", 1 - adam.beta1);
  const std::vector<Value> scaled =
      Foreach("ForeachMulScalar", {{"x", seconds_}}, "scalar", adam.beta2);
  const std::vector<Value> seconds =
      Foreach("ForeachAddcmulScalar", {{"x1", scaled}, {"x2", grads}, {"x3", grads}}, "scalar",
              1 - adam.beta2);
  // step_size = lr / (beta1 ^ step - 1), which is negative; the root of 1 - beta2 ^ step.
  const auto power_less_one = [&](double beta) {
    const Value power = g_.Op("Pow", {{"x1", g_.Scalar(beta)}, {"x2", step}});
    return g_.Sub(power, g_.Scalar(1));
  };
  const Value step_size = g_.Unary("Reciprocal", g_.DivScalar(power_less_one(adam.beta1), adam.lr));
  const Value root = g_.Unary("Sqrt", g_.Unary("Neg", power_less_one(adam.beta2)));
  std::vector<Value> bottoms;
  for (const Value second : seconds) {
    bottoms.push_back(g_.Div(g_.Unary("Sqrt", second), root));
  }
  bottoms = Foreach("ForeachAddScalar", {{"x", bottoms}}, "scalar", adam.epsilon);
  for (Value& bottom : bottoms) bottom = g_.Div(bottom, step_size);
  const std::vector<Value> moved = Foreach(
      "ForeachAddcdivScalar", {{"x1", decayed}, {"x2", firsts}, {"x3", bottoms}}, "scalar", 1);
  for (size_t i = 0; i < names_.size(); ++i) {
    Copy(vars_[i], moved[i]);
    Copy(firsts_[i], firsts[i]);
    Copy(seconds_[i], seconds[i]);
  }
  Copy(steps_, step);
}

std::map<std::string, Tensor> OptimizerStart(const TrainingConfig& config,
                                             const std::vector<Parameter>& parameters) {
  std::map<std::string, Tensor> start;
  for (const Parameter& parameter : parameters) {
    const TensorType type{DataType::kFloat, parameter.shape};
    start[parameter.name + ".m"] = Tensor::Allocate(type);
    start[parameter.name + ".v"] = Tensor::Allocate(type);
  }
  if (config.form == OptimizerForm::kFused) {
    start["beta1_power"] = TensorOf(Shape(), {1});
    start["beta2_power"] = TensorOf(Shape(), {1});
  } else {
    start["steps"] = TensorOf(Shape(), {0});
  }
  return start;
}

}  // namespace npumesh::models
