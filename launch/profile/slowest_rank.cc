#include "launch/profile/slowest_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

#include "launch/profile/rank_parts.h"
#include "launch/profile/units.h"
#include "launch/ranks/standing_out.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

// A rank that is late for less than this part of a rank's time does not stand out.
constexpr double kStandsOut = 0.02;
// A part of the time that is longer by this part of the lateness explains it.
constexpr double kExplains = 0.5;
// With fewer steps than this the collectives are the samples.
constexpr size_t kFewestSteps = 5;

// How late each profile was to one collective.
struct CallLateness {
  std::vector<int64_t> late_ns;  // by profile
  std::span<const CallMember> members;
};

CallLateness LatenessOf(std::span<const CallMember> call, const CommonClock& clock,
                        size_t profiles) {
  CallLateness lateness{std::vector<int64_t>(profiles), call};
  if (call.size() < 2) return lateness;
  std::vector<std::pair<int64_t, size_t>> entries;  // on the common clock
  for (const CallMember& member : call) {
    entries.emplace_back(clock.At(member.profile, member.span->begin_ns), member.profile);
  }
  const auto middle = entries.begin() + static_cast<ptrdiff_t>((entries.size() - 1) / 2);
  std::ranges::nth_element(entries, middle);
  const auto [usual_ns, usual] = *middle;
  for (const auto& [at_ns, profile] : entries) {
    const int64_t bound = profile == usual ? 0 : clock.BoundBetween(profile, usual);
    lateness.late_ns[profile] = std::max<int64_t>(0, at_ns - usual_ns - bound);
  }
  return lateness;
}

// A part of a rank's time, in the words of a sentence about it.
struct NamedPart {
  std::string_view name;  // in reports
  std::string_view verb;  // "it computes 20 ms longer"
  int64_t ns = 0;
};

// The parts of a step in which a rank does not wait for others.
struct PartOfStep {
  std::string_view name;
  std::string_view verb;
  int64_t (*of)(const TimeParts&);
};
constexpr std::array<PartOfStep, 4> kPartsOfStep = {
    {{"computing", "it computes",
      [](const TimeParts& parts) { return parts.computing_ns + parts.overlapped_ns; }},
     {"moving", "its data move", [](const TimeParts& parts) { return parts.moving_ns; }},
     {"preparing", "it prepares (copies, plans)",
      [](const TimeParts& parts) { return parts.preparing_ns; }},
     {"idle", "it idles", [](const TimeParts& parts) { return parts.idle_ns; }}}};

// The times between the steps of a rank, in which it is in none of them.
std::vector<double> BetweenSteps(const RankProfile& profile) {
  std::vector<Stretches::Stretch> steps;
  for (const Span& span : profile.spans) {
    if (span.kind == SpanKind::kIteration) steps.push_back({span.begin_ns, span.end_ns});
  }
  const Stretches joined(std::move(steps));
  std::vector<double> between;
  for (size_t i = 1; i < joined.all().size(); ++i) {
    between.push_back(static_cast<double>(joined.all()[i].begin_ns - joined.all()[i - 1].end_ns));
  }
  return between;
}

// Sums of all values as if the worst tenth were as the others are.
TimesByName SumsWithoutWorst(std::map<std::string, std::vector<double>> values) {
  TimesByName sums;
  for (auto& [name, all] : values) {
    const auto count = static_cast<double>(all.size());
    sums[name] = std::llround(count * MeanWithout(std::move(all), Ends::kWorst));
  }
  return sums;
}

class SlowestFinder {
 public:
  SlowestFinder(const std::vector<RankProfile>& profiles, const CollectiveCalls& calls,
                const CommonClock& clock, const std::vector<RankFacts>& ranks,
                const std::vector<StepFacts>& steps)
      : profiles_(profiles), ranks_(ranks), sums_(profiles.size()) {
    for (const StepFacts& step : steps) {
      if (step.whole) steps_[step.step][step.rank] = step.parts;
    }
    for (size_t c = 0; c < calls.size(); ++c) {
      calls_.push_back(LatenessOf(calls[c], clock, profiles.size()));
      for (size_t p = 0; p < profiles.size(); ++p) sums_[p] += calls_.back().late_ns[p];
    }
    for (const RankFacts& rank : ranks) wall_ns_ += static_cast<double>(rank.parts.wall_ns);
    wall_ns_ /= static_cast<double>(ranks.size());
  }

  SlowestFacts Run() const {
    SlowestFacts slowest;
    if (profiles_.size() < 2) {
      slowest.text = "one rank: there is no other that waits for it";
      return slowest;
    }
    std::vector<size_t> out = StandingOut(Samples());
    std::erase_if(
        out, [this](size_t p) { return static_cast<double>(sums_[p]) < kStandsOut * wall_ns_; });
    if (out.empty()) {
      slowest.text = "no rank stands out" + LongestWait();
      return slowest;
    }
    const size_t worst =
        *std::ranges::max_element(out, [this](size_t a, size_t b) { return sums_[a] < sums_[b]; });
    Describe(worst, out, slowest);
    return slowest;
  }

 private:
  // The lateness of each profile by step, or by collective.
  std::vector<std::vector<double>> Samples() const {
    std::map<uint32_t, size_t> steps;  // number of the sample
    for (const CallLateness& call : calls_) steps[call.members.front().span->iteration] = 0;
    const bool by_step = steps.size() >= kFewestSteps;
    // What the first step does once is no pattern.
    if (by_step) steps.erase(steps.begin());
    size_t number = 0;
    for (auto& [step, sample] : steps) sample = number++;
    const size_t count = by_step ? steps.size() : calls_.size();
    std::vector<std::vector<double>> samples(profiles_.size(), std::vector<double>(count));
    for (size_t c = 0; c < calls_.size(); ++c) {
      const auto step = steps.find(calls_[c].members.front().span->iteration);
      if (by_step && step == steps.end()) continue;
      const size_t sample = by_step ? step->second : c;
      for (size_t p = 0; p < profiles_.size(); ++p) {
        samples[p][sample] += static_cast<double>(calls_[c].late_ns[p]);
      }
    }
    return samples;
  }

  // "; the longest wait is 20.0 ms, for rank 2 before sum3 in step 0"; empty: it is short.
  std::string LongestWait() const {
    int64_t longest_ns = 0;
    size_t profile = 0;
    const CallLateness* call = nullptr;
    for (const CallLateness& one : calls_) {
      const auto late = std::ranges::max_element(one.late_ns);
      if (*late <= longest_ns) continue;
      longest_ns = *late;
      profile = static_cast<size_t>(late - one.late_ns.begin());
      call = &one;
    }
    if (call == nullptr || static_cast<double>(longest_ns) < kStandsOut * wall_ns_) return "";
    const Span& span = *call->members.front().span;
    const std::string name =
        span.subject == 0 ? "a collective"
                          : Printable(profiles_[call->members.front().profile].task(span).name);
    return fmt::format("; the longest single wait is {}, for rank {} before {} in step {}",
                       DurationText(longest_ns), ranks_[profile].rank, name, span.iteration);
  }

  std::vector<size_t> Without(const std::vector<size_t>& out) const {
    std::vector<size_t> others;
    for (size_t p = 0; p < profiles_.size(); ++p) {
      if (!std::ranges::binary_search(out, p)) others.push_back(p);
    }
    return others;
  }

  // The part of the worst rank's time that is longer than that of the others by the most: step by
  // step against their median, without the ends.
  NamedPart Excess(size_t worst, const std::vector<size_t>& others) const {
    NamedPart most{"between steps", "it stays between its steps", BetweenExcess(worst, others)};
    for (const PartOfStep& part : kPartsOfStep) {
      std::vector<double> above;
      for (const auto& [step, ranks] : steps_) {
        const auto mine = ranks.find(ranks_[worst].rank);
        if (mine == ranks.end()) continue;
        std::vector<int64_t> theirs;
        for (const size_t p : others) {
          const auto found = ranks.find(ranks_[p].rank);
          if (found != ranks.end()) theirs.push_back(part.of(found->second));
        }
        above.push_back(static_cast<double>(part.of(mine->second) - MedianOf(std::move(theirs))));
      }
      const int64_t ns = SumOf(std::move(above));
      if (ns > most.ns) most = {part.name, part.verb, ns};
    }
    return most;
  }

  int64_t BetweenExcess(size_t worst, const std::vector<size_t>& others) const {
    std::vector<double> above = BetweenSteps(profiles_[worst]);
    std::vector<std::vector<double>> theirs;
    for (const size_t p : others) theirs.push_back(BetweenSteps(profiles_[p]));
    for (size_t i = 0; i < above.size(); ++i) {
      std::vector<int64_t> here;
      for (const std::vector<double>& one : theirs) {
        if (i < one.size()) here.push_back(static_cast<int64_t>(one[i]));
      }
      above[i] -= static_cast<double>(MedianOf(std::move(here)));
    }
    return SumOf(std::move(above));
  }

  // As if the ends were as the others are.
  static int64_t SumOf(std::vector<double> values) {
    const auto count = static_cast<double>(values.size());
    return std::llround(count * MeanWithout(std::move(values), Ends::kBoth));
  }

  // "before MatMul_3", "in MatMul_3 (MatMul)"; empty: no operator has most of it.
  std::string PlaceOf(const NamedPart& part, size_t worst, const std::vector<size_t>& others,
                      std::string& op) const {
    const bool computes = part.name == "computing";
    if (!computes && part.name != "idle") return "";
    const auto times = computes ? &RankFacts::computing_in : &RankFacts::idle_before;
    std::vector<const TimesByName*> theirs;
    for (const size_t p : others) theirs.push_back(&(ranks_[p].*times));
    const auto [name, above_ns] = MostAbove(ranks_[worst].*times, theirs);
    if (static_cast<double>(above_ns) < kExplains * static_cast<double>(part.ns)) return "";
    op = name;
    return fmt::format(", {} {}", computes ? "in" : "before", Printable(name));
  }

  void Describe(size_t worst, const std::vector<size_t>& out, SlowestFacts& slowest) const {
    const std::vector<size_t> others = Without(out);
    const RankFacts& rank = ranks_[worst];
    for (const size_t p : out) slowest.ranks.push_back(ranks_[p].rank);
    slowest.rank = rank.rank;
    slowest.late_ns = sums_[worst];
    NoteOrder(rank, slowest);
    const bool alone = slowest.ranks.size() == 1;
    slowest.text =
        fmt::format("{} {} the others up: {} enters {} of {} last, and is late by {} in all",
                    RanksText(slowest.ranks), alone ? "holds" : "hold",
                    alone ? "it" : fmt::format("rank {}", rank.rank), rank.came_last,
                    CountText(rank.collectives, "collective"), DurationText(slowest.late_ns));
    const NamedPart part = Excess(worst, others);
    const double usual = UsualLateness(worst);
    if (part.ns <= 0 || static_cast<double>(part.ns) < kExplains * usual) {
      slowest.text += "; no part of its time explains that alone";
      return;
    }
    slowest.part = part.name;
    slowest.part_ns = part.ns;
    const std::string place = PlaceOf(part, worst, others, slowest.op);
    slowest.text +=
        fmt::format("; {} {} longer than the others{}", part.verb, DurationText(part.ns), place);
  }

  // The lateness of all samples as if the worst tenth were as the others are.
  double UsualLateness(size_t worst) const {
    std::vector<double> samples = Samples()[worst];
    const auto count = static_cast<double>(samples.size());
    return count * MeanWithout(std::move(samples), Ends::kWorst);
  }

  void NoteOrder(const RankFacts& rank, SlowestFacts& slowest) const {
    const auto computing = [](const RankFacts& one) {
      return one.parts.computing_ns + one.parts.overlapped_ns;
    };
    slowest.computes_longest = std::ranges::all_of(
        ranks_, [&](const RankFacts& other) { return computing(other) <= computing(rank); });
    slowest.waits_least = std::ranges::all_of(ranks_, [&](const RankFacts& other) {
      return other.parts.waiting_ns >= rank.parts.waiting_ns;
    });
    slowest.enters_last = std::ranges::all_of(
        ranks_, [&](const RankFacts& other) { return other.came_last <= rank.came_last; });
  }

  const std::vector<RankProfile>& profiles_;
  const std::vector<RankFacts>& ranks_;
  std::vector<CallLateness> calls_;
  std::map<uint32_t, std::map<int, TimeParts>> steps_;  // whole ones, by number and rank
  std::vector<int64_t> sums_;                           // of the lateness, by profile
  double wall_ns_ = 0;                                  // of the steps, mean over the ranks
};

}  // namespace

SlowestFacts FindSlowest(const std::vector<RankProfile>& profiles, const CollectiveCalls& calls,
                         const CommonClock& clock, const std::vector<RankFacts>& ranks,
                         const std::vector<StepFacts>& steps) {
  return SlowestFinder(profiles, calls, clock, ranks, steps).Run();
}

TimesByName IdleBefore(const RankProfile& profile) {
  std::vector<const Span*> spans;
  std::vector<Stretches::Stretch> windows;
  for (const Span& span : profile.spans) {
    if (span.kind == SpanKind::kIteration) windows.push_back({span.begin_ns, span.end_ns});
    const bool busy = span.kind != SpanKind::kIteration && span.kind != SpanKind::kMemory &&
                      span.kind != SpanKind::kApi;
    if (busy) spans.push_back(&span);
  }
  std::ranges::stable_sort(spans, {}, &Span::begin_ns);
  const bool has_steps = !windows.empty();
  const Stretches steps(std::move(windows));
  std::map<std::string, std::vector<double>> idle;
  int64_t busy_until = spans.empty() ? 0 : spans.front()->begin_ns;
  if (has_steps) busy_until = std::min(busy_until, steps.all().front().begin_ns);
  for (const Span* span : spans) {
    if (span->begin_ns > busy_until && span->subject != 0) {
      const Stretches::Stretch gap{busy_until, span->begin_ns};
      const int64_t ns = has_steps ? steps.In(gap).total_ns() : gap.end_ns - gap.begin_ns;
      if (ns > 0) idle[profile.task(*span).name].push_back(static_cast<double>(ns));
    }
    busy_until = std::max(busy_until, span->end_ns);
  }
  return SumsWithoutWorst(std::move(idle));
}

TimesByName ComputingIn(const RankProfile& profile) {
  std::map<std::string, std::vector<double>> computing;
  for (const Span& span : profile.spans) {
    if (span.kind != SpanKind::kTask || span.subject == 0) continue;
    const ProfiledTask& task = profile.task(span);
    if (task.type.starts_with("Hcom")) continue;
    computing[task.name].push_back(static_cast<double>(span.end_ns - span.begin_ns));
  }
  return SumsWithoutWorst(std::move(computing));
}

int64_t MedianOf(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::pair<std::string, int64_t> MostAbove(const TimesByName& mine,
                                          const std::vector<const TimesByName*>& others) {
  std::pair<std::string, int64_t> most{"", 0};
  for (const auto& [name, ns] : mine) {
    std::vector<int64_t> theirs;
    for (const TimesByName* const other : others) {
      const auto found = other->find(name);
      theirs.push_back(found == other->end() ? 0 : found->second);
    }
    const int64_t above = ns - MedianOf(std::move(theirs));
    if (above > most.second) most = {name, above};
  }
  return most;
}

}  // namespace npumesh
