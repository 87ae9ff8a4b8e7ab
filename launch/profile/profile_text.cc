#include "launch/profile/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "launch/profile/units.h"
#include "runtime/base/printable.h"

namespace npumesh {
namespace {

constexpr size_t kMostName = 40;
constexpr size_t kNarrowKind = 26;  // of a collective, on a narrow screen

std::string PercentText(int64_t part_ns, int64_t wall_ns) {
  if (wall_ns <= 0) return "";
  return fmt::format("{:.1f}%", 100 * static_cast<double>(part_ns) / static_cast<double>(wall_ns));
}

std::string NameCell(const std::string& name, size_t most = kMostName) {
  return EndOf(Printable(name), most);
}

std::string RateCell(double rate) {
  return rate == 0 ? "-" : fmt::format("{:.3g}", rate);
}

std::string Heading(const ProfileFacts& facts) {
  const std::set<uint32_t> steps = [&] {
    std::set<uint32_t> all;
    for (const StepFacts& step : facts.steps) all.insert(step.step);
    return all;
  }();
  std::string text = fmt::format("{} of {} on {}, {}", facts.ranks.size(),
                                 CountText(static_cast<uint64_t>(facts.world_size), "rank"),
                                 CountText(facts.hosts, "host"), CountText(steps.size(), "step"));
  if (!facts.command.empty()) text += "; " + Printable(facts.command);
  return text + "\n";
}

std::string Warnings(const ProfileFacts& facts) {
  std::string text;
  for (const std::string& gap : facts.gaps) text += fmt::format("warning: {}\n", gap);
  const std::string clock = ClockText(facts);
  if (!clock.empty()) text += clock + "\n";
  const std::string causes = CauseText(facts.causes);
  if (!causes.empty()) text += fmt::format("warning: {}\n", causes);
  return text;
}

// Widths of the tables' columns.
struct Layout {
  bool narrow = false;
  size_t part = 10;         // of a part of the time
  size_t name = kMostName;  // of an operator
};

// The widest table of all takes this much.
constexpr int kWideScreen = 126;
constexpr int kLeastScreen = 80;

Layout LayoutFor(int columns) {
  if (columns == 0 || columns >= kWideScreen) return {};
  constexpr int kBeforeName = 38;
  const int room = std::max(columns, kLeastScreen) - kBeforeName;
  return {true, 8, std::min(kMostName, static_cast<size_t>(room))};
}

std::string PartsCells(const TimeParts& parts, const Layout& layout) {
  std::string text = fmt::format("{:>9}", DurationText(parts.wall_ns));
  for (const int64_t part : {parts.computing_ns, parts.overlapped_ns, parts.moving_ns,
                             parts.waiting_ns, parts.preparing_ns, parts.idle_ns}) {
    text += fmt::format(" {:>{}}", PercentText(part, parts.wall_ns), layout.part);
  }
  return text;
}

std::string PartsHead(std::string_view first, const Layout& layout) {
  constexpr std::array<std::array<std::string_view, 6>, 2> kNames = {
      {{"computing", "overlapped", "moving", "waiting", "preparing", "idle"},
       {"computes", "overlaps", "moving", "waiting", "prepares", "idle"}}};
  std::string text = fmt::format("{:>12} {:>9}", first, "wall");
  for (const std::string_view name : kNames[layout.narrow ? 1 : 0]) {
    text += fmt::format(" {:>{}}", name, layout.part);
  }
  return text;
}

std::string StepTable(const ProfileFacts& facts, size_t most, const Layout& layout) {
  if (facts.steps.empty()) return "no step was recorded\n";
  std::string text = "steps\n" + PartsHead("step rank", layout) + "\n";
  const size_t shown = std::min(facts.steps.size(), most * facts.ranks.size());
  for (size_t s = 0; s < shown; ++s) {
    const StepFacts& step = facts.steps[s];
    text += fmt::format("{:>7} {:>4} {}{}\n", step.step, step.rank, PartsCells(step.parts, layout),
                        step.whole ? "" : "  no end");
  }
  if (shown < facts.steps.size()) {
    text += fmt::format("  {} more: --top, --json\n", CountText(facts.steps.size() - shown, "row"));
  }
  return text;
}

constexpr std::string_view kArrivalFormat = " {:>10} {:>14} {:>11}";

std::string ArrivalHead() {
  return fmt::format(kArrivalFormat, "came last", "others waited", "HBM");
}

std::string ArrivalCells(const RankFacts& rank) {
  return fmt::format(kArrivalFormat, fmt::format("{}/{}", rank.came_last, rank.collectives),
                     DurationText(rank.others_waited_ns),
                     rank.highest_memory == 0 ? "-" : BytesText(rank.highest_memory));
}

// On a narrow screen the ranks have a second table.
std::string RankTable(const ProfileFacts& facts, const Layout& layout) {
  std::string text = "ranks, all steps\n" + PartsHead("rank", layout);
  text += (layout.narrow ? "" : ArrivalHead()) + "\n";
  for (const RankFacts& rank : facts.ranks) {
    text += fmt::format("{:>12} {}{}\n", rank.rank, PartsCells(rank.parts, layout),
                        layout.narrow ? "" : ArrivalCells(rank));
  }
  if (!layout.narrow) return text;
  text += fmt::format("{:>12}{}\n", "rank", ArrivalHead());
  for (const RankFacts& rank : facts.ranks) {
    text += fmt::format("{:>12}{}\n", rank.rank, ArrivalCells(rank));
  }
  return text;
}

// "layer0/product (MatMul)"; on a narrow screen the name alone.
std::string OperatorCell(const OperatorFacts& one, const Layout& layout) {
  if (one.name.empty()) return NameCell(one.type, layout.name);
  if (layout.narrow) return NameCell(one.name, layout.name);
  return fmt::format("{} ({})", NameCell(one.name, layout.name), NameCell(one.type, layout.name));
}

// What stands after the times of an operator: its rates and what they are of the machine's, which
// a narrow screen has no room for.
std::string RateCells(const OperatorFacts& one) {
  return fmt::format(" {:>8} {:>8}", RateCell(one.gflops), RateCell(one.gbytes));
}

std::string OperatorTable(std::string_view title, const std::vector<OperatorFacts>& operators,
                          const std::optional<MachineLimits>& limits, size_t most,
                          const Layout& layout) {
  if (operators.empty()) return "";
  std::string text =
      fmt::format("{}\n{:>10} {:>8} {:>9} {:>6}{}  {}\n", title, "total", "count", "mean", "share",
                  layout.narrow ? "" : fmt::format(" {:>8} {:>8}", "GFLOP/s", "GB/s"), "name");
  const size_t shown = std::min(operators.size(), most);
  for (size_t i = 0; i < shown; ++i) {
    const OperatorFacts& one = operators[i];
    const std::string limit = limits && !layout.narrow ? LimitText(one, *limits) : "";
    text += fmt::format("{:>10} {:>8} {:>9} {:>5.1f}%{}  {}{}{}\n", DurationText(one.total_ns),
                        one.count, DurationText(one.mean_ns()), 100 * one.share,
                        layout.narrow ? "" : RateCells(one), OperatorCell(one, layout),
                        limit.empty() ? "" : ": ", limit);
  }
  if (shown < operators.size()) {
    text += fmt::format("  {} more: --top, --json\n", operators.size() - shown);
  }
  return text;
}

std::string CollectiveTable(const std::vector<KindFacts>& collectives, const Layout& layout) {
  if (collectives.empty()) return "no collective was recorded\n";
  std::string text = fmt::format("collectives\n{:>8} {:>10} {:>10} {:>10} {:>8}  {}\n", "calls",
                                 "bytes", "moving", "waiting", "GB/s", "kind");
  for (const KindFacts& one : collectives) {
    text += fmt::format("{:>8} {:>10} {:>10} {:>10} {:>8}  {}\n", one.calls, BytesText(one.bytes),
                        DurationText(one.moving_ns), DurationText(one.waiting_ns),
                        RateCell(one.bandwidth()),
                        NameCell(one.kind, layout.narrow ? kNarrowKind : kMostName));
  }
  return text;
}

}  // namespace

std::optional<NearLimit> NearLimitOf(const OperatorFacts& facts, const MachineLimits& limits) {
  constexpr const char* kMemory = "memory";
  constexpr const char* kCore = "one core";
  if (facts.gflops > 0 && facts.intensity > 0) {
    const double roof = Roofline(limits, facts.intensity);
    return NearLimit{facts.gflops / roof, roof < limits.gflops ? kMemory : kCore};
  }
  if (facts.gflops > 0) return NearLimit{facts.gflops / limits.gflops, kCore};
  if (facts.gbytes > 0) return NearLimit{facts.gbytes / limits.gbytes, kMemory};
  return std::nullopt;
}

std::string LimitText(const OperatorFacts& facts, const MachineLimits& limits) {
  const std::optional<NearLimit> near = NearLimitOf(facts, limits);
  return near ? fmt::format("{:.0f}% of what {} allows", 100 * near->part, near->of) : "";
}

std::string ClockText(const ProfileFacts& facts) {
  if (facts.hosts < 2) return "";
  if (facts.clock_guessed) {
    return "the clocks of the hosts were never compared: their times of day stand in, and who came "
           "last is only a guess";
  }
  return fmt::format("the clocks of {} are joined; times of different hosts may be off by {}",
                     CountText(facts.hosts, "host"), DurationText(facts.clock_bound_ns));
}

std::string CauseText(const CauseCheck& causes) {
  if (causes.violations == 0) return "";
  return fmt::format(
      "{} of {} left a collective before another entered it, by up to {}: do not trust times "
      "between ranks",
      CountText(causes.violations, "member"), CountText(causes.calls, "collective"),
      DurationText(causes.worst_ns));
}

std::string ProfileText(const ProfileFacts& facts, const std::optional<MachineLimits>& limits,
                        size_t most, int columns) {
  const Layout layout = LayoutFor(columns);
  std::string text = Heading(facts) + Warnings(facts) + facts.slowest.text + "\n";
  if (limits) {
    text +=
        fmt::format("one core here: {:.1f} GFLOP/s, {:.1f} GB/s\n", limits->gflops, limits->gbytes);
  }
  text += StepTable(facts, most, layout) + RankTable(facts, layout);
  text += OperatorTable("operators by type", facts.types, limits, most, layout);
  text += OperatorTable("operators by name", facts.operators, limits, most, layout);
  return text + CollectiveTable(facts.collectives, layout);
}

}  // namespace npumesh
