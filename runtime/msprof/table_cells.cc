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

void AddTaskCells(const VendorRows& rows, const TaskRow& row, std::vector<std::string>& cells) {
  const ProfiledTask& task = *row.task;
  // A kernel of the CPU has no blocks; readers want a number there.
  cells.insert(cells.end(), {NumberCell(row.model),
                             fmt::format("{}", row.task_id),
                             fmt::format("{}", row.span->lane),
                             TextCell(task.name),
                             TextCell(task.type),
                             TextCell(task.state),
                             std::string(CoreOf(task.type)),
                             MomentCell(rows, row.span->begin_ns),
                             MicrosecondText(row.duration_ns()),
                             MicrosecondText(row.wait_ns),
                             "0",
                             "0",
                             "NO",
                             ListCell(task.input_shapes),
                             ListCell(task.input_types),
                             ListCell(task.input_formats),
                             ListCell(task.output_shapes),
                             ListCell(task.output_types),
                             ListCell(task.output_formats),
                             std::string(kNotThere)});
}

void AddCallCells(const VendorRows& rows, const CallRow& row, std::string_view core,
                  std::vector<std::string>& cells) {
  const std::string none(kNotThere);
  cells.insert(cells.end(), {NumberCell(row.model), none, none, row.name, TypeCell(row), none,
                             std::string(core), MomentCell(rows, row.span->begin_ns),
                             MicrosecondText(row.duration_ns()), "0", "0"});
  cells.insert(cells.end(), 9, none);
}

std::string TypeCell(const CallRow& row) {
  return fmt::format("hcom_{}_", row.kind);
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
