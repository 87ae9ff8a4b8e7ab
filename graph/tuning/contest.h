// Contest: kernels that compute the same run in turns on the same operands, and the fastest wins.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_TUNING_CONTEST_H_
#define NPUMESH_GRAPH_TUNING_CONTEST_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir/tensor.h"
#include "graph/ops/core/operator.h"
#include "graph/ops/core/tuning.h"

namespace npumesh {

// Nanoseconds of a clock that does not go back.
using TuningClock = std::function<int64_t()>;
TuningClock SteadyTuningClock();

// Operands of a step: its constants, and for what is known only at run time numbers of a fixed
// seed: floats in [-1, 1), integers of 8 bits, zeros for the other types, which may be positions or
// lengths. Outputs and scratch have room.
class ContestOperands {
 public:
  // nullopt: they have more than `most_bytes`.
  static std::optional<ContestOperands> Make(const TunableStep& step, uint64_t most_bytes);
  // Valid until the next call.
  KernelArgs ArgsFor(const Kernel& kernel);
  // What the last kernel wrote.
  const std::vector<Tensor>& outputs() const { return outputs_; }

 private:
  std::vector<Tensor> inputs_, outputs_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  Tensor scratch_;
};

struct ContestRules {
  int64_t budget_ns = 200'000'000;  // after it no round begins, but for the first ones
  int least_rounds = 3;
  int most_rounds = 101;
};

// How a kernel did.
struct ContestTime {
  double median_us = 0;
  int runs = 0;         // that were timed
  std::string failure;  // not empty: it ended with an error, and has no time
};

// Each kernel runs once to warm up, then once a round in turns. One that takes more than twice the
// time of the fastest in the first round does not take part in the others.
std::vector<ContestTime> RunContest(const std::vector<Kernel*>& kernels, ContestOperands& operands,
                                    const ContestRules& rules, const TuningClock& clock);

// The kernel that takes the least time, if it takes at least 3 % less than number 0, the ordinary
// one; else 0. REQUIRES: number 0 has a time.
size_t WinnerOf(const std::vector<ContestTime>& times);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_TUNING_CONTEST_H_
