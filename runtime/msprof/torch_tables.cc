#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "runtime/msprof/profile_text.h"
#include "runtime/msprof/report_file.h"
#include "runtime/msprof/table_cells.h"
#include "runtime/msprof/vendor_names.h"
#include "runtime/msprof/vendor_tables.h"

namespace npumesh {
namespace {

constexpr std::string_view kStepTimeHeader =
    "Device_id,Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,"
    "Bubble,Communication(Not Overlapped and Exclude Receive),Preparing";
constexpr std::string_view kKernelHeader =
    "Device_id,Step Id,Model ID,Task ID,Stream ID,Name,Type,OP State,Accelerator Core,"
    "Start Time(us),Duration(us),Wait Time(us),";

// The step to which work belongs, in the form of the layout; empty: to none.
std::string StepCell(const VendorRows& rows, const std::optional<size_t>& step) {
  return step ? fmt::format("{}", rows.times.steps[*step].number) : "";
}

// Time in receives by step, the vendor's bubbles of a pipeline; without steps one, of all of it.
std::vector<int64_t> BubblesOf(const VendorRows& rows) {
  std::vector<int64_t> bubbles(std::max<size_t>(1, rows.times.steps.size()), 0);
  for (const CallRow& row : rows.calls) {
    if (row.kind != "receive") continue;
    if (row.step || rows.times.steps.empty()) bubbles[row.step.value_or(0)] += row.duration_ns();
  }
  return bubbles;
}

// From the begin of the step to its first work.
int64_t PreparingOf(const WorkTimes& work) {
  int64_t first = work.busy.wall.end_ns;
  if (!work.computations.empty()) first = std::min(first, work.computations.front()->begin_ns);
  if (!work.calls.empty()) first = std::min(first, work.calls.front()->begin_ns);
  return first - work.busy.wall.begin_ns;
}

std::vector<std::string> TimeCells(const VendorRows& rows, const WorkTimes& work,
                                   const std::optional<size_t>& step, int64_t bubble) {
  const BusyTimes& busy = work.busy;
  const int64_t alone = Length(busy.not_overlapped);
  return {fmt::format("{}", rows.device),
          StepCell(rows, step),
          MicrosecondText(Length(busy.computing)),
          MicrosecondText(alone),
          MicrosecondText(busy.overlapped_ns()),
          MicrosecondText(Length(busy.communication)),
          MicrosecondText(Length(busy.free)),
          MicrosecondText(busy.wall.length() - bubble),
          MicrosecondText(bubble),
          MicrosecondText(alone - bubble),
          MicrosecondText(PreparingOf(work))};
}

Status WriteStepTimes(const VendorRows& rows, const std::string& folder, FileSystem& fs) {
  const std::vector<StepTimes>& steps = rows.times.steps;
  CsvTable table({folder, "step_trace_time", ""}, kStepTimeHeader, steps.size(), fs);
  const std::vector<int64_t> bubbles = BubblesOf(rows);
  for (size_t i = 0; i < steps.size(); ++i) table.Add(TimeCells(rows, steps[i], i, bubbles[i]));
  if (steps.empty()) table.Add(TimeCells(rows, rows.times, std::nullopt, bubbles[0]));
  return table.Finish();
}

std::vector<std::string> KernelCells(const VendorRows& rows, const TaskRow& row) {
  std::vector<std::string> cells{fmt::format("{}", rows.device), StepCell(rows, row.step)};
  AddTaskCells(rows, row, cells);
  return cells;
}

std::vector<std::string> KernelCells(const VendorRows& rows, const CallRow& row) {
  std::vector<std::string> cells{fmt::format("{}", rows.device), StepCell(rows, row.step)};
  AddCallCells(rows, row, "HCCL", cells);
  return cells;
}

Status WriteKernelDetails(const VendorRows& rows, const std::string& folder, FileSystem& fs) {
  const std::string header = fmt::format("{}{}", kKernelHeader, kTensorColumns);
  CsvTable table({folder, "kernel_details", ""}, header, rows.tasks.size() + rows.calls.size(), fs,
                 std::numeric_limits<uint64_t>::max());
  for (const TaskRow& row : rows.tasks) {
    if (!row.copy) table.Add(KernelCells(rows, row));
  }
  for (const CallRow& row : rows.calls) table.Add(KernelCells(rows, row));
  return table.Finish();
}

Status WriteTorchStatistic(const VendorRows& rows, const std::string& folder, FileSystem& fs) {
  const DurationStatistic statistic = OperatorStatistic(rows);
  const auto sorted = statistic.Sorted();
  CsvTable table({folder, "op_statistic", ""}, kOpStatisticHeader, sorted.size(), fs);
  for (const DurationSums& sums : sorted) table.Add(StatisticCells(rows, statistic, sums));
  return table.Finish();
}

}  // namespace

Status WriteTorchTables(const VendorRows& rows, const std::string& folder, FileSystem& fs) {
  NPUMESH_RETURN_IF_ERROR(WriteStepTimes(rows, folder, fs));
  if (!rows.owner().task_trace) return Status();
  NPUMESH_RETURN_IF_ERROR(WriteKernelDetails(rows, folder, fs));
  return WriteTorchStatistic(rows, folder, fs);
}

}  // namespace npumesh
