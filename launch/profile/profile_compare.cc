#include "launch/profile/profile_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "launch/profile/units.h"
#include "runtime/base/printable.h"

namespace npumesh {
namespace {

using TimesByKey = std::map<std::pair<std::string, std::string>, ComparedTime>;

std::vector<ComparedTime> MostSlowerFirst(TimesByKey by_key) {
  std::vector<ComparedTime> all;
  for (auto& [key, time] : by_key) {
    std::tie(time.name, time.type) = key;
    all.push_back(std::move(time));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &ComparedTime::slower_ns);
  return all;
}

std::vector<ComparedTime> CompareOperators(const std::vector<OperatorFacts>& before,
                                           const std::vector<OperatorFacts>& after) {
  TimesByKey times;
  for (const OperatorFacts& one : before) {
    ComparedTime& time = times[{one.name, one.type}];
    time.count_before = one.count;
    time.before_ns = one.total_ns;
  }
  for (const OperatorFacts& one : after) {
    ComparedTime& time = times[{one.name, one.type}];
    time.count_after = one.count;
    time.after_ns = one.total_ns;
  }
  return MostSlowerFirst(std::move(times));
}

std::vector<OperatorFacts> AsOperators(const std::vector<KindFacts>& collectives) {
  std::vector<OperatorFacts> all;
  for (const KindFacts& one : collectives) {
    all.push_back({.name = one.kind,
                   .type = "collective",
                   .count = one.spans,
                   .total_ns = one.moving_ns + one.waiting_ns});
  }
  return all;
}

// The mean over ranks of each whole step.
std::map<uint32_t, TimeParts> MeanSteps(const std::vector<StepFacts>& steps) {
  std::map<uint32_t, std::pair<TimeParts, int64_t>> sums;
  for (const StepFacts& step : steps) {
    if (!step.whole) continue;
    auto& [sum, ranks] = sums[step.step];
    sum += step.parts;
    ++ranks;
  }
  std::map<uint32_t, TimeParts> means;
  for (const auto& [step, sum] : sums) {
    const auto& [parts, ranks] = sum;
    means[step] = {parts.wall_ns / ranks,   parts.computing_ns / ranks, parts.overlapped_ns / ranks,
                   parts.moving_ns / ranks, parts.waiting_ns / ranks,   parts.preparing_ns / ranks,
                   parts.idle_ns / ranks};
  }
  return means;
}

// "+12.0 ms", "-3.00 us".
std::string ChangeText(int64_t ns) {
  return (ns > 0 ? "+" : "") + DurationText(ns);
}

std::string FactorText(double before, double after) {
  return before > 0 && after > 0 ? fmt::format("{:.2f}", after / before) : "-";
}

std::string TimesTable(std::string_view title, const std::vector<ComparedTime>& times,
                       size_t most) {
  if (times.empty()) return "";
  std::string text = fmt::format("{}\n{:>10} {:>9} {:>9} {:>9} {:>9} {:>7}  {}\n", title, "change",
                                 "total A", "total B", "mean A", "mean B", "factor", "name");
  const size_t shown = std::min(times.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    const ComparedTime& one = times[i];
    std::string name = Printable(one.name.empty() ? one.type : one.name);
    if (one.count_before == 0) name += " (only in B)";
    if (one.count_after == 0) name += " (only in A)";
    text += fmt::format("{:>10} {:>9} {:>9} {:>9} {:>9} {:>7}  {}\n", ChangeText(one.slower_ns()),
                        DurationText(one.before_ns), DurationText(one.after_ns),
                        DurationText(one.mean_before_ns()), DurationText(one.mean_after_ns()),
                        FactorText(one.mean_before_ns(), one.mean_after_ns()), name);
  }
  if (shown < times.size()) text += fmt::format("  {} more: --top, --json\n", times.size() - shown);
  return text;
}

std::string StepsTable(const ComparedProfiles& compared, size_t most) {
  if (compared.steps.empty()) return "no step is whole in both profiles\n";
  std::string text = fmt::format(
      "steps, mean over ranks\n{:>7} {:>10} {:>9} {:>9} {:>7} {:>11} "
      "{:>10} {:>10}\n",
      "step", "change", "A", "B", "factor", "computing", "moving", "waiting");
  const size_t shown = std::min(compared.steps.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    const ComparedStep& step = compared.steps[i];
    const auto busy = [](const TimeParts& parts) {
      return parts.computing_ns + parts.overlapped_ns;
    };
    text += fmt::format("{:>7} {:>10} {:>9} {:>9} {:>7} {:>11} {:>10} {:>10}\n", step.step,
                        ChangeText(step.after.wall_ns - step.before.wall_ns),
                        DurationText(step.before.wall_ns), DurationText(step.after.wall_ns),
                        FactorText(static_cast<double>(step.before.wall_ns),
                                   static_cast<double>(step.after.wall_ns)),
                        ChangeText(busy(step.after) - busy(step.before)),
                        ChangeText(step.after.moving_ns - step.before.moving_ns),
                        ChangeText(step.after.waiting_ns - step.before.waiting_ns));
  }
  if (shown < compared.steps.size()) {
    text += fmt::format("  {} more: --top, --json\n", compared.steps.size() - shown);
  }
  return text;
}

double MeanOf(int64_t total_ns, uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(total_ns) / static_cast<double>(count);
}

}  // namespace

double ComparedTime::mean_before_ns() const {
  return MeanOf(before_ns, count_before);
}

double ComparedTime::mean_after_ns() const {
  return MeanOf(after_ns, count_after);
}

ComparedProfiles CompareProfiles(const ProfileFacts& before, const ProfileFacts& after) {
  ComparedProfiles compared;
  for (const std::string& gap : before.gaps) compared.gaps.push_back("A: " + gap);
  for (const std::string& gap : after.gaps) compared.gaps.push_back("B: " + gap);
  if (before.world_size != after.world_size) {
    compared.gaps.push_back(fmt::format("A has {} ranks, B has {}: sums over ranks differ",
                                        before.world_size, after.world_size));
  }
  std::map<uint32_t, TimeParts> steps_after = MeanSteps(after.steps);
  for (const auto& [step, parts] : MeanSteps(before.steps)) {
    const auto found = steps_after.find(step);
    if (found == steps_after.end()) {
      ++compared.steps_only_before;
      continue;
    }
    compared.steps.push_back({step, parts, found->second});
    steps_after.erase(found);
  }
  compared.steps_only_after = steps_after.size();
  compared.operators = CompareOperators(before.operators, after.operators);
  compared.types = CompareOperators(before.types, after.types);
  compared.collectives =
      CompareOperators(AsOperators(before.collectives), AsOperators(after.collectives));
  return compared;
}

std::string ComparedText(const ComparedProfiles& compared, size_t most) {
  std::string text;
  for (const std::string& gap : compared.gaps) text += fmt::format("warning: {}\n", gap);
  if (compared.steps_only_before + compared.steps_only_after > 0) {
    text += fmt::format("{} only in A, {} only in B\n",
                        CountText(compared.steps_only_before, "step"), compared.steps_only_after);
  }
  text += StepsTable(compared, most);
  text += TimesTable("operators by type, sums over ranks and steps", compared.types, most);
  text += TimesTable("operators by name", compared.operators, most);
  return text + TimesTable("collectives, moving and waiting", compared.collectives, most);
}

}  // namespace npumesh
