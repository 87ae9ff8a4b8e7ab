// Two profiles beside each other: what takes longer in the second one.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_LAUNCH_PROFILE_PROFILE_COMPARE_H_
#define NPUMESH_LAUNCH_PROFILE_PROFILE_COMPARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "launch/profile/profile_facts.h"

namespace npumesh {

// An operator, a type (`name` is empty) or a collective (`type` is "collective") in both profiles.
struct ComparedTime {
  std::string name;
  std::string type;
  uint64_t count_before = 0;  // 0: it is not in the first profile
  uint64_t count_after = 0;   // 0: it is not in the second one
  int64_t before_ns = 0;      // sums over ranks and steps
  int64_t after_ns = 0;

  int64_t slower_ns() const { return after_ns - before_ns; }
  // Means of one call; 0 without one.
  double mean_before_ns() const;
  double mean_after_ns() const;
};

// The ranks' mean of a step, for steps that both profiles have, by number.
struct ComparedStep {
  uint32_t step = 0;
  TimeParts before;
  TimeParts after;
};

// A rank that both profiles have; means of the steps that count.
struct ComparedRank {
  int rank = 0;
  TimeParts before;
  TimeParts after;
};

// What a comparison comes to. Of the steps that both have the first does not count when there are
// more than two, because what it does once is no pattern.
struct ComparedVerdict {
  std::string word = "same";  // "slower" or "faster" of B, beyond chance and by a fiftieth; "same"
  double factor = 0;          // of B's median step to A's; 0: there is no step to compare
  int64_t change_ns = 0;      // of the median step
  int rank = -1;              // that explains the change; -1: none does, or all ranks alike
  std::string text;           // one sentence
};

struct ComparedProfiles {
  std::vector<std::string> gaps;    // of both, with the name of the profile
  std::vector<ComparedStep> steps;  // ascending
  std::vector<ComparedRank> ranks;  // ascending
  ComparedVerdict verdict;
  uint64_t steps_only_before = 0;
  uint64_t steps_only_after = 0;
  std::vector<ComparedTime> operators;  // by name; what got slower by the most first
  std::vector<ComparedTime> types;
  std::vector<ComparedTime> collectives;
};

ComparedProfiles CompareProfiles(const ProfileFacts& before, const ProfileFacts& after);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_PROFILE_COMPARE_H_
