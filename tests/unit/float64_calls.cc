// The calls of operator tests, once more in float64.
//
// Every call that a test program ran, of an operator that has a kernel in float64
// (MakeFloat64Kernel), has to come close to what that gives: as far as the roundings of its types
// allow. NPUMESH_TEST_FLOAT64=report prints a line for each call, which
// tests/operator_float64.py counts.
//
// An object library, linked into every program below tests/unit/ops.
#include "tests/unit/float64_calls.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "graph/compare/golden/reference_ops.h"
#include "graph/compare/measures/distance.h"
#include "tests/unit/op_test.h"

namespace npumesh::op_test {
namespace {

std::atomic<int64_t> comparisons = 0;

// Of the largest magnitude of an output: what sums of a few hundred terms and functions of
// functions lose.
double BoundOf(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat:
      return 1e-5;
    case DataType::kFloat16:
      return 4e-3;
    case DataType::kBfloat16:
      return 3e-2;
    default:
      return 1e-10;
  }
}

class Float64Calls final : public CallListener {
 public:
  void Ran(const Operator& op, const OpContext& context, const OpCall& call,
           const std::vector<Tensor>& outputs) override {
    if (context.node().attrs.count(std::string(kImplMode)) > 0)
      return;  // gives up digits for speed
    const std::unique_ptr<Kernel> kernel = MakeFloat64Kernel(context, op);
    if (kernel == nullptr) return;
    if (report_) fmt::print("float64: {}\n", call.type);
    const Result<std::vector<Tensor>> wide = RunOnce(op, call, context, kernel.get(), -1);
    ASSERT_TRUE(wide.ok()) << call.type << ": " << wide.status().ToString();
    ++comparisons;
    for (size_t port = 0; port < wide->size(); ++port) {
      const Tensor& expected = (*wide)[port];
      const TensorDistance distance =
          DistanceOf(outputs[port], expected, {.of_peak = BoundOf(expected.dtype())});
      EXPECT_TRUE(distance.same()) << call.type << ": output " << port << " is not what float64 "
                                   << "gives: " << distance.max_abs << " " << distance.reason;
    }
  }

 private:
  const bool report_ = std::getenv("NPUMESH_TEST_FLOAT64") != nullptr;
};

// Before main: tests run afterwards.
const bool kListens = [] {
  static Float64Calls calls;
  call_listeners().push_back(&calls);
  return true;
}();

}  // namespace

int64_t Float64Comparisons() {
  return comparisons;
}

}  // namespace npumesh::op_test
