#include "launch/profile/rank_parts.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace npumesh {
namespace {

using Stretch = Stretches::Stretch;

// Ends at the arrival, which may not lie outside of the span.
int64_t ArrivalIn(const Span& span) {
  return std::clamp(span.arrived_ns, span.begin_ns, span.end_ns);
}

bool IsCollectiveOperator(const ProfiledTask& task) {
  return task.type.starts_with("Hcom");
}

// Operators and calls of one name. A call that an operator makes has the operator's name.
struct NamedTimes {
  std::vector<Stretch> tasks;
  std::vector<Stretch> calls;
};

// Windows of one step.
struct StepWindows {
  std::vector<Stretch> windows;  // of its iteration spans
  Stretch extent{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()};
};

std::map<uint32_t, StepWindows> StepWindowsOf(const RankProfile& profile) {
  std::map<uint32_t, StepWindows> steps;
  for (const Span& span : profile.spans) {
    if (span.kind == SpanKind::kMemory) continue;
    if (span.kind == SpanKind::kIteration) {
      steps[static_cast<uint32_t>(span.number)].windows.push_back({span.begin_ns, span.end_ns});
      continue;
    }
    Stretch& extent = steps[span.iteration].extent;
    extent.begin_ns = std::min(extent.begin_ns, span.begin_ns);
    extent.end_ns = std::max(extent.end_ns, span.end_ns);
  }
  return steps;
}

// All operators, without the calls that they make themselves.
Stretches ComputingOf(std::map<std::string_view, NamedTimes> named) {
  std::vector<Stretch> computing;
  for (auto& [name, times] : named) {
    if (times.calls.empty()) {
      computing.insert(computing.end(), times.tasks.begin(), times.tasks.end());
      continue;
    }
    const Stretches calls(std::move(times.calls));
    const Stretches rest = Stretches(std::move(times.tasks)).Without(calls);
    computing.insert(computing.end(), rest.all().begin(), rest.all().end());
  }
  return Stretches(std::move(computing));
}

TimeParts& AddParts(TimeParts& sum, const RankActivity& activity,
                    const std::vector<Stretch>& windows) {
  for (const Stretch& window : windows) sum += PartsIn(activity, window);
  return sum;
}

}  // namespace

Stretch MovingTime(const Span& span) {
  if (span.arrived_ns == 0) return {span.begin_ns, span.end_ns};
  return {ArrivalIn(span), span.end_ns};
}

Stretch WaitingTime(const Span& span) {
  if (span.arrived_ns == 0) return {span.begin_ns, span.begin_ns};
  return {span.begin_ns, ArrivalIn(span)};
}

RankActivity ActivityOf(const RankProfile& profile) {
  std::map<std::string_view, NamedTimes> named;
  std::vector<Stretch> moving;
  std::vector<Stretch> waiting;
  std::vector<Stretch> preparing;
  for (const Span& span : profile.spans) {
    const Stretch whole{span.begin_ns, span.end_ns};
    std::string_view name;
    if (span.subject != 0) name = profile.task(span).name;
    switch (span.kind) {
      case SpanKind::kTask:
        if (span.subject != 0 && IsCollectiveOperator(profile.task(span))) break;
        named[name].tasks.push_back(whole);
        break;
      case SpanKind::kCollective:
      case SpanKind::kMessage:
        if (!name.empty()) named[name].calls.push_back(whole);
        moving.push_back(MovingTime(span));
        waiting.push_back(WaitingTime(span));
        break;
      case SpanKind::kCopy:
      case SpanKind::kCompile:
        preparing.push_back(whole);
        break;
      default:
        break;
    }
  }
  RankActivity activity;
  activity.computing = ComputingOf(std::move(named));
  activity.moving = Stretches(std::move(moving));
  activity.waiting = Stretches(std::move(waiting)).Without(activity.moving);
  activity.preparing = Stretches(std::move(preparing));
  return activity;
}

TimeParts PartsIn(const RankActivity& activity, Stretch window) {
  TimeParts parts;
  parts.wall_ns = std::max<int64_t>(window.end_ns - window.begin_ns, 0);
  const Stretches computing = activity.computing.In(window);
  const Stretches moving = activity.moving.In(window);
  const Stretches waiting = activity.waiting.In(window);
  const Stretches calls = moving.Or(waiting);
  const Stretches busy = computing.Or(calls);
  parts.overlapped_ns = computing.And(calls).total_ns();
  parts.computing_ns = computing.total_ns() - parts.overlapped_ns;
  parts.moving_ns = moving.Without(computing).total_ns();
  parts.waiting_ns = waiting.Without(computing).total_ns();
  parts.preparing_ns = activity.preparing.In(window).Without(busy).total_ns();
  parts.idle_ns = parts.wall_ns - busy.total_ns() - parts.preparing_ns;
  return parts;
}

std::vector<StepFacts> StepsOf(const RankProfile& profile) {
  const RankActivity activity = ActivityOf(profile);
  std::vector<StepFacts> steps;
  int64_t previous_end = 0;
  const std::map<uint32_t, StepWindows> all = StepWindowsOf(profile);
  const bool has_windows =
      std::ranges::any_of(all, [](const auto& one) { return !one.second.windows.empty(); });
  for (const auto& [step, times] : all) {
    StepFacts facts{.step = step, .rank = profile.owner.rank, .whole = !times.windows.empty()};
    if (facts.whole) {
      const Stretches windows(times.windows);
      AddParts(facts.parts, activity, windows.all());
      if (!windows.all().empty()) previous_end = windows.all().back().end_ns;
    } else {
      // What ran after the last step of a rank that ended in order is no step.
      if (has_windows && profile.ended) continue;
      Stretch window = times.extent;
      window.begin_ns = std::max(window.begin_ns, previous_end);
      if (window.begin_ns >= window.end_ns) continue;  // an echo of the step before it
      AddParts(facts.parts, activity, {window});
      previous_end = window.end_ns;
    }
    steps.push_back(facts);
  }
  return steps;
}

}  // namespace npumesh
