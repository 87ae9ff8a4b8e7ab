#include "launch/run/run_report.h"

#include <fmt/format.h>

#include <algorithm>

namespace npumesh {

size_t SlowestRank(const std::vector<RankReport>& ranks) {
  const auto slowest =
      std::max_element(ranks.begin(), ranks.end(), [](const RankReport& a, const RankReport& b) {
        return a.compute_seconds < b.compute_seconds;
      });
  return static_cast<size_t>(slowest - ranks.begin());
}

std::string ReportTable(const std::vector<RankReport>& ranks, uint64_t steps) {
  std::string text =
      fmt::format("{:>5} {:>5} {:>12} {:>12} {:>15} {:>12} {:>14}\n", "rank", "node", "compile ms",
                  "compute ms", "collectives ms", "total ms", "peak HBM KiB");
  const size_t slowest = SlowestRank(ranks);
  for (size_t i = 0; i < ranks.size(); ++i) {
    const RankReport& r = ranks[i];
    text += fmt::format("{:>5} {:>5} {:>12.3f} {:>12.3f} {:>15.3f} {:>12.3f} {:>14.1f}{}\n", r.rank,
                        r.node, r.compile_seconds * 1e3, r.compute_seconds * 1e3,
                        r.collective_seconds * 1e3, r.total_seconds * 1e3,
                        static_cast<double>(r.peak_hbm_bytes) / 1024,
                        ranks.size() > 1 && i == slowest ? "  <- slowest" : "");
  }
  for (const RankReport& r : ranks) {
    if (r.hidden_seconds <= 0) continue;
    text += fmt::format("rank {}: {:.3f} ms of its collectives passed beside computing\n", r.rank,
                        r.hidden_seconds * 1e3);
  }
  text += fmt::format("{} step{}; {}\n", steps, steps == 1 ? "" : "s", kTimeNote);
  return text;
}

std::string CheckLine(const OutputCheck& check) {
  std::string line = fmt::format("rank {} output {} {}{} max abs diff {:.3g}", check.rank,
                                 check.index, check.dtype, check.shape, check.max_abs_diff);
  if (check.max_abs_diff > 0) line += fmt::format(" at {} of step {}", check.where, check.step);
  line += check.ok ? " OK" : " DIFFERS";
  if (!check.detail.empty()) line += ": " + check.detail;
  return line;
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
