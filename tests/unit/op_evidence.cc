#include "tests/unit/op_evidence.h"

#include <errno.h>
#include <fmt/format.h>
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
#include <vector>

#include "graph/ops/core/operator.h"

namespace npumesh::op_test {
namespace {

class OpEvidence {
 public:
  static OpEvidence& OfProgram() {
    static OpEvidence evidence;
    return evidence;
  }
  ~OpEvidence() {
    WriteResults();
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
  // The outputs of the call.
  void Gave(const OpContext& context, const std::vector<Tensor>& outputs) {
    if (results_folder_ == nullptr) return;
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const Tensor& output : outputs) {
      for (uint64_t i = 0; i < output.bytes(); ++i) {
        hash = (hash ^ static_cast<uint64_t>(output.data()[i])) * 0x100000001b3;
      }
    }
    const std::lock_guard lock(mutex_);
    results_.push_back(fmt::format("{}\t{}\t{:016x}", TestName(), context.schema().type, hash));
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

  OpEvidence()
      : folder_(std::getenv("NPUMESH_OPERATOR_EVIDENCE")),
        results_folder_(std::getenv("NPUMESH_OPERATOR_RESULTS")) {}

  static std::string TestName() {
    const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
    if (test == nullptr) return "?";
    const std::string path = test->file();
    return path.substr(path.rfind('/') + 1) + " " + test->test_suite_name() + "." + test->name();
  }

  Found& Current() { return tests_[TestName()]; }

  void WriteResults() {
    if (results_folder_ == nullptr) return;
    std::sort(results_.begin(), results_.end());  // ranks that are threads come in any order
    std::ofstream file(std::string(results_folder_) + "/" + program_invocation_short_name);
    for (const std::string& line : results_) file << line << '\n';
  }

  const char* const folder_;
  const char* const results_folder_;
  std::mutex mutex_;
  std::map<std::string, Found> tests_;
  std::vector<std::string> results_;
};

}  // namespace

void NoteRun(const OpContext& context) {
  OpEvidence::OfProgram().Ran(context);
}
void NoteOutputs(const OpContext& context, const std::vector<Tensor>& outputs) {
  OpEvidence::OfProgram().Gave(context, outputs);
}

void NoteNear(double expected, double error) {
  OpEvidence::OfProgram().Near(expected, error);
}

testing::AssertionResult NearAndNoted(const char* actual, const char* expected, const char*,
                                      double a, double b, double error) {
  NoteNear(b, error);
  if (std::fabs(a - b) <= error) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << actual << " is " << a << ", expected " << expected << " = " << b << " within " << error;
}

}  // namespace npumesh::op_test
