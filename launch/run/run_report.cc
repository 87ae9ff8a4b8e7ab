#include "launch/run/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "graph/compare/measures/elements.h"
#include "launch/ranks/standing_out.h"
#include "launch/report/table.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {

namespace {

// What a summary says without its rank.
std::string SummaryText(const OutputSummary& summary) {
  std::string text = fmt::format("output {} {}{}: ", summary.index, summary.dtype, summary.shape);
  text += summary.finite == 0 ? "no finite element"
                              : fmt::format("min {:.6g} max {:.6g} mean {:.6g}", summary.min,
                                            summary.max, summary.mean);
  text += fmt::format(", {} NaN", summary.nan);
  if (summary.inf > 0) text += fmt::format(", {} Inf", summary.inf);
  return text;
}

}  // namespace

OutputSummary Summarise(int rank, int index, const Tensor& output) {
  OutputSummary summary;
  summary.rank = rank;
  summary.index = index;
  summary.dtype = Name(output.dtype());
  summary.shape = output.shape().ToString();
  const Result<std::vector<double>> elements = ElementsOf(output);
  if (!elements.ok()) return summary;
  double sum = 0;
  for (const double element : *elements) {
    summary.nan += std::isnan(element);
    summary.inf += std::isinf(element);
    if (!std::isfinite(element)) continue;
    summary.min = summary.finite == 0 ? element : std::min(summary.min, element);
    summary.max = summary.finite == 0 ? element : std::max(summary.max, element);
    sum += element;
    ++summary.finite;
  }
  if (summary.finite > 0 && std::isfinite(sum)) {
    summary.mean = sum / static_cast<double>(summary.finite);
  }
  return summary;
}

std::string SummaryLines(const std::vector<OutputSummary>& summaries) {
  std::map<int, std::map<std::string, std::vector<int>>> ranks;  // by output and text
  for (const OutputSummary& summary : summaries) {
    ranks[summary.index][SummaryText(summary)].push_back(summary.rank);
  }
  std::string lines;
  for (const auto& [index, texts] : ranks) {
    for (const auto& [text, who] : texts) lines += fmt::format("{} {}\n", RanksText(who), text);
  }
  return lines;
}

std::vector<int> SlowestRanks(const std::vector<RankReport>& ranks) {
  constexpr double kStandsOut = 0.02;
  std::vector<std::vector<double>> away;
  for (const RankReport& rank : ranks) away.push_back(rank.away_seconds);
  const bool alike = std::all_of(away.begin(), away.end(),
                                 [&](const auto& one) { return one.size() == away[0].size(); });
  if (!alike) return {};
  // What the first stretch does once is no pattern.
  constexpr size_t kMany = 8;
  for (std::vector<double>& one : away) {
    if (one.size() >= kMany) one.erase(one.begin());
  }
  const std::vector<std::vector<double>> lost = LostAgainstOthers(std::move(away));
  std::vector<int> slowest;
  for (const size_t i : StandingOut(lost)) {
    const double all = std::accumulate(lost[i].begin(), lost[i].end(), 0.0);
    if (all >= kStandsOut * ranks[i].total_seconds) slowest.push_back(ranks[i].rank);
  }
  return slowest;
}

std::string ReportTable(const std::vector<RankReport>& ranks, uint64_t steps) {
  const std::vector<int> slowest = SlowestRanks(ranks);
  const auto mark = [&slowest](const nlohmann::json& row, std::string_view key) {
    const bool marked = std::ranges::binary_search(slowest, row.at(key).get<int>());
    return marked ? "<- slowest" : "";
  };
  const TableForm table{
      .columns = {{"rank", 4, "rank"},
                  {"node", 4, "node"},
                  {"compile ms", 10, "compile_seconds", WithDigits(3, 1e3)},
                  {"compute ms", 10, "compute_seconds", WithDigits(3, 1e3)},
                  {"collectives ms", 14, "collective_seconds", WithDigits(3, 1e3)},
                  {"total ms", 9, "total_seconds", WithDigits(3, 1e3)},
                  {"peak HBM KiB", 12, "peak_hbm_bytes", WithDigits(1, 1.0 / 1024)},
                  {"", 0, "rank", mark}},
      .between = " "};
  std::string text = TableText(table, ranks);
  for (const RankReport& r : ranks) {
    if (r.hidden_seconds <= 0) continue;
    text += fmt::format("rank {}: {:.3f} ms of its collectives passed beside computing\n", r.rank,
                        r.hidden_seconds * 1e3);
  }
  double median = 0;
  for (const RankReport& r : ranks) median = std::max(median, r.median_seconds);
  if (steps > 1) text += fmt::format("a step takes {:.3f} ms (median)\n", median * 1e3);
  text += fmt::format("{} step{}; {}\n", steps, steps == 1 ? "" : "s", kTimeNote);
  return text;
}

std::string CheckLine(const OutputCheck& check) {
  std::string line = fmt::format("rank {} output {} {}{} max abs diff {:.3g}", check.rank,
                                 check.index, check.dtype, check.shape, check.max_abs_diff);
  if (check.max_abs_diff > 0) line += fmt::format(" at {} of step {}", check.where, check.step);
  line += check.ok ? " OK" : " DIFFERS";
  if (!check.detail.empty()) line += ": " + check.detail;
  if (check.tolerance.empty() || (check.ok && check.max_abs_diff == 0)) return line;
  line += fmt::format("\n    tolerance atol {:.3g} rtol {:.3g} ({}); ", check.atol, check.rtol,
                      check.tolerance);
  return line + (std::isfinite(check.needs_atol)
                     ? fmt::format("the worst element needs atol {:.3g}", check.needs_atol)
                     : "no atol is enough for the worst element");
}

std::string CheckVerdict(const std::vector<OutputCheck>& checks, size_t ranks) {
  const auto differing = std::count_if(checks.begin(), checks.end(),
                                       [](const OutputCheck& check) { return !check.ok; });
  const std::string what = fmt::format("{} output{} of {} rank{}", checks.size(),
                                       checks.size() == 1 ? "" : "s", ranks, ranks == 1 ? "" : "s");
  if (differing == 0) return fmt::format("check: OK, {} match", what);
  return fmt::format("check: DIFFERS, {} of {} do not match", differing, what);
}

}  // namespace npumesh
