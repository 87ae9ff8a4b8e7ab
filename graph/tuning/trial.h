// Trial: one way to make a kernel: what is preferred, and what its maker then decided.
//
// Thread-safety: none.
#ifndef NPUMESH_GRAPH_TUNING_TRIAL_H_
#define NPUMESH_GRAPH_TUNING_TRIAL_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/operator.h"
#include "graph/ops/core/tuning.h"

namespace npumesh {

// Options by decision.
using Preferences = std::map<std::string, std::string, std::less<>>;

// "16-bit weights: widened in groups; floats in a group: 65536"; "ordinary" for none.
std::string TextOf(const Preferences& preferences);

struct Trial {
  struct Decision {
    std::vector<std::string> options;
    std::string taken;
  };
  Preferences wanted;
  std::map<std::string, Decision, std::less<>> decided;
  std::unique_ptr<Kernel> kernel;

  // Every preference was asked for, and was taken.
  bool honoured() const;
  // There was a decision with several options.
  bool had_choice() const;
};

// Makes a trial, with the KernelTuning that the maker asks set to `wanted` meanwhile.
using MakeTrial = std::function<Result<Trial>(const Preferences& wanted)>;

// The ways to make a kernel besides `ordinary`: those with one preference, then with another one
// for what these had to decide, and so on, `most` at most. Those that cannot be made, or not as
// preferred, are left out.
std::vector<Trial> OtherTrials(const Trial& ordinary, const MakeTrial& make, size_t most);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_TUNING_TRIAL_H_
