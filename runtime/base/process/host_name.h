// The name of this host.
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_HOST_NAME_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_HOST_NAME_H_

#include <string>

namespace npumesh {

// As gethostname tells it; "localhost" when it does not.
std::string HostName();

// The kernel's name for this start of the host: who has the same one shares CLOCK_MONOTONIC and the
// numbers of processes. Empty when the system does not tell.
std::string BootId();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_HOST_NAME_H_
