// How much memory of the host is really there for the processes of this job.
#ifndef NPUMESH_RUNTIME_DEVICE_HOST_MEMORY_H_
#define NPUMESH_RUNTIME_DEVICE_HOST_MEMORY_H_

#include <cstdint>
#include <string>

namespace npumesh {

// Bytes that can still be taken: MemAvailable of the system, or what is left below the limit of the
// control group (version 2 or 1) of this process or of any group around it, whichever is less.
// Files that a group caches count as free, since the kernel drops them first. Reads below `root`,
// which is empty but in tests. Says "no limit" (all ones) only when nothing can be read.
uint64_t AvailableMemory(const std::string& root = "");

// Bytes of address space that this process may still take (ulimit -v), by /proc/self/statm below
// `root`; all ones without a limit. `limit`: of the process, all ones for none.
uint64_t AvailableAddresses(uint64_t limit, const std::string& root = "");

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_DEVICE_HOST_MEMORY_H_
