// InputSource: the input tensors of each step, from files or from a seed.
//
// After the first step a RefData input gets an empty Tensor: the graph has updated it in place and
// goes on with what it left there (graph/session/session.h).
#ifndef NPUMESH_LAUNCH_RUN_INPUT_SOURCE_H_
#define NPUMESH_LAUNCH_RUN_INPUT_SOURCE_H_

#include <memory>
#include <optional>
#include <vector>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/engine/plan/step.h"
#include "launch/run/random_tensor.h"
#include "launch/run/tensor_folder.h"

namespace npumesh {

class InputSource {
 public:
  virtual ~InputSource() = default;
  // Tensors of step `step` by position among the graph's inputs, checked against their
  // declarations. Errors name the input: kNotFound, kCorrupt, kInvalidArgument.
  virtual Result<std::vector<Tensor>> Step(uint64_t step) const = 0;
};

// <data_index>.npy of a folder. Without step folders each step gets the same tensors.
std::unique_ptr<InputSource> InputsFromFolder(std::vector<InputSpec> inputs, TensorFolder folder);

// Random values of the given (static) types; equal on all ranks when `rank` is. `ranges` says of
// inputs of integers which they hold, and is empty or has an entry for each input.
std::unique_ptr<InputSource> RandomInputs(std::vector<InputSpec> inputs,
                                          std::vector<TensorType> types,
                                          std::vector<std::optional<IntRange>> ranges,
                                          uint64_t seed, uint64_t rank);

// `tensor` as the input `spec` wants it. Errors (kInvalidArgument) name the input, what the graph
// declares and what was given.
Result<Tensor> FitInput(const InputSpec& spec, const Tensor& tensor);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_INPUT_SOURCE_H_
