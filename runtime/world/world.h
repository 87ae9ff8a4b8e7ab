// World: this rank among all ranks. It is started once and shut down once.
//
// A World knows who is who (world rank, node, local rank), and owns the Transport and the Board.
//
// Thread-safety: const members may be called from any thread; the rest by the owning thread.
#ifndef NPUMESH_RUNTIME_WORLD_WORLD_H_
#define NPUMESH_RUNTIME_WORLD_WORLD_H_

#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/env/env.h"
#include "runtime/base/process/wait.h"
#include "runtime/base/status.h"
#include "runtime/world/board.h"
#include "runtime/world/topology.h"
#include "runtime/world/transport.h"

namespace npumesh {

// What a floor above keeps for the lifetime of a world.
class WorldCompanion {
 public:
  virtual ~WorldCompanion() = default;
  // The orderly end has begun.
  virtual void OnShutdown() {}
};

class World {
 public:
  // Collective over all MPI processes. Starts MPI unless the host program has done so (then it is
  // not finalised by us either). Processes without it that have an appointment (meeting.h) are
  // ranks all the same; any other process becomes a world of one rank. Fails when LOCAL_WORLD_SIZE,
  // RANK or WORLD_SIZE contradict the truth.
  static Result<std::unique_ptr<World>> Start(const Env& env);

  // Over a transport made by the caller. Collective over its ranks.
  static Result<std::unique_ptr<World>> Start(const Env& env, std::unique_ptr<Transport> transport);

  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  int rank() const { return transport_->rank(); }
  int size() const { return transport_->size(); }
  int node() const { return node_of()[static_cast<size_t>(rank())]; }
  int node_count() const { return node_count_; }
  const std::vector<int>& node_of() const { return transport_->node_of(); }
  // World ranks of this node, ascending; index in it is the local rank.
  const std::vector<int>& local_ranks() const { return local_ranks_; }
  int local_rank() const { return local_rank_; }
  int local_size() const { return static_cast<int>(local_ranks_.size()); }

  const Env& env() const { return env_; }
  // Rank 0's clock when the world started: the same on all ranks.
  std::time_t start_time() const { return start_time_; }
  // LOCAL_WORLD_SIZE as each rank has it in its environment; 0: it has none. What is set is true of
  // its node.
  const std::vector<int>& local_world_sizes() const { return local_world_sizes_; }
  const Topology& topology() const { return topology_; }
  const Placement& placement() const { return placement_; }
  Transport& transport() { return *transport_; }
  // What the ranks of the node publish.
  Board& board() { return *board_; }
  const Board& board() const { return *board_; }
  const WaitPolicy& wait_policy() const { return wait_policy_; }
  // True when the node has more ranks than processors: waiting ranks stand in each other's way.
  // Equal on all ranks of the node.
  bool crowded() const { return crowded_; }

  // The companion called `name`; `make` runs when it is first asked for and may return null. Lives
  // until this world is destroyed. Any thread.
  WorldCompanion* Keep(const std::string& name,
                       const std::function<std::unique_ptr<WorldCompanion>()>& make);

  // How often this was asked with `key` before, in this era. Ranks that make things in the same
  // order number them alike. Any thread.
  uint64_t NextOrdinal(uint64_t key);
  // After ranks have failed together they may have asked differently often: their ordinals of `key`
  // start anew, with numbers that no era before has had. Any thread.
  void BeginEra(uint64_t key);

  // Collective over all ranks: the orderly end, also after an error that all ranks know of. Waits
  // for the others at most `kFarewell`; a peer that is dead or does not come makes it a local end.
  Status Shutdown();
  static constexpr std::chrono::seconds kFarewell{10};

 private:
  World(const Env& env, std::unique_ptr<Transport> transport, Topology topology);
  Status CheckLauncher() const;
  Status AgreeOnStart(const Status& mine);

  Env env_;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Board> board_;
  Topology topology_;
  Placement placement_;
  WaitPolicy wait_policy_;
  std::time_t start_time_ = 0;
  std::vector<int> local_world_sizes_;  // by rank
  bool crowded_ = false;
  int node_count_ = 1;
  int local_rank_ = 0;
  std::vector<int> local_ranks_;
  std::mutex ordinals_mutex_;
  std::map<uint64_t, uint64_t> ordinals_;
  std::mutex companions_mutex_;
  std::map<std::string, std::unique_ptr<WorldCompanion>> companions_;
  bool shut_down_ = false;
};

// Runs `body` on `ranks` threads, each with a separate World over a shared ThreadTransport, and
// returns one status for each rank. `node_sizes` splits the ranks over simulated nodes (in rank
// order); empty: all on one node. For tests, and for commands that play all ranks in one process.
std::vector<Status> RunRanks(int ranks, const Env& env, const std::function<Status(World&)>& body,
                             const std::vector<int>& node_sizes = {});

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_WORLD_H_
