// What an ONNX model is imported for: sizes of its inputs, and inputs that become constants.
#ifndef NPUMESH_LAUNCH_RUN_ONNX_CHOICE_H_
#define NPUMESH_LAUNCH_RUN_ONNX_CHOICE_H_

#include <map>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/onnx/onnx_model.h"
#include "graph/ops/core/op_registry.h"
#include "launch/ranks/warnings.h"
#include "launch/run/dim_bindings.h"
#include "launch/run/tensor_folder.h"

namespace npumesh {

// Inputs with their values, from `--set INPUT=VALUE`. VALUE is a number, which fills all elements,
// numbers with commas between them, or a .npy file.
class InputValues {
 public:
  // Errors (kInvalidArgument) quote the text: no "=", an input that is named twice.
  static Result<InputValues> Parse(const std::vector<std::string>& texts);

  bool empty() const { return texts_.empty(); }
  bool has(const std::string& input) const { return texts_.count(input) > 0; }

  // The value of each, as a tensor of `types`. Errors (kInvalidArgument): an input that the model
  // has not; a value that is no number or does not fit its type; open dimensions that the number of
  // values does not decide. Those of ReadNpy.
  Result<std::map<std::string, Tensor>> As(const std::map<std::string, TensorType>& types) const;

 private:
  std::map<std::string, std::string> texts_;
};

struct OnnxChoice {
  DimBindings dims;
  InputValues values;
  std::map<std::string, int> sequence_lengths;  // as OnnxImportOptions has them
  // The inputs of the run; null: they say nothing of sizes. Dimensions that are equal in all steps
  // become fixed. More than a few steps with separate inputs are not read.
  const TensorFolder* inputs = nullptr;
  uint64_t steps = 1;
};

// A model for `choice`, and whether it comes of an ONNX file: the dimensions of the choice are
// bound in it then. `notes` takes what the user should know. Errors: as LoadAnyModel;
// kInvalidArgument where the choice does not fit the inputs, and for values with another kind of
// file.
struct ChosenModel {
  Model model;
  bool is_onnx = false;
};
Result<ChosenModel> LoadFor(const std::string& path, const OpRegistry& registry,
                            const OnnxChoice& choice, Warnings& notes);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_ONNX_CHOICE_H_
