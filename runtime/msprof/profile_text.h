// Numbers and moments as the files of a profile have them.
//
// Thread-safety: pure functions; local times read the time zone of the process.
#ifndef NPUMESH_RUNTIME_MSPROF_PROFILE_TEXT_H_
#define NPUMESH_RUNTIME_MSPROF_PROFILE_TEXT_H_

#include <cstdint>
#include <string>

#include "runtime/profile/profile_file.h"

namespace npumesh {

// "12.345": nanoseconds as microseconds, exact.
std::string MicrosecondText(int64_t ns);

// Numbers of JSON files. A double holds such numbers exactly enough to print them again with all
// their digits while they are below 2^53 ns (104 days).
double Microseconds(int64_t ns);
double Milliseconds(int64_t ns);
double Megabytes(uint64_t bytes);  // of 10^6

// Nanoseconds since 1970 of a moment of the profile, by the clock of the rank's host.
int64_t WallClock(const ProfileOwner& owner, int64_t monotonic_ns);

// Local time, "20261123023004" and, with milliseconds, "20261123023004123".
std::string Stamp14(int64_t realtime_ns);
std::string Stamp17(int64_t realtime_ns);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_PROFILE_TEXT_H_
