// The timeline of a rank as the vendor's tools read it: an array of Chrome trace events with the
// layers CANN, Ascend Hardware, Communication and Overlap Analysis
// (docs/formats/vendor_profile.md).
//
// Thread-safety: any thread.
#ifndef NPUMESH_RUNTIME_MSPROF_TIMELINE_H_
#define NPUMESH_RUNTIME_MSPROF_TIMELINE_H_

#include <string>
#include <vector>

#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"
#include "runtime/msprof/vendor_rows.h"

namespace npumesh {

// Writes it to each of `paths`. Operators are in it only with task_trace. Errors as
// ReportFile::Commit.
Status WriteTimeline(const VendorRows& rows, const std::vector<std::string>& paths, FileSystem& fs);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_TIMELINE_H_
