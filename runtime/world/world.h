// World: this rank among all ranks. Started once, shut down once, asked by everybody.
//
// A World knows who is who (world rank, node, local rank), owns the Transport, and keeps the
// *board*: shared memory in which every rank of the node publishes its process, where it stands in
// each of its groups and, should it fail, the reason. A rank that leaves with an error says so on
// the board first, so that nobody waits for it.
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

#include "runtime/base/env.h"
#include "runtime/base/status.h"
#include "runtime/base/wait.h"
#include "runtime/world/position.h"
#include "runtime/world/standing_page.h"
#include "runtime/world/topology.h"
#include "runtime/world/transport.h"

namespace npumesh {

// What one rank can see of another on the board, without disturbing it.
struct Sight {
  bool visible = false;  // false: on another node, the rest means nothing
  bool leaving = false;  // it has begun its orderly end
  Status lost;           // as World::CheckPeer
  int process = 0;
  char process_state = 0;  // as in /proc/<process>/stat: 'R', 'S', 'T' stopped; 0: unknown
  bool stopped() const { return process_state == 'T' || process_state == 't'; }
  std::vector<Position> positions;  // one for each of its groups, closed ones too
  size_t lines = 0;  // that have ever been claimed; more than `positions` while one is written
};

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
  // not finalised by us either). A process without a launcher becomes a world of one rank without
  // MPI. Fails when LOCAL_WORLD_SIZE, RANK or WORLD_SIZE contradict the truth.
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
  const Topology& topology() const { return topology_; }
  const Placement& placement() const { return placement_; }
  Transport& transport() { return *transport_; }
  const WaitPolicy& wait_policy() const { return wait_policy_; }
  // True when the node has more ranks than processors: waiting ranks stand in each other's way.
  // Equal on all ranks of the node.
  bool crowded() const { return crowded_; }

  // Says on the board that this rank leaves with an error. First call wins. Any thread.
  void PublishFailure(const Status& status);

  // kPeerLost naming rank and reason when `world_rank` is dead or has published a failure; else OK.
  // Ranks of other nodes: OK (only messages tell). Any thread.
  Status CheckPeer(int world_rank) const;

  // CheckPeer over several ranks; the first failure, preferring a published reason over a death
  // that may be its consequence.
  Status CheckPeers(const std::vector<int>& world_ranks) const;

  // A line of the board for one group of this rank, to be opened at once; null when all are taken.
  // Closing gives it back. Any thread.
  PositionLine* ClaimPosition();
  static constexpr int kPositionLines = 512;

  // Takes microseconds: for waits that have grown long. Any thread.
  Sight Look(int world_rank) const;

  // For standstill.h. Null for a rank of another node.
  StandingPage* standing_page(int world_rank) const;

  // The companion called `name`; `make` runs when it is first asked for and may return null. Lives
  // until this world is destroyed. Any thread.
  WorldCompanion* Keep(const std::string& name,
                       const std::function<std::unique_ptr<WorldCompanion>()>& make);

  // Memory of `world_rank` that the floor above lays out as it likes: zero at the start, shared
  // with the ranks of the node; null for a rank of another node. `kSharedAreaBytes` long.
  std::byte* shared_area(int world_rank) const;
  static constexpr uint64_t kSharedAreaBytes = uint64_t{96} << 20;

  // How often this was asked with `key` before. Ranks that make things in the same order number
  // them alike. Any thread.
  uint32_t NextOrdinal(uint64_t key);

  // Collective over all ranks: the orderly end, also after an error that all ranks know of. Waits
  // for the others at most `kFarewell`; a peer that is dead or does not come makes it a local end.
  Status Shutdown();
  static constexpr std::chrono::seconds kFarewell{10};

 private:
  struct Board;
  World(const Env& env, std::unique_ptr<Transport> transport, Topology topology);
  Board* board(int world_rank) const;
  PositionLine* position_lines(int world_rank) const;
  Status Introduce();
  Status CheckLauncher() const;
  Status AgreeOnStart(const Status& mine);

  Env env_;
  std::unique_ptr<Transport> transport_;
  Topology topology_;
  Placement placement_;
  WaitPolicy wait_policy_;
  std::time_t start_time_ = 0;
  bool crowded_ = false;
  int node_count_ = 1;
  int local_rank_ = 0;
  std::vector<int> local_ranks_;
  std::unique_ptr<NodeSegment> segment_;
  std::mutex ordinals_mutex_;
  std::map<uint64_t, uint32_t> ordinals_;
  std::mutex companions_mutex_;
  std::map<std::string, std::unique_ptr<WorldCompanion>> companions_;
  bool shut_down_ = false;
};

// Runs `body` on `ranks` threads, each with a World of its own over a shared ThreadTransport, and
// returns one status for each rank. `node_sizes` splits the ranks over simulated nodes (in rank
// order); empty: all on one node. Used by ring-2 tests and by programs with N devices in a process.
std::vector<Status> RunRanks(int ranks, const Env& env, const std::function<Status(World&)>& body,
                             const std::vector<int>& node_sizes = {});

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_WORLD_H_
