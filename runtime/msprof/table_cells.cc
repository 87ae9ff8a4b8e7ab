#include "runtime/msprof/table_cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/msprof/profile_text.h"
#include "runtime/msprof/vendor_names.h"

namespace npumesh {
namespace {

std::string ListCell(const std::vector<std::string>& operands) {
  if (operands.empty()) return std::string(kNotThere);
  return fmt::format("{}", fmt::join(operands, ";"));
}

}  // namespace

void AddTensorCells(const ProfiledTask& task, std::vector<std::string>& cells) {
  // A kernel of the CPU has no blocks; readers want a number there.
  cells.insert(cells.end(), {"0", "0", "NO", ListCell(task.input_shapes),
                             ListCell(task.input_types), ListCell(task.input_formats),
                             ListCell(task.output_shapes), ListCell(task.output_types),
                             ListCell(task.output_formats), std::string(kNotThere)});
}

void AddNoTensorCells(std::vector<std::string>& cells) {
  cells.push_back("0");
  cells.insert(cells.end(), 9, std::string(kNotThere));
}

std::string NumberCell(const std::optional<uint64_t>& number) {
  return number ? fmt::format("{}", *number) : std::string(kNotThere);
}

std::string TextCell(const std::string& text) {
  return text.empty() ? std::string(kNotThere) : text;
}

std::string MomentCell(const VendorRows& rows, int64_t monotonic_ns) {
  return MicrosecondText(WallClock(rows.owner(), monotonic_ns)) + "\t";
}

DurationStatistic OperatorStatistic(const VendorRows& rows) {
  DurationStatistic statistic;
  for (const TaskRow& row : rows.tasks) {
    if (row.copy) continue;
    statistic.Add({TextCell(row.task->type), std::string(CoreOf(row.task->type))},
                  row.duration_ns());
  }
  return statistic;
}

std::vector<std::string> StatisticCells(const VendorRows& rows, const DurationStatistic& statistic,
                                        const DurationSums& sums) {
  std::vector<std::string> cells{fmt::format("{}", rows.device)};
  cells.insert(cells.end(), sums.names.begin(), sums.names.end());
  cells.insert(cells.end(), {fmt::format("{}", sums.count), MicrosecondText(sums.total_ns),
                             MicrosecondText(sums.least_ns), sums.Average(),
                             MicrosecondText(sums.most_ns), statistic.Ratio(sums)});
  return cells;
}

}  // namespace npumesh
