#include "launch/profile/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <ranges>
#include <set>
#include <vector>

#include "launch/profile/units.h"
#include "launch/report/json_parts.h"
#include "launch/report/table.h"
#include "runtime/base/text/printable.h"

namespace npumesh {

using nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TimeParts, wall_ns, computing_ns, overlapped_ns, moving_ns,
                                   waiting_ns, preparing_ns, idle_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KindFacts, kind, calls, spans, bytes, moving_ns, waiting_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ComparedTime, type, count_before, count_after, before_ns,
                                   after_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ComparedStep, step, before, after)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ComparedRank, rank, before, after)

namespace {

// ---- lists of a report: JSON, and rows of tables ----

json StepJson(const StepFacts& step) {
  json object = step.parts;
  object.update({{"step", step.step}, {"rank", step.rank}, {"whole", step.whole}});
  return object;
}

json RankJson(const RankFacts& rank) {
  json object = rank.parts;
  object.update({{"rank", rank.rank},
                 {"host", rank.host},
                 {"collectives", rank.collectives},
                 {"came_last", rank.came_last},
                 {"others_waited_ns", rank.others_waited_ns},
                 {"highest_memory_bytes", rank.highest_memory}});
  return object;
}

// A rate that is not known is null.
json RateJson(double rate) {
  return rate == 0 ? json() : json(rate);
}

json OperatorJson(const OperatorFacts& one, const std::optional<MachineLimits>& limits) {
  json object = {{"type", one.type},
                 {"count", one.count},
                 {"total_ns", one.total_ns},
                 {"mean_ns", one.mean_ns()},
                 {"share", one.share},
                 {"gflops", RateJson(one.gflops)},
                 {"gbytes", RateJson(one.gbytes)},
                 {"intensity", RateJson(one.intensity)}};
  if (!one.name.empty()) object["name"] = one.name;
  if (!limits) return object;
  object["roofline_gflops"] = one.intensity > 0 ? json(Roofline(*limits, one.intensity)) : json();
  const std::optional<NearLimit> near = NearLimitOf(one, *limits);
  object["limited_by"] = near ? json(near->of) : json();
  object["part_of_limit"] = near ? json(near->part) : json();
  return object;
}

json KindJson(const KindFacts& one) {
  json object = one;
  object["gbytes"] = RateJson(one.bandwidth());
  return object;
}

json ComparedTimeJson(const ComparedTime& one) {
  json object = one;
  object["mean_before_ns"] = one.mean_before_ns();
  object["mean_after_ns"] = one.mean_after_ns();
  if (!one.name.empty()) object["name"] = one.name;
  return object;
}

json SlowestJson(const SlowestFacts& slowest) {
  return {{"rank", FromZero(slowest.rank)},
          {"ranks", slowest.ranks},
          {"late_ns", slowest.late_ns},
          {"part", OrNull(slowest.part)},
          {"part_ns", slowest.part_ns},
          {"operator", OrNull(slowest.op)},
          {"computes_longest", slowest.computes_longest},
          {"waits_least", slowest.waits_least},
          {"enters_last", slowest.enters_last},
          {"text", slowest.text}};
}

// ---- cells ----

std::string Duration(const json& row, std::string_view key) {
  return DurationText(MemberOf(row, key).get<double>());
}

std::string Bytes(const json& row, std::string_view key) {
  return BytesText(MemberOf(row, key).get<uint64_t>());
}

std::string PercentOfWall(const json& row, std::string_view key) {
  const auto wall = MemberOf(row, "wall_ns").get<double>();
  return wall <= 0 ? "" : fmt::format("{:.1f}%", 100 * MemberOf(row, key).get<double>() / wall);
}

std::string Share(const json& row, std::string_view key) {
  return fmt::format("{:.1f}%", 100 * MemberOf(row, key).get<double>());
}

std::string Rate(const json& row, std::string_view key) {
  const json& rate = MemberOf(row, key);
  return rate.is_null() ? "-" : fmt::format("{:.3g}", rate.get<double>());
}

// "+12.0 ms", "-3.00 us".
std::string ChangeText(int64_t ns) {
  return (ns > 0 ? "+" : "") + DurationText(ns);
}

int64_t ChangeOf(const json& row, std::string_view part) {
  return MemberOf(row["after"], part).get<int64_t>() - MemberOf(row["before"], part).get<int64_t>();
}

// Of a part of the time. What is computed beside a collective is computed.
std::string Change(const json& row, std::string_view part) {
  const int64_t more = part == "computing_ns" ? ChangeOf(row, "overlapped_ns") : 0;
  return ChangeText(ChangeOf(row, part) + more);
}

std::string FactorText(const json& before, const json& after) {
  const bool known = before.get<double>() > 0 && after.get<double>() > 0;
  return known ? fmt::format("{:.2f}", after.get<double>() / before.get<double>()) : "-";
}

// A name, cut to what a screen has room for.
CellText NameOf(size_t most) {
  return [most](const json& row, std::string_view key) {
    return EndOf(Printable(MemberOf(row, key).get<std::string>()), most);
  };
}

// ---- tables ----

constexpr size_t kMostName = 40;
constexpr size_t kNarrowKind = 26;  // of a collective, on a narrow screen

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

std::string MoreLine(size_t shown, size_t all, const char* noun = "") {
  if (shown >= all) return "";
  const std::string more =
      *noun == '\0' ? fmt::format("{}", all - shown) : CountText(all - shown, noun);
  return fmt::format("  {} more: --top, --json\n", more);
}

// The first `most` as a table below a title, and how many more there are.
template <typename Row, typename ToJson>
std::string FirstRows(std::string_view title, const TableForm& table, const std::vector<Row>& all,
                      size_t most, const ToJson& to_json, const char* noun = "") {
  return fmt::format("{}\n{}{}", title,
                     TableText(table, ListOf(all | std::views::take(most), to_json)),
                     MoreLine(most, all.size(), noun));
}

// Widths of the tables' columns.
struct Layout {
  bool narrow = false;
  int part = 10;            // of a part of the time
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

// The parts of a time after `first` columns, and `last` ones after them.
TableForm PartsTable(std::vector<Column> first, const Layout& layout,
                     const std::vector<Column>& last) {
  const auto add = [&](std::string_view head, std::string_view narrow, std::string_view key) {
    first.push_back({layout.narrow ? narrow : head, layout.part, key, PercentOfWall});
  };
  first.push_back({"wall", 9, "wall_ns", Duration});
  add("computing", "computes", "computing_ns");
  add("overlapped", "overlaps", "overlapped_ns");
  add("moving", "moving", "moving_ns");
  add("waiting", "waiting", "waiting_ns");
  add("preparing", "prepares", "preparing_ns");
  add("idle", "idle", "idle_ns");
  first.insert(first.end(), last.begin(), last.end());
  return {std::move(first)};
}

std::string StepTable(const ProfileFacts& facts, size_t most, const Layout& layout) {
  if (facts.steps.empty()) return "no step was recorded\n";
  const auto end = [](const json& row, std::string_view key) {
    return MemberOf(row, key).get<bool>() ? "" : "no end";
  };
  return FirstRows(
      "steps",
      PartsTable({{"step", 7, "step"}, {"rank", 4, "rank"}}, layout, {{"", 0, "whole", end}}),
      facts.steps, most * facts.ranks.size(), StepJson, "row");
}

// On a narrow screen the ranks have a second table.
std::string RankTable(const ProfileFacts& facts, const Layout& layout) {
  const Column rank{"rank", 12, "rank"};
  const std::vector<Column> arrival = {
      {"came last", 10, "came_last",
       [](const json& row, std::string_view key) {
         return fmt::format("{}/{}", MemberOf(row, key).dump(),
                            MemberOf(row, "collectives").dump());
       }},
      {"others waited", 14, "others_waited_ns", Duration},
      {"HBM", 11, "highest_memory_bytes", [](const json& row, std::string_view key) {
         return MemberOf(row, key) == 0 ? "-" : Bytes(row, key);
       }}};
  const json rows = ListOf(facts.ranks, RankJson);
  if (!layout.narrow) {
    return "ranks, all steps\n" + TableText(PartsTable({rank}, layout, arrival), rows);
  }
  return "ranks, all steps\n" + TableText(PartsTable({rank}, layout, {}), rows) +
         TableText({{rank, arrival[0], arrival[1], arrival[2]}}, rows);
}

std::string OperatorTable(std::string_view title, const std::vector<OperatorFacts>& operators,
                          const std::optional<MachineLimits>& limits, size_t most,
                          const Layout& layout) {
  if (operators.empty()) return "";
  // "layer0/product (MatMul): 10% of what memory allows"; on a narrow screen the name alone.
  const auto label = [&](const json& row, std::string_view) {
    const bool named = row.contains("name");
    std::string text = NameOf(layout.name)(row, named ? "name" : "type");
    if (layout.narrow) return text;
    if (named) text += fmt::format(" ({})", NameOf(layout.name)(row, "type"));
    const std::string limit = row.value("limit", "");
    return limit.empty() ? text : text + ": " + limit;
  };
  const TableForm table{{{"total", 10, "total_ns", Duration},
                         {"count", 8, "count"},
                         {"mean", 9, "mean_ns", Duration},
                         {"share", 6, "share", Share},
                         {"GFLOP/s", 8, "gflops", Rate, !layout.narrow},
                         {"GB/s", 8, "gbytes", Rate, !layout.narrow},
                         {"name", 0, "name", label}}};
  return FirstRows(title, table, operators, most, [&limits](const OperatorFacts& one) {
    json row = OperatorJson(one, limits);
    if (limits) row["limit"] = LimitText(one, *limits);
    return row;
  });
}

std::string CollectiveTable(const std::vector<KindFacts>& collectives, const Layout& layout) {
  if (collectives.empty()) return "no collective was recorded\n";
  const TableForm table{{{"calls", 8, "calls"},
                         {"bytes", 10, "bytes", Bytes},
                         {"moving", 10, "moving_ns", Duration},
                         {"waiting", 10, "waiting_ns", Duration},
                         {"GB/s", 8, "gbytes", Rate},
                         {"kind", 0, "kind", NameOf(layout.narrow ? kNarrowKind : kMostName)}}};
  return "collectives\n" + TableText(table, ListOf(collectives, KindJson));
}

// `room`: for a name.
std::string TimesTable(std::string_view title, const std::vector<ComparedTime>& times, size_t most,
                       size_t room) {
  if (times.empty()) return "";
  const auto change = [](const json& row, std::string_view) {
    return ChangeText(row["after_ns"].get<int64_t>() - row["before_ns"].get<int64_t>());
  };
  const auto factor = [](const json& row, std::string_view) {
    return FactorText(row["mean_before_ns"], row["mean_after_ns"]);
  };
  const auto name = [room](const json& row, std::string_view key) {
    return NameOf(room)(row, row.contains(key) ? key : "type") +
           (row["count_before"] == 0 ? " (only in B)" : "") +
           (row["count_after"] == 0 ? " (only in A)" : "");
  };
  const TableForm table{{{"change", 10, "", change},
                         {"total A", 9, "before_ns", Duration},
                         {"total B", 9, "after_ns", Duration},
                         {"mean A", 9, "mean_before_ns", Duration},
                         {"mean B", 9, "mean_after_ns", Duration},
                         {"factor", 7, "", factor},
                         {"name", 0, "name", name}}};
  return FirstRows(title, table, times, most, ComparedTimeJson);
}

std::string StepsTable(const ComparedProfiles& compared, size_t most) {
  if (compared.steps.empty()) return "no step is whole in both profiles\n";
  const auto factor = [](const json& row, std::string_view key) {
    return FactorText(row["before"].at(key), row["after"].at(key));
  };
  const TableForm table{{{"step", 7, "step"},
                         {"change", 10, "wall_ns", Change},
                         {"A", 9, "before/wall_ns", Duration},
                         {"B", 9, "after/wall_ns", Duration},
                         {"factor", 7, "wall_ns", factor},
                         {"computing", 11, "computing_ns", Change},
                         {"moving", 10, "moving_ns", Change},
                         {"waiting", 10, "waiting_ns", Change}}};
  return FirstRows("steps, mean over ranks", table, compared.steps, most,
                   [](const ComparedStep& step) { return json(step); });
}

// What changed on each rank, means of the steps that count.
std::string RanksTable(const std::vector<ComparedRank>& ranks) {
  if (ranks.size() < 2) return "";
  const TableForm table{{{"rank", 5, "rank"},
                         {"change", 10, "wall_ns", Change},
                         {"computing", 10, "computing_ns", Change},
                         {"moving", 9, "moving_ns", Change},
                         {"waiting", 9, "waiting_ns", Change},
                         {"preparing", 9, "preparing_ns", Change},
                         {"idle", 9, "idle_ns", Change}}};
  return "ranks, mean of a step\n" + TableText(table, ranks);
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

CommandReport ProfileReport(const ProfileFacts& facts, const std::optional<MachineLimits>& limits) {
  CommandReport report;
  for (const std::string& gap : facts.gaps) report.Add(Severity::kWarning, gap);
  const std::string causes = CauseText(facts.causes);
  if (!causes.empty()) report.Add(Severity::kWarning, causes);
  if (facts.clock_guessed) report.Add(Severity::kWarning, ClockText(facts));
  report.verdict = report.findings.empty() ? "whole" : "partial";
  const auto operators = [&limits](const OperatorFacts& one) { return OperatorJson(one, limits); };
  const json bound = facts.clock_guessed ? json() : json(facts.clock_bound_ns);
  report.details = {{"profiled", facts.command},
                    {"world_size", facts.world_size},
                    {"clock",
                     {{"hosts", facts.hosts},
                      {"bound_ns", bound},
                      {"collectives_checked", facts.causes.calls},
                      {"effects_before_causes", facts.causes.violations}}},
                    {"slowest", SlowestJson(facts.slowest)},
                    {"steps", ListOf(facts.steps, StepJson)},
                    {"ranks", ListOf(facts.ranks, RankJson)},
                    {"types", ListOf(facts.types, operators)},
                    {"operators", ListOf(facts.operators, operators)},
                    {"collectives", ListOf(facts.collectives, KindJson)}};
  report.details["limits"] =
      limits ? json{{"gflops", limits->gflops}, {"gbytes", limits->gbytes}} : json();
  return report;
}

CommandReport ComparedReport(const ComparedProfiles& compared) {
  CommandReport report;
  for (const std::string& gap : compared.gaps) report.Add(Severity::kWarning, gap);
  const ComparedVerdict& verdict = compared.verdict;
  report.verdict = verdict.word;
  if (verdict.word == "slower") {
    report.Add(Severity::kAdvice, verdict.text,
               verdict.rank < 0 ? json::object() : json{{"rank", verdict.rank}});
  }
  report.details = {{"text", verdict.text},
                    {"factor", RateJson(verdict.factor)},
                    {"change_ns", verdict.change_ns},
                    {"rank", FromZero(verdict.rank)},
                    {"ranks", compared.ranks},
                    {"steps", compared.steps},
                    {"steps_only_before", compared.steps_only_before},
                    {"steps_only_after", compared.steps_only_after},
                    {"types", ListOf(compared.types, ComparedTimeJson)},
                    {"operators", ListOf(compared.operators, ComparedTimeJson)},
                    {"collectives", ListOf(compared.collectives, ComparedTimeJson)}};
  return report;
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

std::string ComparedText(const ComparedProfiles& compared, size_t most, int columns) {
  // What a screen of 80 columns leaves for a name; "(only in B)" follows some.
  constexpr size_t kNarrowName = 16;
  constexpr int kWideScreen = 120;
  const size_t room =
      columns == 0 || columns >= kWideScreen ? std::numeric_limits<size_t>::max() : kNarrowName;
  std::string text;
  for (const std::string& gap : compared.gaps) text += fmt::format("warning: {}\n", gap);
  text += compared.verdict.text + "\n";
  if (compared.steps_only_before + compared.steps_only_after > 0) {
    text += fmt::format("{} only in A, {} only in B\n",
                        CountText(compared.steps_only_before, "step"), compared.steps_only_after);
  }
  text += StepsTable(compared, most);
  text += RanksTable(compared.ranks);
  text += TimesTable("operators by type, sums over ranks and steps", compared.types, most, room);
  text += TimesTable("operators by name", compared.operators, most, room);
  return text + TimesTable("collectives, moving and waiting", compared.collectives, most, room);
}

}  // namespace npumesh
