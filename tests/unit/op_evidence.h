// Evidence: which operators a test program ran, on which dtypes, and how near their results had to
// be to what the test expected. docs/operators.md is made from it (tests/operator_evidence.py).
//
// Nothing is kept unless NPUMESH_OPERATOR_EVIDENCE names a folder; each program then leaves a file
// there when it ends. Of a test case every operator counts that ran in it without an error; it is
// compared exactly unless the case has an EXPECT_NEAR.
//
// Thread-safety: all members may be called from any thread (ranks are threads).
#ifndef NPUMESH_TESTS_UNIT_OP_EVIDENCE_H_
#define NPUMESH_TESTS_UNIT_OP_EVIDENCE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "graph/ops/operator.h"

namespace npumesh::op_test {

class OpEvidence {
 public:
  static OpEvidence& OfProgram() {
    static OpEvidence evidence;
    return evidence;
  }
  ~OpEvidence() {
    if (folder_ == nullptr) return;
    std::ofstream file(std::string(folder_) + "/" + std::to_string(getpid()));
    for (const auto& [test, found] : tests_) {
      for (const auto& [type, dtypes] : found.ran) {
        file << type << '\t' << test << '\t' << found.near << '\t';
        for (const std::string& dtype : dtypes) file << dtype << ' ';
        file << '\n';
      }
    }
  }
  OpEvidence(const OpEvidence&) = delete;
  OpEvidence& operator=(const OpEvidence&) = delete;

  // `context` of a node whose kernel has run.
  void Ran(const OpContext& context) {
    if (folder_ == nullptr) return;
    const std::lock_guard lock(mutex_);
    std::set<std::string>& dtypes = Current().ran[std::string(context.schema().type)];
    for (int slot = 0; slot < context.slots(); ++slot) {
      if (context.has(slot)) dtypes.insert(std::string(Name(context.in(slot).dtype)));
    }
  }
  // A result may differ from `expected` by `error`.
  void Near(double expected, double error) {
    if (folder_ == nullptr) return;
    const std::lock_guard lock(mutex_);
    double& near = Current().near;
    near = std::max(near, error / std::max(1.0, std::fabs(expected)));
  }

 private:
  struct Found {
    std::map<std::string, std::set<std::string>> ran;
    double near = 0;
  };

  OpEvidence() : folder_(std::getenv("NPUMESH_OPERATOR_EVIDENCE")) {}

  Found& Current() {
    const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
    if (test == nullptr) return tests_["?"];
    const std::string path = test->file();
    return tests_[path.substr(path.rfind('/') + 1) + " " + test->test_suite_name() + "." +
                  test->name()];
  }

  const char* const folder_;
  std::mutex mutex_;
  std::map<std::string, Found> tests_;
};

inline testing::AssertionResult NearAndNoted(const char* actual, const char* expected, const char*,
                                             double a, double b, double error) {
  OpEvidence::OfProgram().Near(b, error);
  if (std::fabs(a - b) <= error) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << actual << " is " << a << ", expected " << expected << " = " << b << " within " << error;
}

}  // namespace npumesh::op_test

// GoogleTest's own, but what it allows is noted.
#undef EXPECT_NEAR
#define EXPECT_NEAR(actual, expected, error) \
  EXPECT_PRED_FORMAT3(::npumesh::op_test::NearAndNoted, actual, expected, error)

#endif  // NPUMESH_TESTS_UNIT_OP_EVIDENCE_H_
