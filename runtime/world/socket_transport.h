// SocketTransport: ranks as processes of one host that MPI has not started (torchrun). Memory is
// shared by descriptors as under MPI; messages go through a stream between any two ranks.
#ifndef NPUMESH_RUNTIME_WORLD_SOCKET_TRANSPORT_H_
#define NPUMESH_RUNTIME_WORLD_SOCKET_TRANSPORT_H_

#include <chrono>
#include <memory>

#include "runtime/world/meeting.h"
#include "runtime/world/transport.h"

namespace npumesh {

// Collective over the ranks of the appointment.
Result<std::unique_ptr<Transport>> MakeSocketTransport(const Appointment& appointment,
                                                       std::chrono::seconds connect_timeout);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_SOCKET_TRANSPORT_H_
