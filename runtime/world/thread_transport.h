// ThreadTransport: ranks as threads of one process. For ring-2 tests, sanitizers and debuggers, and
// for programs that drive N devices from N threads.
#ifndef NPUMESH_RUNTIME_WORLD_THREAD_TRANSPORT_H_
#define NPUMESH_RUNTIME_WORLD_THREAD_TRANSPORT_H_

#include <chrono>
#include <memory>
#include <vector>

#include "runtime/world/transport.h"

namespace npumesh {

// What the ranks of one process have in common. `node_sizes` splits them over simulated nodes in
// rank order; empty: one node. Outlives its transports by shared ownership.
class ThreadFabric;
std::shared_ptr<ThreadFabric> MakeThreadFabric(int ranks, const std::vector<int>& node_sizes,
                                               std::chrono::seconds connect_timeout);

// The transport of one rank; each rank takes its own, once. Destroying it without Shutdown makes
// the rank `kGone` for its peers.
std::unique_ptr<Transport> MakeThreadTransport(std::shared_ptr<ThreadFabric> fabric, int rank);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_THREAD_TRANSPORT_H_
