// Tolerance: how far an output may be from its golden value.
//
// What applies to an output, best first:
//   1. the command line: --tolerance, or --rtol and --atol;
//   2. DIR/tolerance.json beside the goldens, its entry for the output before its default;
//   3. "close": as far as two correct results may be apart (graph/compare/measures/rounding.h), for
//   each
//      output from its dtype, the operators and sums before it, and the scale of its values.
// Integers and booleans are always exact.
#ifndef NPUMESH_LAUNCH_RUN_TOLERANCE_H_
#define NPUMESH_LAUNCH_RUN_TOLERANCE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "graph/compare/measures/rounding.h"
#include "graph/ir/tensor.h"

namespace npumesh {

// A value v matches a golden g when |v - g| <= atol + rtol * |g|.
struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

// One of "exact", "close" and a pair of numbers.
struct ToleranceRule {
  bool close = true;
  Tolerance given;  // when not close; both zero: exact
};

// "exact", "close" or "R,A". Error (kInvalidArgument) begins with `what`.
Result<ToleranceRule> ParseToleranceRule(std::string_view text, std::string_view what);
// "exact", "close", or "rtol 1e-05 atol 1e-06".
std::string ToText(const ToleranceRule& rule);

// What the command line gave. A lone --rtol or --atol leaves the other to DefaultTolerance.
struct ToleranceOptions {
  std::optional<double> rtol;
  std::optional<double> atol;
  std::optional<ToleranceRule> rule;
};

// The other half of a lone --rtol or --atol: float64 1e-12, float32 1e-5 (atol 1e-6), float16 1e-3,
// bfloat16 1e-2; others exact.
Tolerance DefaultTolerance(DataType dtype);

// The tolerance of one output, and why it is that.
struct AppliedTolerance {
  Tolerance value;
  std::string why;  // "exact", "given", "close: float16, 20 roundings, sums of 64, scale 3.1"
};

// "close" for one output: relative to `rounding`, `golden` for the scale.
AppliedTolerance CloseTolerance(const RoundingPath& rounding, const Tensor& golden);

class TolerancePlan {
 public:
  // `folder`: of the goldens. Errors (kCorrupt) name tolerance.json, line or field.
  static Result<TolerancePlan> Make(const ToleranceOptions& options, const std::string& folder);

  // For output `index`, whose golden has the dtype of the output.
  AppliedTolerance For(int index, const RoundingPath& rounding, const Tensor& golden) const;

 private:
  ToleranceOptions options_;
  std::optional<ToleranceRule> fallback_;  // of tolerance.json
  std::map<int, ToleranceRule> outputs_;   // of tolerance.json
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_TOLERANCE_H_
