// What the handles of npumesh.h stand for.
#ifndef NPUMESH_GRAPH_C_INTERFACE_HANDLES_H_
#define NPUMESH_GRAPH_C_INTERFACE_HANDLES_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "collectives/communicator.h"
#include "graph/session/session.h"
#include "graph/session/system.h"
#include "npumesh/npumesh.h"
#include "runtime/world/world.h"

// Thread-safety: `turn` guards what sessions do; groups do without it.
struct npumesh_world {
  std::unique_ptr<npumesh::World> world;
  npumesh::System system;
  npumesh::DeviceMemory* memory = nullptr;  // of the system
  npumesh::TensorDumpOptions dump;          // of npumesh_set_dump
  std::mutex turn;
  std::atomic<int> sessions = 0;
  std::atomic<int> groups = 0;
};

// Thread-safety: guarded by the turn of its world.
struct npumesh_session {
  npumesh_world* world = nullptr;
  std::shared_ptr<const npumesh::OpRegistry> registry;  // with stand-ins; null: the built-in one
  std::unique_ptr<npumesh::Session> session;
  // By output: "node:port", and what is known of its type now.
  std::vector<std::string> output_names;
  std::vector<npumesh::TensorType> output_types;
  std::vector<npumesh::TensorType> declared_outputs;
  npumesh_allocator allocator = nullptr;
  void* allocator_context = nullptr;
  std::vector<npumesh::PlanOperand> operands;  // of one call, kept for the next
};

// Thread-safety: guarded by `turn`.
struct npumesh_group {
  struct Buffer {
    void* address = nullptr;
    uint64_t bytes = 0;
  };
  npumesh_world* world = nullptr;
  std::unique_ptr<npumesh::Communicator> communicator;
  std::mutex turn;
  // Device memory that stands for memory of the caller, as large as the largest call needed.
  Buffer send;
  Buffer recv;
};

namespace npumesh {

// A turn of this thread with a world's sessions; log lines carry the rank.
class WorldTurn {
 public:
  explicit WorldTurn(npumesh_world& world);

 private:
  std::lock_guard<std::mutex> lock_;
};

// Log lines of this thread carry the rank from now on: any thread may call.
void SpeakAs(const npumesh_world& world);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_C_INTERFACE_HANDLES_H_
