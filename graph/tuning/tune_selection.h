// TuneSelection: which operators are tuned, as a file says it (docs/tuning.md):
//
//   {"tune_ops_name": ["loss/MatMul"], "tune_ops_type": ["MatMulV2"], "tune_optimization_level":
//   "O1"}
//
// Thread-safety: that of a value.
#ifndef NPUMESH_GRAPH_TUNING_TUNE_SELECTION_H_
#define NPUMESH_GRAPH_TUNING_TUNE_SELECTION_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/tuning.h"
#include "runtime/base/status.h"

namespace npumesh {

struct TuneSelection {
  // Whole names; a step is tuned when one of its operators has one of the names or types. Both
  // empty: every step is.
  std::vector<std::string> names;
  std::vector<std::string> types;
  bool quick = false;  // "O1": a quarter of the time for each operator

  bool Has(const TunableStep& step) const;
};

// Reads such a file. A member that npumesh does not know is left out with one warning. Errors:
// kInvalidArgument names the file and what is wrong with it; those of ReadFile.
Result<TuneSelection> ReadTuneSelection(const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_TUNING_TUNE_SELECTION_H_
