// IntRanges: which integers random inputs hold, from `--int-range NAME=LOW:HIGH`.
//
// NAME is an input's name or index; values are LOW to HIGH - 1, as indices of a table with HIGH
// rows want them.
#ifndef NPUMESH_LAUNCH_RUN_INT_RANGES_H_
#define NPUMESH_LAUNCH_RUN_INT_RANGES_H_

#include <optional>
#include <string>
#include <vector>

#include "graph/engine/analyse/model_inputs.h"
#include "launch/run/random_tensor.h"

namespace npumesh {

class IntRanges {
 public:
  // Errors (kInvalidArgument) quote the text: no "=" or ":", bounds that are no integers, or a
  // range that holds none.
  static Result<IntRanges> Parse(const std::vector<std::string>& texts);

  // The range of each of `inputs`, where one was given. Errors (kInvalidArgument): a name that is
  // no input; an input that does not hold integers, or not those.
  Result<std::vector<std::optional<IntRange>>> For(const std::vector<InputSpec>& inputs) const;

 private:
  struct Named {
    std::string name;
    IntRange range;
  };
  std::vector<Named> named_;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_INT_RANGES_H_
