// Tuner: takes the kernels of a graph's steps that were measured to be the fastest on this machine.
//
//   step -> key -> record? --yes--> kernel with the winner's preferences
//                   | no
//            ordinary kernel; its maker had no choice? --> that
//                   | it had
//            lock -> other kernels -> contest -> record -> the winner
//
// Whatever goes wrong, the step has its ordinary kernel. A winner may add in another order than the
// ordinary kernel, so last places of results may change.
//
// Thread-safety: none; one object for each session. Processes share records (tuning_records.h).
#ifndef NPUMESH_GRAPH_TUNING_TUNER_H_
#define NPUMESH_GRAPH_TUNING_TUNER_H_

#include <chrono>
#include <memory>
#include <string>

#include "graph/ops/core/tuning.h"
#include "graph/tuning/contest.h"
#include "graph/tuning/machine.h"
#include "graph/tuning/trial.h"
#include "graph/tuning/tune_selection.h"
#include "graph/tuning/tuning_records.h"

namespace npumesh {

struct TuningOptions {
  std::string work_path = "./";  // below which the records lie
  TuneSelection selection;
  std::chrono::milliseconds step_budget{200};  // for measuring one key, see ContestRules
  // For measuring all keys of a session. After it a contest has its first rounds only: no key is
  // left out, because another rank of the node might measure it and have another winner.
  std::chrono::milliseconds whole_budget{60'000};
  std::chrono::milliseconds wait_limit{60'000};  // for the turn of another process
  size_t most_trials = 16;                       // kernels that are made for a key
  // Of operands of a step that are not constants, and of constants that its kernels may pack.
  uint64_t most_bytes = uint64_t{1} << 30;
};

// Counts steps.
struct TuningStats {
  int measured = 0;  // by this process
  int found = 0;     // in records, also in those that others wrote meanwhile
  int improved = 0;  // of both: that do not have their ordinary kernels
  // Sums of medians over the measured and the found.
  double ordinary_us = 0;
  double best_us = 0;

  // "3 operators tuned, 5 found in records: 80.1 us, against 96.0 us".
  std::string ToString() const;
  bool operator==(const TuningStats&) const = default;
};

class Tuner final : public KernelTuner {
 public:
  explicit Tuner(TuningOptions options, TuningMachine machine = TuningMachine::Here(),
                 TuningClock clock = SteadyTuningClock());

  std::string Preferred(std::string_view decision) override;
  void Decided(std::string_view decision, std::vector<std::string> options,
               std::string_view taken) override;
  Result<std::unique_ptr<Kernel>> Make(const TunableStep& step, const MakeKernel& make) override;

  const TuningStats& stats() const { return stats_; }

 private:
  using KernelOrError = Result<std::unique_ptr<Kernel>>;
  // Makes a kernel while this object answers as `wanted` says.
  Result<Trial> Try(const Preferences& wanted, const MakeKernel& make);
  // SHA-256 of all that decides which kernel is the fastest.
  std::string KeyOf(const TunableStep& step) const;
  // The kernel of a record; null: it asks for what this program does not have, and is told.
  std::unique_ptr<Kernel> FromRecord(const TuningRecord& record, const MakeKernel& make);
  // The kernel of the winner, measured here or by another process meanwhile; null: the ordinary one
  // stays. `stale`: a record that does not count; may be null.
  std::unique_ptr<Kernel> Best(const TunableStep& step, const std::string& key,
                               const TuningRecord* stale, const Trial& ordinary,
                               const MakeKernel& make);
  // The same with the lock held.
  std::unique_ptr<Kernel> Measure(const TunableStep& step, const std::string& key,
                                  const Trial& ordinary, const MakeKernel& make);
  ContestRules Rules() const;
  TuningRecord RecordFor(const TunableStep& step, const std::string& key) const;
  void Count(const TuningRecord& record);

  TuningOptions options_;
  TuningMachine machine_;
  TuningClock clock_;
  TuningRecords records_;
  Trial* now_ = nullptr;  // that is being made; null: no decision may be taken
  int64_t spent_ns_ = 0;
  TuningStats stats_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_TUNING_TUNER_H_
