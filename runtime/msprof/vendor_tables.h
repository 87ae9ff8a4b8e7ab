// The tables of the vendor's profiler (docs/formats/vendor_profile.md lists their columns). Times
// are microseconds with three decimals, "N/A" stands for what does not exist.
//
// Errors: those of CsvTable. Thread-safety: any thread.
#ifndef NPUMESH_RUNTIME_MSPROF_VENDOR_TABLES_H_
#define NPUMESH_RUNTIME_MSPROF_VENDOR_TABLES_H_

#include <string>

#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"
#include "runtime/msprof/vendor_rows.h"

namespace npumesh {

// Of mindstudio_profiler_output: api_statistic and communication_statistic; op_summary,
// op_statistic and task_time with task_trace; step_trace with training_trace.
Status WriteMsprofTables(const VendorRows& rows, const std::string& folder,
                         const std::string& stamp, FileSystem& fs);

// Of ASCEND_PROFILER_OUTPUT: step_trace_time; kernel_details and op_statistic with task_trace. A
// profile without iterations has one step without a name, which is all of it.
Status WriteTorchTables(const VendorRows& rows, const std::string& folder, FileSystem& fs);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_VENDOR_TABLES_H_
