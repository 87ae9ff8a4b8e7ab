// The optimizer's part of a training step: AdamW on RefData, in one of two forms.
#ifndef NPUMESH_TESTS_MODELS_TRAINING_OPTIMIZER_H_
#define NPUMESH_TESTS_MODELS_TRAINING_OPTIMIZER_H_

#include <map>
#include <string>
#include <vector>

#include "tests/models/aten_graph.h"
#include "tests/models/decoder_training.h"

namespace npumesh::models {

class OptimizerWriter {
 public:
  // Both must outlive this object.
  OptimizerWriter(const TrainingConfig& config, AtenGraph& g) : config_(config), g_(g) {}

  // Adds the state "<name>.m" and "<name>.v" to the inputs.
  void Declare(const Parameter& parameter, Value var);
  // Adds what all parameters share: powers of the betas, or the count of steps.
  void DeclareShared();
  const std::vector<std::string>& names() const { return names_; }

  // Updates every parameter and the state in place.
  void Write(const std::map<std::string, Value>& gradients);

 private:
  void WriteFused(const std::map<std::string, Value>& gradients);
  void WriteForeach(const std::map<std::string, Value>& gradients);
  // A list operator over all parameters: `lists` are its dynamic inputs, then a scalar.
  std::vector<Value> Foreach(const std::string& type,
                             const std::vector<std::pair<std::string, std::vector<Value>>>& lists,
                             const std::string& scalar, double value);
  void Copy(Value target, Value value) {
    g_.Op("Assign", {{"ref", target}, {"value", value}},
          {{"validate_shape", AttrValue::Bool(true)}, {"use_locking", AttrValue::Bool(false)}});
  }

  const TrainingConfig& config_;
  AtenGraph& g_;
  std::vector<std::string> names_;
  std::vector<Value> vars_, firsts_, seconds_;
  Value beta1_power_, beta2_power_, steps_;
};

// The tensors that a session starts from: zeros, and the state before the first step.
std::map<std::string, Tensor> OptimizerStart(const TrainingConfig& config,
                                             const std::vector<Parameter>& parameters);

}  // namespace npumesh::models

#endif  // NPUMESH_TESTS_MODELS_TRAINING_OPTIMIZER_H_
