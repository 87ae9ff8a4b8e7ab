#include "launch/profile/profile_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "launch/profile/rank_parts.h"
#include "launch/profile/slowest_rank.h"
#include "launch/profile/units.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

// Sums of an operator; work is known of some calls only when their shapes are.
struct OperatorSums {
  OperatorFacts facts;
  double flops = 0;
  double flops_ns = 0;  // of the calls whose operations are known
  double bytes = 0;
  double bytes_ns = 0;
  double both_flops = 0;  // of the calls of which both are known
  double both_bytes = 0;
};
using SumsByKey = std::map<std::pair<std::string, std::string>, OperatorSums>;

void AddCall(OperatorSums& sums, const ProfiledTask& task, int64_t ns) {
  ++sums.facts.count;
  sums.facts.total_ns += ns;
  if (task.flops > 0) {
    sums.flops += task.flops;
    sums.flops_ns += static_cast<double>(ns);
  }
  if (task.bytes > 0) {
    sums.bytes += static_cast<double>(task.bytes);
    sums.bytes_ns += static_cast<double>(ns);
  }
  if (task.flops > 0 && task.bytes > 0) {
    sums.both_flops += task.flops;
    sums.both_bytes += static_cast<double>(task.bytes);
  }
}

// Operations a nanosecond are 1e9 a second.
double RateOf(double amount, double ns) {
  return ns > 0 ? amount / ns : 0;
}

std::vector<OperatorFacts> LongestFirst(const SumsByKey& by_key) {
  std::vector<OperatorFacts> all;
  int64_t total_ns = 0;
  for (const auto& [key, sums] : by_key) total_ns += sums.facts.total_ns;
  for (const auto& [key, sums] : by_key) {
    OperatorFacts facts = sums.facts;
    std::tie(facts.name, facts.type) = key;
    facts.share = RateOf(static_cast<double>(facts.total_ns), static_cast<double>(total_ns));
    facts.gflops = RateOf(sums.flops, sums.flops_ns);
    facts.gbytes = RateOf(sums.bytes, sums.bytes_ns);
    facts.intensity = RateOf(sums.both_flops, sums.both_bytes);
    all.push_back(std::move(facts));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &OperatorFacts::total_ns);
  return all;
}

void AddOperators(const std::vector<RankProfile>& profiles, ProfileFacts& facts) {
  SumsByKey by_name;
  SumsByKey by_type;
  for (const RankProfile& profile : profiles) {
    for (const Span& span : profile.spans) {
      if (span.kind != SpanKind::kTask || span.subject == 0) continue;
      const ProfiledTask& task = profile.task(span);
      const int64_t ns = span.end_ns - span.begin_ns;
      AddCall(by_name[{task.name, task.type}], task, ns);
      AddCall(by_type[{std::string(), task.type.empty() ? task.name : task.type}], task, ns);
    }
  }
  facts.operators = LongestFirst(by_name);
  facts.types = LongestFirst(by_type);
}

void AddCollectives(const std::vector<RankProfile>& profiles, const CollectiveCalls& calls,
                    ProfileFacts& facts) {
  std::map<std::string, KindFacts> kinds;
  const auto kind_of = [&](size_t profile, const Span& span) -> KindFacts& {
    const std::string kind = span.subject == 0 ? "" : KindOf(profiles[profile].task(span));
    KindFacts& found = kinds[kind];
    found.kind = kind;
    return found;
  };
  for (size_t p = 0; p < profiles.size(); ++p) {
    for (const Span& span : profiles[p].spans) {
      if (span.kind != SpanKind::kCollective && span.kind != SpanKind::kMessage) continue;
      KindFacts& kind = kind_of(p, span);
      ++kind.spans;
      kind.bytes += span.bytes;
      const Stretches::Stretch moving = MovingTime(span);
      const Stretches::Stretch waiting = WaitingTime(span);
      kind.moving_ns += moving.end_ns - moving.begin_ns;
      kind.waiting_ns += waiting.end_ns - waiting.begin_ns;
      // What no other member can be found for is a call alone.
      if (span.kind == SpanKind::kMessage || span.group == 0) ++kind.calls;
    }
  }
  for (size_t c = 0; c < calls.size(); ++c) {
    ++kind_of(calls[c].front().profile, *calls[c].front().span).calls;
  }
  for (auto& [name, kind] : kinds) facts.collectives.push_back(std::move(kind));
  std::ranges::stable_sort(facts.collectives, std::ranges::greater(),
                           [](const auto& kind) { return kind.moving_ns + kind.waiting_ns; });
}

// A member of a call and when it entered, on the common clock.
struct Entry {
  int64_t at_ns = 0;
  size_t profile = 0;
};

// Charges the member that entered last with the waiting of the others.
void AddArrival(std::span<const CallMember> call, const CommonClock& clock, ProfileFacts& facts) {
  std::vector<Entry> entries;
  for (const CallMember& member : call) {
    ++facts.ranks[member.profile].collectives;
    entries.push_back({clock.At(member.profile, member.span->begin_ns), member.profile});
  }
  if (entries.size() < 2) return;
  std::ranges::sort(entries, {}, &Entry::at_ns);
  const Entry last = entries.back();
  const Entry before = entries[entries.size() - 2];
  if (last.at_ns - before.at_ns <= clock.BoundBetween(last.profile, before.profile)) return;
  RankFacts& rank = facts.ranks[last.profile];
  ++rank.came_last;
  for (const Entry& entry : entries) rank.others_waited_ns += last.at_ns - entry.at_ns;
}

uint64_t HighestMemory(const RankProfile& profile) {
  uint64_t highest = 0;
  for (const Span& span : profile.spans) {
    if (span.kind == SpanKind::kMemory) highest = std::max(highest, span.bytes);
  }
  return highest;
}

std::string LostText(const RankProfile& profile) {
  return fmt::format(
      "rank {} lost {} because its ring was full, and {} because its file was: its sums are too "
      "low",
      profile.owner.rank, CountText(profile.lost_full, "span"), profile.lost_limit);
}

}  // namespace

TimeParts& TimeParts::operator+=(const TimeParts& other) {
  wall_ns += other.wall_ns;
  computing_ns += other.computing_ns;
  overlapped_ns += other.overlapped_ns;
  moving_ns += other.moving_ns;
  waiting_ns += other.waiting_ns;
  preparing_ns += other.preparing_ns;
  idle_ns += other.idle_ns;
  return *this;
}

double KindFacts::bandwidth() const {
  return RateOf(static_cast<double>(bytes), static_cast<double>(moving_ns));
}

const std::string& KindOf(const ProfiledTask& task) {
  return task.type.empty() ? task.name : task.type;
}

std::vector<std::string> GapsOf(const std::vector<RankProfile>& profiles) {
  std::set<int> missing;
  for (int rank = 0; rank < profiles.front().owner.world_size; ++rank) missing.insert(rank);
  for (const RankProfile& profile : profiles) missing.erase(profile.owner.rank);
  std::vector<std::string> gaps;
  if (!missing.empty()) {
    gaps.push_back(fmt::format("{} left no profile: what is said of all ranks is said without {}",
                               RanksText({missing.begin(), missing.end()}),
                               missing.size() == 1 ? "it" : "them"));
  }
  for (const RankProfile& profile : profiles) {
    if (!profile.ended) {
      gaps.push_back(fmt::format(
          "the profile of rank {} ({}) has no end: the rank was killed or still runs, and what it "
          "did last may be missing",
          profile.owner.rank, Printable(profile.owner.host)));
    }
    if (profile.lost_full != 0 || profile.lost_limit != 0) gaps.push_back(LostText(profile));
  }
  return gaps;
}

ProfileFacts FactsOf(const std::vector<RankProfile>& profiles, const CollectiveCalls& calls,
                     const CommonClock& clock) {
  ProfileFacts facts{.world_size = profiles.front().owner.world_size,
                     .command = profiles.front().owner.command,
                     .hosts = clock.hosts(),
                     .clock_bound_ns = clock.bound_ns(),
                     .clock_guessed = clock.guessed(),
                     .causes = CheckCauses(calls, clock),
                     .gaps = GapsOf(profiles)};
  for (const RankProfile& profile : profiles) {
    RankFacts rank{.rank = profile.owner.rank,
                   .host = profile.owner.host,
                   .highest_memory = HighestMemory(profile),
                   .computing_in = ComputingIn(profile),
                   .idle_before = IdleBefore(profile)};
    for (const StepFacts& step : StepsOf(profile)) {
      rank.parts += step.parts;
      facts.steps.push_back(step);
    }
    facts.ranks.push_back(std::move(rank));
  }
  std::ranges::stable_sort(facts.steps, {}, &StepFacts::step);
  for (size_t c = 0; c < calls.size(); ++c) AddArrival(calls[c], clock, facts);
  facts.slowest = FindSlowest(profiles, calls, clock, facts.ranks, facts.steps);
  AddOperators(profiles, facts);
  AddCollectives(profiles, calls, facts);
  return facts;
}

}  // namespace npumesh
