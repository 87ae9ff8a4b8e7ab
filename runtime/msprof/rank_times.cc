#include "runtime/msprof/rank_times.h"

#include <algorithm>
#include <limits>

namespace npumesh {
namespace {

std::vector<Interval> TimesOf(const std::vector<const Span*>& spans) {
  std::vector<Interval> times;
  times.reserve(spans.size());
  for (const Span* span : spans) times.push_back({span->begin_ns, span->end_ns});
  return times;
}

// Spans come in the order in which they ended.
void SortByBegin(std::vector<const Span*>& spans) {
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span* a, const Span* b) { return a->begin_ns < b->begin_ns; });
}

void Take(const RankProfile& profile, const Span& span, WorkTimes& work) {
  if (IsComputation(profile, span)) work.computations.push_back(&span);
  if (IsCommunication(span)) work.calls.push_back(&span);
}

// What follows from the spans of `work`.
void AddUp(const Interval& wall, WorkTimes& work) {
  SortByBegin(work.computations);
  SortByBegin(work.calls);
  work.busy = BusyTimesOf(wall, work.computations, work.calls);
  for (const Span* call : work.calls) {
    const CallTimes times = CallTimesOf(*call);
    work.waiting_ns += times.waiting_ns;
    work.moving_ns += times.moving_ns;
  }
}

Interval WallOf(const RankProfile& profile) {
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  Interval wall{kNever, std::numeric_limits<int64_t>::min()};
  for (const Span& span : profile.spans) {
    if (span.kind != SpanKind::kIteration && !IsComputation(profile, span) &&
        !IsCommunication(span)) {
      continue;
    }
    wall.begin_ns = std::min(wall.begin_ns, span.begin_ns);
    wall.end_ns = std::max({wall.end_ns, span.begin_ns, span.end_ns});
  }
  return wall.begin_ns == kNever ? Interval{} : wall;
}

std::vector<StepTimes> StepsOf(const RankProfile& profile) {
  std::vector<StepTimes> steps;
  for (const Span& span : profile.spans) {
    if (span.kind != SpanKind::kIteration) continue;
    StepTimes step;
    step.iteration = &span;
    step.number = span.number;
    step.busy.wall = {span.begin_ns, std::max(span.begin_ns, span.end_ns)};
    steps.push_back(std::move(step));
  }
  std::stable_sort(steps.begin(), steps.end(), [](const StepTimes& a, const StepTimes& b) {
    return a.busy.wall.begin_ns < b.busy.wall.begin_ns;
  });
  int64_t latest_end_ns = std::numeric_limits<int64_t>::min();
  for (StepTimes& step : steps) {
    latest_end_ns = std::max(latest_end_ns, step.busy.wall.end_ns);
    step.latest_end_ns = latest_end_ns;
  }
  return steps;
}

bool IsNamed(const RankProfile& profile, const Span& span, const std::string& name) {
  return !name.empty() && TaskOf(profile, span).name == name;
}

void FindPoints(const RankProfile& profile, StepTimes& step) {
  for (const Span* span : step.computations) {
    if (IsNamed(profile, *span, profile.owner.fp_point) && !step.fp_start_ns) {
      step.fp_start_ns = span->begin_ns;
    }
    if (IsNamed(profile, *span, profile.owner.bp_point)) {
      step.bp_end_ns = std::max(step.bp_end_ns.value_or(span->end_ns), span->end_ns);
    }
  }
}

}  // namespace

bool IsComputation(const RankProfile& profile, const Span& span) {
  return span.kind == SpanKind::kTask && !TaskOf(profile, span).type.starts_with("Hcom");
}

bool IsCommunication(const Span& span) {
  return span.kind == SpanKind::kCollective || span.kind == SpanKind::kMessage;
}

const ProfiledTask& TaskOf(const RankProfile& profile, const Span& span) {
  static const auto* const none = new ProfiledTask;
  return span.subject == 0 ? *none : profile.task(span);
}

int64_t DurationOf(const Span& span) {
  return std::max<int64_t>(0, span.end_ns - span.begin_ns);
}

CallTimes CallTimesOf(const Span& call) {
  const int64_t end = std::max(call.begin_ns, call.end_ns);
  const int64_t arrived =
      call.arrived_ns == 0 ? call.begin_ns : std::clamp(call.arrived_ns, call.begin_ns, end);
  return {arrived - call.begin_ns, end - arrived};
}

BusyTimes BusyTimesOf(const Interval& wall, const std::vector<const Span*>& computations,
                      const std::vector<const Span*>& calls) {
  BusyTimes busy;
  busy.wall = wall;
  busy.computing = Within(Union(TimesOf(computations)), wall);
  busy.communication = Within(Union(TimesOf(calls)), wall);
  busy.not_overlapped = Without(busy.communication, busy.computing);
  busy.free = Without(Without(Union({wall}), busy.computing), busy.communication);
  return busy;
}

std::optional<size_t> RankTimes::StepOf(const Span& span) const {
  const auto after = std::upper_bound(
      steps.begin(), steps.end(), span.begin_ns,
      [](int64_t ns, const StepTimes& step) { return ns < step.busy.wall.begin_ns; });
  // Steps of two sessions may lie in each other; the one that began last is asked first.
  for (auto at = after; at != steps.begin();) {
    --at;
    if (at->latest_end_ns <= span.begin_ns) return std::nullopt;
    if (at->number == span.iteration && at->busy.wall.Has(span.begin_ns)) {
      return static_cast<size_t>(at - steps.begin());
    }
  }
  return std::nullopt;
}

RankTimes RankTimesOf(const RankProfile& profile) {
  RankTimes times;
  times.steps = StepsOf(profile);
  for (const Span& span : profile.spans) {
    Take(profile, span, times);
    if (span.kind != SpanKind::kTask && !IsCommunication(span)) continue;
    if (const auto step = times.StepOf(span)) Take(profile, span, times.steps[*step]);
  }
  AddUp(WallOf(profile), times);
  for (StepTimes& step : times.steps) {
    AddUp(step.busy.wall, step);
    FindPoints(profile, step);
  }
  return times;
}

std::vector<int64_t> TaskWaits(const std::vector<const Span*>& computations) {
  std::vector<int64_t> waits;
  waits.reserve(computations.size());
  const Span* before = nullptr;
  for (const Span* span : computations) {
    waits.push_back(
        before == nullptr
            ? 0
            : std::max<int64_t>(0, span->begin_ns - std::max(before->begin_ns, before->end_ns)));
    before = span;
  }
  return waits;
}

}  // namespace npumesh
