#include <fmt/format.h>

#include <algorithm>

#include "runtime/msprof/profile_text.h"
#include "runtime/msprof/report_file.h"
#include "runtime/msprof/table_cells.h"
#include "runtime/msprof/vendor_names.h"
#include "runtime/msprof/vendor_tables.h"

namespace npumesh {
namespace {

constexpr std::string_view kOpSummaryHeader =
    "Device_id,Model ID,Task ID,Stream ID,Op Name,OP Type,OP State,Task Type,Task Start Time(us),"
    "Task Duration(us),Task Wait Time(us),";
constexpr std::string_view kTaskTimeHeader =
    "Device_id,kernel_name,kernel_type,stream_id,task_id,task_time(us),task_start(us),"
    "task_stop(us)";
constexpr std::string_view kApiHeader =
    "Device_id,Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance";
constexpr std::string_view kCommunicationHeader =
    "Device_id,OP Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)";
constexpr std::string_view kStepTraceHeader =
    "Device_id,Iteration ID,FP Start(us),BP End(us),Iteration End(us),Iteration Time(us),"
    "FP to BP Time(us),Iteration Refresh(us),Data Aug Bound(us),Model ID";

class MsprofTables {
 public:
  MsprofTables(const VendorRows& rows, const std::string& folder, const std::string& stamp,
               FileSystem& fs)
      : rows_(rows),
        folder_(folder),
        stamp_(stamp),
        fs_(fs),
        device_(fmt::format("{}", rows.device)) {}

  // Operators and collectives in one table, by begin.
  Status OpSummary() const {
    const std::string header = fmt::format("{}{}", kOpSummaryHeader, kTensorColumns);
    CsvTable table = Table("op_summary", header, rows_.tasks.size() + rows_.calls.size());
    auto call = rows_.calls.begin();
    for (const TaskRow& task : rows_.tasks) {
      if (task.copy) continue;
      for (; call != rows_.calls.end() && call->span->begin_ns < task.span->begin_ns; ++call) {
        table.Add(CallCells(*call));
      }
      table.Add(TaskCells(task));
    }
    for (; call != rows_.calls.end(); ++call) table.Add(CallCells(*call));
    return table.Finish();
  }

  Status OpStatistic() const {
    return Statistic("op_statistic", kOpStatisticHeader, OperatorStatistic(rows_));
  }

  Status CommunicationStatistic() const {
    DurationStatistic statistic;
    for (const CallRow& row : rows_.calls) statistic.Add({TypeCell(row)}, row.duration_ns());
    return Statistic("communication_statistic", kCommunicationHeader, statistic);
  }

  Status ApiStatistic() const {
    DurationStatistic statistic;
    for (const HostRow& row : rows_.host) {
      if (row.span->kind == SpanKind::kIteration) continue;
      statistic.Add({std::string(row.level), row.name}, row.duration_ns());
    }
    const auto sorted = statistic.Sorted();
    CsvTable table = Table("api_statistic", kApiHeader, sorted.size());
    for (const DurationSums& sums : sorted) {
      table.Add({"host", sums.names[0], sums.names[1], MicrosecondText(sums.total_ns),
                 fmt::format("{}", sums.count), sums.Average(), MicrosecondText(sums.least_ns),
                 MicrosecondText(sums.most_ns), sums.Variance()});
    }
    return table.Finish();
  }

  Status TaskTime() const {
    CsvTable table = Table("task_time", kTaskTimeHeader, rows_.tasks.size());
    for (const TaskRow& row : rows_.tasks) {
      table.Add({device_, TextCell(row.task->name),
                 row.copy ? "MEMCPY_ASYNC" : std::string(CoreOf(row.task->type)),
                 fmt::format("{}", row.span->lane), fmt::format("{}", row.task_id),
                 MicrosecondText(row.duration_ns()), MomentCell(rows_, row.span->begin_ns),
                 MomentCell(rows_, row.span->begin_ns + row.duration_ns())});
    }
    return table.Finish();
  }

  Status StepTrace() const {
    const std::vector<StepTimes>& steps = rows_.times.steps;
    size_t reductions = 0;
    if (rows_.owner().world_size > 1) {
      for (const StepTimes& step : steps) reductions = std::max(reductions, step.calls.size());
    }
    std::string header(kStepTraceHeader);
    for (size_t i = 0; i < reductions; ++i) header += ",Reduce Start(us),Reduce Duration(us)";
    CsvTable table = Table("step_trace", header, steps.size());
    const StepTimes* before = nullptr;
    for (const StepTimes& step : steps) {
      table.Add(StepCells(step, before, reductions));
      before = &step;
    }
    return table.Finish();
  }

 private:
  CsvTable Table(const std::string& report, std::string_view header, uint64_t rows) const {
    return CsvTable({folder_, report, stamp_}, header, rows, fs_);
  }

  Status Statistic(const std::string& report, std::string_view header,
                   const DurationStatistic& statistic) const {
    const auto sorted = statistic.Sorted();
    CsvTable table = Table(report, header, sorted.size());
    for (const DurationSums& sums : sorted) table.Add(StatisticCells(rows_, statistic, sums));
    return table.Finish();
  }

  std::vector<std::string> TaskCells(const TaskRow& row) const {
    std::vector<std::string> cells{device_};
    AddTaskCells(rows_, row, cells);
    return cells;
  }

  std::vector<std::string> CallCells(const CallRow& row) const {
    std::vector<std::string> cells{device_};
    AddCallCells(rows_, row, "COMMUNICATION", cells);
    return cells;
  }

  std::vector<std::string> StepCells(const StepTimes& step, const StepTimes* before,
                                     size_t reductions) const {
    const std::string none(kNotThere);
    const Interval& wall = step.busy.wall;
    const auto& start = step.fp_start_ns;
    const auto& end = step.bp_end_ns;
    std::vector<std::string> cells{
        device_,
        fmt::format("{}", step.number),
        start ? MomentCell(rows_, *start) : none,
        end ? MomentCell(rows_, *end) : none,
        MomentCell(rows_, wall.end_ns),
        MicrosecondText(wall.length()),
        start && end ? MicrosecondText(*end - *start) : none,
        end ? MicrosecondText(wall.end_ns - *end) : none,
        start && before ? MicrosecondText(*start - before->busy.wall.end_ns) : none,
        NumberCell(ModelOf(step))};
    AddReductions(step, reductions, cells);
    return cells;
  }

  // Begin and duration of each call, and "N/A" up to `reductions`.
  void AddReductions(const StepTimes& step, size_t reductions,
                     std::vector<std::string>& cells) const {
    for (const Span* call : step.calls) {
      if (reductions == 0) return;
      cells.push_back(MomentCell(rows_, call->begin_ns));
      cells.push_back(MicrosecondText(DurationOf(*call)));
      --reductions;
    }
    cells.insert(cells.end(), 2 * reductions, std::string(kNotThere));
  }

  // The model of the first operator.
  std::optional<uint64_t> ModelOf(const StepTimes& step) const {
    if (step.computations.empty()) return std::nullopt;
    const int64_t begin = step.computations.front()->begin_ns;
    const auto at =
        std::lower_bound(rows_.tasks.begin(), rows_.tasks.end(), begin,
                         [](const TaskRow& row, int64_t ns) { return row.span->begin_ns < ns; });
    return at == rows_.tasks.end() ? std::nullopt : at->model;
  }

  const VendorRows& rows_;
  const std::string& folder_;
  const std::string& stamp_;
  FileSystem& fs_;
  const std::string device_;
};

}  // namespace

Status WriteMsprofTables(const VendorRows& rows, const std::string& folder,
                         const std::string& stamp, FileSystem& fs) {
  const MsprofTables tables(rows, folder, stamp, fs);
  NPUMESH_RETURN_IF_ERROR(tables.ApiStatistic());
  NPUMESH_RETURN_IF_ERROR(tables.CommunicationStatistic());
  if (rows.owner().task_trace) {
    NPUMESH_RETURN_IF_ERROR(tables.OpSummary());
    NPUMESH_RETURN_IF_ERROR(tables.OpStatistic());
    NPUMESH_RETURN_IF_ERROR(tables.TaskTime());
  }
  return rows.owner().training_trace ? tables.StepTrace() : Status();
}

}  // namespace npumesh
