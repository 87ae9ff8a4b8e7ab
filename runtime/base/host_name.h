// The name of this host.
#ifndef NPUMESH_RUNTIME_BASE_HOST_NAME_H_
#define NPUMESH_RUNTIME_BASE_HOST_NAME_H_

#include <string>

namespace npumesh {

// As gethostname tells it; "localhost" when it does not.
std::string HostName();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_HOST_NAME_H_
