// Whose turn it is on a device: what sessions of the C interface run there follows each other.
#ifndef NPUMESH_GRAPH_ACL_MODEL_DEVICE_TURNS_H_
#define NPUMESH_GRAPH_ACL_MODEL_DEVICE_TURNS_H_

#include <mutex>

#include "runtime/acl/process/device_context.h"

namespace npumesh {

// Held while a session of the device runs or is made. Any thread; lives as long as the process.
// Devices of a process that ends the interface and begins it again may lie at one address; then
// they have one turn, too.
std::mutex& TurnOf(const AclDevice& device);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACL_MODEL_DEVICE_TURNS_H_
