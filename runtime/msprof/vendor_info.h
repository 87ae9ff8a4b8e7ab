// The small JSON files that say who wrote a profile.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_RUNTIME_MSPROF_VENDOR_INFO_H_
#define NPUMESH_RUNTIME_MSPROF_VENDOR_INFO_H_

#include "runtime/base/text/json.h"
#include "runtime/msprof/vendor_rows.h"

namespace npumesh {

// info.json.<device>: the rank, its host and its device. The device has one core, whose clock is
// that of the times, 1000 MHz; what npumesh does not know of the host is 0 or empty.
nlohmann::json DeviceInfo(const VendorRows& rows);
// host/start_info: the begin of the profile by the real time, in microseconds, and by
// CLOCK_MONOTONIC_RAW, which is so far ahead of CLOCK_MONOTONIC, in nanoseconds.
nlohmann::json StartInfo(const VendorRows& rows, int64_t raw_ahead_ns);
// profiler_info_<rank>.json
nlohmann::json ProfilerInfo(const VendorRows& rows);
// profiler_metadata.json: the groups in which the rank communicated.
nlohmann::json ProfilerMetadata(const VendorRows& rows);
// README.txt of mindstudio_profiler_output.
std::string ReadMe(const VendorRows& rows);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_VENDOR_INFO_H_
