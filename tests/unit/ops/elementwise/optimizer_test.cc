// Optimizers: two steps by hand beside two steps of the operator, which writes its slots.
#include <map>

#include "tests/unit/ops/elementwise/pointwise_cases.h"

namespace npumesh {
namespace {

// The variables of one element by port name.
using State = std::map<std::string, double>;

struct OptimizerCase {
  std::string type;
  std::vector<std::string> updated;    // tensors, in the order of the slots
  std::vector<std::string> constants;  // one element each
  std::function<void(State&)> step;    // on one element
  std::string grad = "grad";
  Attrs attrs = {};
};

const std::map<std::string, double> kConstants = {
    {"beta1_power", 0.9}, {"beta2_power", 0.99},  {"lr", 0.125},          {"beta1", 0.9},
    {"beta2", 0.99},      {"epsilon", 0.0625},    {"weight_decay", 0.25}, {"momentum", 0.75},
    {"rho", 0.5},         {"learning_rate", 0.5}, {"alpha", 0.25},        {"l1", 0.5},
    {"l2", 0.125},        {"lr_power", -0.5},     {"logbase", 0.5},       {"sign_decay", 0.75},
    {"beta", 0.5},
};

const OptimizerCase kOptimizerCases[] = {
    {"ApplyAdam",
     {"var", "m", "v"},
     {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
     [](State& s) {
       s["m"] = 0.9 * s["m"] + 0.1 * s["grad"];
       s["v"] = 0.99 * s["v"] + 0.01 * s["grad"] * s["grad"];
       s["var"] -= 0.125 * std::sqrt(0.01) / 0.1 * s["m"] / (std::sqrt(s["v"]) + 0.0625);
     }},
    {"ApplyAdamD",
     {"var", "m", "v"},
     {"beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon"},
     [](State& s) {
       s["m"] = 0.9 * s["m"] + 0.1 * s["grad"];
       s["v"] = 0.99 * s["v"] + 0.01 * s["grad"] * s["grad"];
       s["var"] -= 0.125 * std::sqrt(0.01) / 0.1 * (0.9 * s["m"] + 0.1 * s["grad"]) /
                   (std::sqrt(s["v"]) + 0.0625);
     },
     "grad",
     {{"use_nesterov", AttrValue::Bool(true)}}},
    {"ApplyAdamW",
     {"var", "m", "v"},
     {"beta1_power", "beta2_power", "lr", "weight_decay", "beta1", "beta2", "epsilon"},
     [](State& s) {
       const double g = -s["grad"];
       s["m"] = 0.9 * s["m"] + 0.1 * g;
       s["v"] = 0.99 * s["v"] + 0.01 * g * g;
       const double m_hat = s["m"] / (1 - 0.81);
       const double v_hat = s["v"] / (1 - 0.9801);
       s["var"] = s["var"] * (1 - 0.125 * 0.25) - 0.125 * m_hat / (std::sqrt(v_hat) + 0.0625);
     },
     "grad",
     {{"maximize", AttrValue::Bool(true)}}},
    {"ApplyAdaMax",
     {"var", "m", "v"},
     {"beta1_power", "lr", "beta1", "beta2", "epsilon"},
     [](State& s) {
       s["m"] = 0.9 * s["m"] + 0.1 * s["grad"];
       s["v"] = std::max(0.99 * s["v"], std::fabs(s["grad"]));
       s["var"] -= 0.125 / 0.1 * s["m"] / (s["v"] + 0.0625);
     }},
    {"ApplyMomentum",
     {"var", "accum"},
     {"lr", "momentum"},
     [](State& s) {
       s["accum"] = 0.75 * s["accum"] + s["grad"];
       s["var"] -= 0.125 * s["accum"];
     }},
    {"ApplyMomentumD",
     {"var", "accum"},
     {"lr", "momentum"},
     [](State& s) {
       s["accum"] = 0.75 * s["accum"] + s["grad"];
       s["var"] -= 0.125 * s["grad"] + 0.125 * 0.75 * s["accum"];
     },
     "grad",
     {{"use_nesterov", AttrValue::Bool(true)}}},
    {"ApplyKerasMomentum",
     {"var", "accum"},
     {"lr", "momentum"},
     [](State& s) {
       s["accum"] = 0.75 * s["accum"] - 0.125 * s["grad"];
       s["var"] += s["accum"];
     }},
    {"SGD",
     {"parameters", "accum", "stat"},
     {"learning_rate", "momentum"},
     [](State& s) {
       const double g = s["gradient"] + 0.5 * s["parameters"];
       s["accum"] = 0.75 * s["accum"] + (1 - (1 - s["stat"]) * 0.25) * g;
       s["parameters"] -= 0.5 * s["accum"];
       s["stat"] = 0;
     },
     "gradient",
     {{"dampening", AttrValue::Float(0.25f)}, {"weight_decay", AttrValue::Float(0.5f)}}},
    {"ApplyGradientDescent",
     {"var"},
     {"alpha"},
     [](State& s) { s["var"] -= 0.25 * s["delta"]; },
     "delta"},
    {"ApplyProximalGradientDescent",
     {"var"},
     {"alpha", "l1", "l2"},
     [](State& s) {
       const double moved = s["var"] - 0.25 * s["delta"];
       const double left = std::max(std::fabs(moved) - 0.25 * 0.5, 0.0);
       s["var"] = (moved < 0 ? -left : left) / (1 + 0.25 * 0.125);
     },
     "delta"},
    {"ApplyRMSProp",
     {"var", "ms", "mom"},
     {"lr", "rho", "momentum", "epsilon"},
     [](State& s) {
       s["ms"] = 0.5 * s["ms"] + 0.5 * s["grad"] * s["grad"];
       s["mom"] = 0.75 * s["mom"] + 0.125 * s["grad"] / std::sqrt(s["ms"] + 0.0625);
       s["var"] -= s["mom"];
     }},
    {"ApplyRMSPropD",
     {"var", "ms", "mom"},
     {"lr"},
     [](State& s) {
       s["ms"] = 0.5 * s["ms"] + 0.5 * s["grad"] * s["grad"];
       s["mom"] = 0.75 * s["mom"] + 0.125 * s["grad"] / std::sqrt(s["ms"] + 0.0625);
       s["var"] -= s["mom"];
     },
     "grad",
     {{"rho", AttrValue::Float(0.5f)},
      {"momentum", AttrValue::Float(0.75f)},
      {"epsilon", AttrValue::Float(0.0625f)}}},
    {"ApplyCenteredRMSProp",
     {"var", "mg", "ms", "mom"},
     {"lr", "rho", "momentum", "epsilon"},
     [](State& s) {
       s["mg"] = 0.5 * s["mg"] + 0.5 * s["grad"];
       s["ms"] = 0.5 * s["ms"] + 0.5 * s["grad"] * s["grad"];
       const double spread = s["ms"] - s["mg"] * s["mg"];
       s["mom"] = 0.75 * s["mom"] + 0.125 * s["grad"] / std::sqrt(spread + 0.0625);
       s["var"] -= s["mom"];
     }},
    {"ApplyAdagrad",
     {"var", "accum"},
     {"lr"},
     [](State& s) {
       s["accum"] += s["grad"] * s["grad"];
       s["var"] -= 0.125 * s["grad"] / std::sqrt(s["accum"]);
     }},
    {"ApplyAdagradD",
     {"var", "accum"},
     {"lr"},
     [](State& s) { s["var"] -= 0.125 * s["grad"] / std::sqrt(s["accum"]); },
     "grad",
     {{"update_slots", AttrValue::Bool(false)}}},
    {"ApplyAdadelta",
     {"var", "accum", "accum_update"},
     {"lr", "rho", "epsilon"},
     [](State& s) {
       s["accum"] = 0.5 * s["accum"] + 0.5 * s["grad"] * s["grad"];
       const double update =
           s["grad"] * std::sqrt((s["accum_update"] + 0.0625) / (s["accum"] + 0.0625));
       s["accum_update"] = 0.5 * s["accum_update"] + 0.5 * update * update;
       s["var"] -= 0.125 * update;
     }},
    {"ApplyFtrl",
     {"var", "accum", "linear"},
     {"lr", "l1", "l2", "lr_power"},
     [](State& s) {
       const double next = s["accum"] + s["grad"] * s["grad"];
       const double sigma = (std::sqrt(next) - std::sqrt(s["accum"])) / 0.125;
       s["linear"] += s["grad"] - sigma * s["var"];
       s["accum"] = next;
       const double weight = std::sqrt(next) / 0.125 + 2 * 0.125;
       const double sign = s["linear"] < 0 ? -1 : 1;
       s["var"] = std::fabs(s["linear"]) > 0.5 ? (sign * 0.5 - s["linear"]) / weight : 0.0;
     }},
    {"ApplyPowerSign",
     {"var", "m"},
     {"lr", "logbase", "sign_decay", "beta"},
     [](State& s) {
       s["m"] = 0.5 * s["m"] + 0.5 * s["grad"];
       const double sign = s["m"] * s["grad"] > 0 ? 1 : s["m"] * s["grad"] < 0 ? -1 : 0;
       s["var"] -= 0.125 * std::exp(0.5 * 0.75 * sign) * s["grad"];
     }},
    {"ApplyAddSign",
     {"var", "m"},
     {"lr", "alpha", "sign_decay", "beta"},
     [](State& s) {
       s["m"] = 0.5 * s["m"] + 0.5 * s["grad"];
       const double sign = s["m"] * s["grad"] > 0 ? 1 : s["m"] * s["grad"] < 0 ? -1 : 0;
       s["var"] -= 0.125 * (0.25 + 0.75 * sign) * s["grad"];
     }},
};

constexpr size_t kElements = 5;
const std::vector<double> kGradients[] = {{1, -2, 0.5, 3, -0.25}, {-1, -1, 2, 0.5, 4}};

std::vector<double> Start(const std::string& port) {
  if (port == "stat") return std::vector<double>(kElements, 1);
  if (port == "var" || port == "parameters") return {1, -2, 3, 0.5, -0.25};
  if (port == "mg") return {0.5, 1, 1.5, 2, 2};  // a mean, whose square stays below ms
  return {1, 2, 3, 4, 5};
}

OpCall CallOf(const OptimizerCase& test, DataType dtype,
              const std::map<std::string, Tensor>& tensors, const std::vector<double>& grad) {
  OpCall call{.type = test.type, .inputs = {}, .attrs = test.attrs};
  for (const std::string& port : test.updated) call.inputs.push_back({port, tensors.at(port)});
  for (const std::string& port : test.constants) {
    call.inputs.push_back({port, FromDoubles(dtype, {}, {kConstants.at(port)})});
  }
  call.inputs.push_back({test.grad, FromDoubles(dtype, {kElements}, grad)});
  return call;
}

TEST(Optimizer, TwoStepsUpdateVariableAndSlots) {
  for (const OptimizerCase& test : kOptimizerCases) {
    SCOPED_TRACE(test.type);
    std::map<std::string, Tensor> tensors;
    std::vector<State> states(kElements);
    for (const std::string& port : test.updated) {
      tensors[port] = FromDoubles(kF32, {kElements}, Start(port));
      for (size_t i = 0; i < kElements; ++i) states[i][port] = Start(port)[i];
    }
    for (const std::vector<double>& grad : kGradients) {
      const Result<std::vector<Tensor>> after = RunOp(CallOf(test, kF32, tensors, grad));
      ASSERT_TRUE(after.ok()) << after.status().ToString();
      ASSERT_EQ(after->size(), test.updated.size());
      for (size_t i = 0; i < kElements; ++i) {
        states[i][test.grad] = grad[i];
        test.step(states[i]);
      }
      for (size_t p = 0; p < test.updated.size(); ++p) {
        const std::string& port = test.updated[p];
        tensors[port] = (*after)[p];
        for (size_t i = 0; i < kElements; ++i) {
          const double expected = states[i][port];
          EXPECT_NEAR(ToDoubles((*after)[p])[i], expected, 4e-5 * (1 + std::fabs(expected)))
              << port << " " << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace npumesh
