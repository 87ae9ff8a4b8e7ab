// DimBindings: values for the dimensions that a graph leaves open (-1), from `--dim NAME=V`.
//
// NAME is an input's name or index (all its open dimensions), either with an axis after a dot, or
// the name that dimensions have in an ONNX model, of all inputs: "x=4", "0=4", "x.1=32", "0.1=32",
// "batch=4". What says less of a dimension gives way: a whole input to a name, and that to an axis.
#ifndef NPUMESH_LAUNCH_RUN_DIM_BINDINGS_H_
#define NPUMESH_LAUNCH_RUN_DIM_BINDINGS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/ir/shape.h"

namespace npumesh {

// The input with this name, or else with this data index.
std::optional<size_t> FindInput(std::string_view name, const std::vector<InputSpec>& inputs);
// "x (float32[2,-1]), ids (int64[4])".
std::string InputNames(const std::vector<InputSpec>& inputs);

// " --dim x=N --dim ids=N": what a command needs for inputs with open dimensions; empty: all are
// known.
std::string DimWords(const std::vector<InputSpec>& inputs);

// Names of the dimensions of inputs, by data index; an empty name: it has none.
using DimNames = std::map<int64_t, std::vector<std::string>>;
// Those that an import wrote into a graph (kDimNamesAttr in graph/onnx/import.h).
DimNames DimNamesOf(const Model& model);

class DimBindings {
 public:
  // Errors (kInvalidArgument) quote the text: no "=", a value that is not a positive integer.
  static Result<DimBindings> Parse(const std::vector<std::string>& texts);

  // The types of `inputs` with every open dimension bound. Errors (kInvalidArgument): a name that
  // is no input and no dimension, an axis that is not open, and dimensions left open, with the
  // option that binds them.
  Result<std::vector<TensorType>> Apply(const std::vector<InputSpec>& inputs,
                                        const DimNames& names = {}) const;
  // The same, with dimensions left open that nothing binds.
  Result<std::vector<TensorType>> ApplySome(const std::vector<InputSpec>& inputs,
                                            const DimNames& names = {}) const;

 private:
  struct Binding {
    std::string name;
    int64_t value;
  };
  // What a binding's name means among these inputs: dimensions, and how much it says of them.
  enum class Reach : uint8_t { kInput, kName, kAxis };
  struct Target {
    Reach reach = Reach::kInput;
    std::vector<std::pair<size_t, int>> dims;  // input, axis
  };
  static Result<Target> Resolve(const std::string& name, const std::vector<InputSpec>& inputs,
                                const DimNames& names);

  std::vector<Binding> bindings_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_DIM_BINDINGS_H_
