// Profiles without a run: hand-made spans for tests of what is written from them.
#ifndef NPUMESH_TESTS_UNIT_MSPROF_MADE_UP_PROFILE_H_
#define NPUMESH_TESTS_UNIT_MSPROF_MADE_UP_PROFILE_H_

#include <string>
#include <utility>

#include "runtime/profile/profile_file.h"

namespace npumesh {

// Adds tasks, groups and spans to a profile.
class ProfileMaker {
 public:
  ProfileMaker(int rank, int world_size);

  // Ids for spans.
  uint32_t Task(const std::string& name, const std::string& type);
  uint32_t Task(ProfiledTask task);
  uint32_t Group(const std::string& name, uint64_t number, std::vector<int> world_ranks);

  // Spans from begin to end, in nanoseconds of the profile. They can be changed by what is returned
  // until the next one is added.
  Span& Add(SpanKind kind, uint32_t subject, int64_t begin_ns, int64_t end_ns);
  // Starts an iteration: spans added from now on belong to it.
  Span& Iteration(uint64_t number, int64_t begin_ns, int64_t end_ns);
  Span& Compute(uint32_t subject, int64_t begin_ns, int64_t end_ns);
  Span& Call(uint32_t subject, uint32_t group, uint64_t number, int64_t begin_ns,
             int64_t arrived_ns, int64_t end_ns, uint64_t bytes);

  ProfileOwner& owner() { return profile_.owner; }
  RankProfile& profile() { return profile_; }

 private:
  RankProfile profile_;
  uint32_t iteration_ = 0;
};

// A rank of a job with two ranks on each host: three iterations that compute, reduce in the group
// of all ranks while they compute, gather in groups of two that have the same name, send around a
// ring, copy and call the C interface.
RankProfile MadeUpRank(int rank, int world_size);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_MSPROF_MADE_UP_PROFILE_H_
