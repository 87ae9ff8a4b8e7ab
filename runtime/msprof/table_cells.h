// Cells that op_summary and kernel_details share.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_RUNTIME_MSPROF_TABLE_CELLS_H_
#define NPUMESH_RUNTIME_MSPROF_TABLE_CELLS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/msprof/duration_statistic.h"
#include "runtime/msprof/vendor_rows.h"

namespace npumesh {

inline constexpr std::string_view kNotThere = "N/A";

// The columns after the times of an operator, and their cells.
inline constexpr std::string_view kTensorColumns =
    "Block Num,Mix Block Num,HF32 Eligible,Input Shapes,Input Data Types,Input Formats,"
    "Output Shapes,Output Data Types,Output Formats,Context ID";
// From the model on, the cells of an operator in op_summary and kernel_details.
void AddTaskCells(const VendorRows& rows, const TaskRow& row, std::vector<std::string>& cells);
// Those of a collective, which has no tensors. `core`: what stands where an operator has its core.
void AddCallCells(const VendorRows& rows, const CallRow& row, std::string_view core,
                  std::vector<std::string>& cells);
// "hcom_allreduce_"
std::string TypeCell(const CallRow& row);

// A number, or "N/A".
std::string NumberCell(const std::optional<uint64_t>& number);
// `text`, or "N/A" when it is empty.
std::string TextCell(const std::string& text);
// A moment of the profile by the clock of its host, with the tabulator that keeps spreadsheets from
// rounding it.
std::string MomentCell(const VendorRows& rows, int64_t monotonic_ns);

// The operators of a rank by type and core.
DurationStatistic OperatorStatistic(const VendorRows& rows);
// The file op_statistic: the two layouts have the same columns.
inline constexpr std::string_view kOpStatisticHeader =
    "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),"
    "Ratio(%)";
// Device, names, count, total, least, average, most, ratio.
std::vector<std::string> StatisticCells(const VendorRows& rows, const DurationStatistic& statistic,
                                        const DurationSums& sums);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_TABLE_CELLS_H_
