// System: initialize_system and shutdown_system, and the rank functions that may only be called
// between the two (docs/backend.md).
//
//   initialize_system              -> Initialize
//   shutdown_system                -> Shutdown
//   get_rank_size, get_rank_id     -> RankSize, RankId
//   get_local_rank_size, ..._id    -> LocalRankSize, LocalRankId
//   get_world_rank_from_group_rank -> WorldRankFromGroupRank, and the other way round
//   collectives over a group       -> Group
//
// There is no system of the process: a program makes one and passes it on, so that N ranks fit into
// one process.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_SESSION_SYSTEM_H_
#define NPUMESH_GRAPH_SESSION_SYSTEM_H_

#include <memory>
#include <optional>
#include <string>

#include "graph/config/system_options.h"
#include "graph/session/npu_backend.h"
#include "graph/session/session.h"

namespace npumesh {

class System {
 public:
  System();
  ~System();
  System(const System&) = delete;
  System& operator=(const System&) = delete;

  // Collective over all MPI processes: starts the world and makes the device memory. Again with
  // equal options it does nothing. Errors: as Validate (before anything is started);
  // kInvalidArgument when it is initialised with other options; as World::Start and
  // DeviceMemory::Create.
  Status Initialize(const Env& env, const SystemOptions& options = {});
  // The same in a world that the caller started and will shut down; it must outlive the system.
  Status Initialize(World& world, const SystemOptions& options = {});

  // Collective over all ranks, when Initialize started the world. Sessions and communicators must
  // be gone. Error (kInvalidArgument): not initialised.
  Status Shutdown();

  bool initialized() const { return memory_ != nullptr; }
  const SystemOptions& options() const { return options_; }

  // All of the following fail with kInvalidArgument before Initialize and after Shutdown, and as
  // GroupSet for a group that is unknown or does not have this rank.

  Result<int> RankSize(const std::string& group = std::string(kWorldGroup));
  Result<int> RankId(const std::string& group = std::string(kWorldGroup));
  // Members of the group on this node.
  Result<int> LocalRankSize(const std::string& group = std::string(kWorldGroup));
  Result<int> LocalRankId(const std::string& group = std::string(kWorldGroup));
  Result<int> WorldRankFromGroupRank(const std::string& group, int group_rank);
  Result<int> GroupRankFromWorldRank(int world_rank, const std::string& group);

  // Local; the members meet in its first collective.
  Result<Communicator*> Group(const std::string& group = std::string(kWorldGroup));
  // Device memory of this rank.
  Result<DeviceMemory*> Memory();
  // A session of the model by this backend. Dumps, tunes and computes as the system's options say,
  // unless the backend's config asks for a dump, or for tuning; keeps kernel_meta by
  // op_debug_level.
  Result<std::unique_ptr<Session>> Compile(Model model, const NpuBackend& backend);

 private:
  Status CheckInitialized(std::string_view what) const;
  Result<GroupProvider::Members> MembersWithMe(std::string_view what, const std::string& group);
  // World ranks of the group on this node, in group order.
  Result<std::vector<int>> LocalMembers(std::string_view what, const std::string& group);

  SystemOptions options_;
  TensorDumpOptions tensor_dump_;
  PrecisionOptions precision_;
  std::unique_ptr<World> own_world_;  // null when the caller has started it
  World* world_ = nullptr;
  std::unique_ptr<DeviceMemory> memory_;
  std::unique_ptr<GroupSet> groups_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_SYSTEM_H_
