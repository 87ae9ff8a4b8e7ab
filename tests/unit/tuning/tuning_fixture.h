// What tests of tuning share: a clock that kernels advance, and makers with a choice.
#ifndef NPUMESH_TESTS_UNIT_TUNING_TUNING_FIXTURE_H_
#define NPUMESH_TESTS_UNIT_TUNING_TUNING_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/tuning/tuner.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh::testing {

// A kernel of a name that takes a time by the clock `now`, or fails.
class TimedKernel final : public Kernel {
 public:
  TimedKernel(std::string name, int64_t* now, int64_t cost_ns, bool fails = false);
  const std::string& name() const { return name_; }
  Status Run(const KernelArgs& args) override;

 private:
  std::string name_;
  int64_t* now_;
  int64_t cost_ns_;
  bool fails_;
};

std::string NameOf(const Kernel& kernel);

// Makes kernels that decide one thing, "way", whose options cost microseconds; the first is the
// ordinary one.
struct Ways {
  std::vector<std::pair<std::string, double>> costs;
  std::string failing = {};    // this one fails when it runs
  std::string objecting = {};  // this one cannot be made, the ordinary one is then
  int64_t now = 0;             // nanoseconds
  int made = 0;

  TuningClock clock() {
    return [this] { return now; };
  }
  KernelTuner::MakeKernel MakerFor(KernelTuning& tuning);
};

// "Way int64[<elements>] -> int64[<elements>]".
TunableStep StepOf(int64_t elements);

inline const TuningMachine kSomeMachine = {"x86-64-v3", "Some CPU"};

// Collects advice while it lives.
class AdviceLog {
 public:
  AdviceLog();
  ~AdviceLog();
  AdviceLog(const AdviceLog&) = delete;
  AdviceLog& operator=(const AdviceLog&) = delete;
  const std::vector<std::string>& said() const { return said_; }

 private:
  std::vector<std::string> said_;
};

}  // namespace npumesh::testing

#endif  // NPUMESH_TESTS_UNIT_TUNING_TUNING_FIXTURE_H_
