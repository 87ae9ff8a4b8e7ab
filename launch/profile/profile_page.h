// A profile as one page: the timeline to look into, and the tables.
#ifndef NPUMESH_LAUNCH_PROFILE_PROFILE_PAGE_H_
#define NPUMESH_LAUNCH_PROFILE_PROFILE_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/page/page.h"
#include "launch/profile/clock_fit.h"
#include "launch/profile/machine_limits.h"
#include "launch/profile/profile_facts.h"
#include "runtime/profile/profile_file.h"

namespace npumesh {

// More spans make a page that a browser opens slowly.
inline constexpr size_t kMostPageSpans = 400'000;

struct ProfilePageText {
  std::string html;
  uint64_t left_out = 0;  // the shortest spans, beyond the most
};

// The page is self-contained (launch/page/page.h). `most_spans` are drawn: the longest ones.
ProfilePageText ProfilePage(const std::vector<RankProfile>& profiles, const CommonClock& clock,
                            const ProfileFacts& facts, const std::optional<MachineLimits>& limits,
                            const PageOrigin& origin, size_t most_spans = kMostPageSpans);

// What profile.js reads, one JSON object:
//   command, version, written  where the page comes from
//   facts   the object of `--json`
//   notes   list of sentences above the timeline
//   length  nanoseconds from the first span to the last
//   names, types, groups  lists of texts that the spans name by their index
//   ranks   list of {rank, host, lanes}; a lane is {name, and of its spans, by begin, lists of
//   equal
//           length: begin (nanoseconds after the begin before it), length, arrived (after the
//           begin; -1: has none), kind (SpanKind), name, type, group (index; -1), bytes, step,
//           number}
//   memory  in each rank: {at, bytes}, at as begin
std::string PageData(const std::vector<RankProfile>& profiles, const CommonClock& clock,
                     const ProfileFacts& facts, const std::optional<MachineLimits>& limits,
                     const PageOrigin& origin, size_t most_spans, uint64_t& left_out);

// profile.html, profile.css and profile.js, embedded when npumesh is built.
PageTexts ProfileTexts();

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_PROFILE_PROFILE_PAGE_H_
