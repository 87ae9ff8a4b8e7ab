// Frozen inputs: parameters whose address and content stay (experimental_config.frozen_parameter).
//
// A session takes them over with its first run: each becomes a Constant whose bytes are the
// caller's. So kernels pack it once, what it alone decides is computed while compiling, and
// no later run reads or copies it.
#ifndef NPUMESH_GRAPH_SESSION_FROZEN_INPUTS_H_
#define NPUMESH_GRAPH_SESSION_FROZEN_INPUTS_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/engine/analyse/model_inputs.h"
#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

// The vendor's option `frozenInput`, "0,1,1": a flag for each input, 1 for a parameter. The result
// are positions. Errors (kInvalidArgument) name the flag that is neither 0 nor 1.
Result<std::vector<int>> ParseFrozenInput(std::string_view flags);

class FrozenInputs {
 public:
  FrozenInputs() = default;  // none
  // `positions` in InputsOf(model). Errors (kInvalidArgument) name the input: no input has a
  // position, it is a RefData, or an in-place operator overwrites it.
  static Result<FrozenInputs> Find(const Model& model, const OpRegistry& registry,
                                   const std::vector<int>& positions);

  bool empty() const { return positions_.empty(); }
  bool taken() const { return !values_.empty(); }
  bool Holds(size_t position) const;
  // The tensor at a frozen position. REQUIRES: taken().
  const Tensor& value(size_t position) const { return values_.at(position); }

  // With the first call the frozen tensors of `inputs` (by position) are taken over. Later ones may
  // be left out (default Tensor) or have to be the same: kInvalidArgument names the input, the
  // address expected and that seen.
  Status Take(const std::vector<Tensor>& inputs, const std::vector<InputSpec>& specs);

  // Puts Constant nodes without a value in the place of the inputs (attribute `_frozen_input`: the
  // index of the input), and returns the values by name, for PlanSettings::given_weights.
  // REQUIRES: taken().
  std::map<std::string, Tensor> PutInto(Model& model) const;

 private:
  std::vector<size_t> positions_;  // sorted
  std::map<size_t, Tensor> values_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_FROZEN_INPUTS_H_
