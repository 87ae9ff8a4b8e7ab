// The parameters of a model under test: named, in the order in which the graph takes them, as
// numbers that float32 holds exactly; and the steps of optimizers on them, in double.
#ifndef NPUMESH_TESTS_MODELS_PARAMETERS_H_
#define NPUMESH_TESTS_MODELS_PARAMETERS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/ir/tensor.h"
#include "tests/models/tape.h"

namespace npumesh::models {

struct Parameter {
  std::string name;
  Shape shape;
  std::vector<double> values;
};

// By name; what a reference reads.
using ParameterReals = std::map<std::string, Reals>;
// The loss of a model as a function of its parameters.
using LossFunction = std::function<Real(const ParameterReals&)>;

class Parameters {
 public:
  explicit Parameters(uint64_t seed) : state_(seed) {}

  // Adds a parameter of values around `middle`, at most `spread` away, each different.
  void Add(const std::string& name, Shape shape, double spread, double middle = 0);

  const std::vector<Parameter>& all() const { return all_; }
  Parameter& at(const std::string& name);
  const Parameter& at(const std::string& name) const;

  // As constants, without a tape.
  ParameterReals Constants() const;

 private:
  double Noise();

  uint64_t state_;
  std::vector<Parameter> all_;
};

struct LossAndGradients {
  double loss = 0;
  std::map<std::string, std::vector<double>> gradients;
};
LossAndGradients Differentiate(const Parameters& parameters, const LossFunction& loss);

// Checks `samples` elements of each parameter's gradient by (f(p + h) - f(p - h)) / 2h. The bound
// is that of the formula: its error is of the order of h * h, and of the rounding of f over h.
void ExpectCentralDifferences(const Parameters& parameters, const LossFunction& loss,
                              const LossAndGradients& seen, int samples = 3);

// AdamW (Loshchilov and Hutter, 2019), with decoupled weight decay.
struct AdamW {
  double lr = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.99;
  // Large enough that a gradient which is zero up to rounding moves nothing.
  double epsilon = 1e-4;
  double weight_decay = 0.01;

  int steps = 0;
  std::map<std::string, std::vector<double>> m, v;

  void Step(Parameters& parameters, const LossAndGradients& at);
};

// p -= lr * (accum = momentum * accum + g + weight_decay * p).
struct Momentum {
  double lr = 0.05;
  double momentum = 0.9;
  double weight_decay = 0;
  std::map<std::string, std::vector<double>> accum;

  void Step(Parameters& parameters, const LossAndGradients& at);
};

// float32 unless told otherwise.
Tensor TensorOf(const Shape& shape, const std::vector<double>& values,
                DataType dtype = DataType::kFloat);
Tensor TensorOf(const Parameter& parameter, DataType dtype = DataType::kFloat);
std::vector<double> ValuesIn(const Tensor& tensor);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_PARAMETERS_H_
