// Who writes a profile: the facts of a rank's process that its file begins with.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_RUNTIME_PROFILE_OWNER_H_
#define NPUMESH_RUNTIME_PROFILE_OWNER_H_

#include <cstdint>
#include <string>

#include "runtime/profile/profile_file.h"
#include "runtime/world/world.h"

namespace npumesh {

// The rank, the host, both clocks as they are now, and the version; what the user asked for is left
// at its default.
ProfileOwner OwnerOf(const World& world);

// CLOCK_REALTIME in nanoseconds since 1970.
int64_t RealTime();

// The words with which this process was started, between blanks; at most 4 KiB of them. Empty
// when the system does not tell.
std::string CommandLine();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_PROFILE_OWNER_H_
