#include "runtime/world/world.h"

#include <optional>
#include <set>

#include "runtime/base/log.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/blocked_watch.h"
#include "runtime/world/meeting.h"
#include "runtime/world/mpi_transport.h"
#include "runtime/world/socket_transport.h"
#include "runtime/world/thread_transport.h"

namespace npumesh {
namespace {

// What a rank says of itself at the start.
struct StartWord {
  int64_t clock;  // seconds since the epoch
  int64_t code;   // of the Status with which it starts
  int64_t local;  // LOCAL_WORLD_SIZE; 0: unset
};

}  // namespace

Result<std::unique_ptr<World>> World::Start(const Env& env) {
  std::unique_ptr<Transport> transport;
  std::optional<BlockedWatch> watch;
  if (StartedByLauncher()) {
    watch.emplace("the start of all ranks",
                  BlockedWatch::Limits{env.soft_timeout, env.connect_timeout});
    NPUMESH_ASSIGN_OR_RETURN(transport, MakeMpiTransport(env.connect_timeout, env.soft_timeout));
  } else {
    NPUMESH_ASSIGN_OR_RETURN(const std::optional<Appointment> appointment, AppointmentOf(env));
    if (appointment) {
      watch.emplace("the start of all ranks",
                    BlockedWatch::Limits{env.soft_timeout, env.connect_timeout});
      NPUMESH_ASSIGN_OR_RETURN(transport, MakeSocketTransport(*appointment, env.connect_timeout));
    } else {
      transport = MakeThreadTransport(MakeThreadFabric(1, {}, env.connect_timeout), 0);
    }
  }
  SetLogRank(transport->size() > 1 ? transport->rank() : -1);
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<World> world, Start(env, std::move(transport)));
  const bool room_for_all = world->topology_.cpu_count() >= world->local_size();
  if (world->local_size() > 1 && room_for_all && !world->topology_.synthetic()) {
    if (Status bound = BindThread(world->placement_.cpus); !bound.ok()) {
      NPUMESH_INFO("not bound to processors: {}", bound.message());
    }
  }
  return world;
}

Result<std::unique_ptr<World>> World::Start(const Env& env, std::unique_ptr<Transport> transport) {
  Result<Topology> topology =
      env.topology.empty() ? Topology::Detect() : Topology::FromSynthetic(env.topology);
  Status mine = topology.status();
  std::unique_ptr<World> world(
      new World(env, std::move(transport), topology.ok() ? *std::move(topology) : Topology()));
  NPUMESH_ASSIGN_OR_RETURN(world->board_, Board::Share(*world->transport_));
  if (mine.ok()) mine = world->CheckLauncher();
  NPUMESH_RETURN_IF_ERROR(world->AgreeOnStart(mine));
  world->placement_ = world->topology_.Place(world->local_rank_, world->local_size());
  world->wait_policy_ = WaitPolicy::ForCores(world->local_size(), world->topology_.cpu_count());
  world->crowded_ = world->local_size() > world->topology_.cpu_count();
  return world;
}

World::World(const Env& env, std::unique_ptr<Transport> transport, Topology topology)
    : env_(env), transport_(std::move(transport)), topology_(std::move(topology)) {
  const std::vector<int>& nodes = node_of();
  node_count_ = static_cast<int>(std::set<int>(nodes.begin(), nodes.end()).size());
  for (int r = 0; r < size(); ++r) {
    if (nodes[static_cast<size_t>(r)] != node()) continue;
    if (r == rank()) local_rank_ = static_cast<int>(local_ranks_.size());
    local_ranks_.push_back(r);
  }
}

World::~World() = default;

// What a launcher told us against what is true.
Status World::CheckLauncher() const {
  if (env_.local_world_size && *env_.local_world_size != local_size()) {
    return Error(
        Code::kInvalidArgument,
        "LOCAL_WORLD_SIZE is {}, but {} rank(s) share memory on this node; set it to {} or "
        "unset it",
        *env_.local_world_size, local_size(), local_size());
  }
  if (env_.world_size && *env_.world_size != size()) {
    return Error(Code::kInvalidArgument, "WORLD_SIZE is {}, but {} rank(s) were started; unset it",
                 *env_.world_size, size());
  }
  if (env_.rank && *env_.rank != rank()) {
    return Error(Code::kInvalidArgument, "RANK is {}, but this is rank {}; unset it", *env_.rank,
                 rank());
  }
  return Status();
}

// Every rank starts, or none does; they take rank 0's clock.
Status World::AgreeOnStart(const Status& mine) {
  if (mine.ok()) {
    board_->PublishStart();
  } else {
    board_->PublishFailure(mine);
  }
  start_time_ = std::time(nullptr);
  local_world_sizes_.assign(static_cast<size_t>(size()), env_.local_world_size.value_or(0));
  if (size() == 1) return mine;
  const std::vector<int> everyone = AllRanks(size());
  const Deadline deadline = Deadline::After(env_.connect_timeout);
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<PlainGroup> group,
                           transport_->Group(everyone, 0, deadline));
  const StartWord word{static_cast<int64_t>(start_time_), static_cast<int64_t>(mine.code()),
                       env_.local_world_size.value_or(0)};
  std::vector<StartWord> words(everyone.size());
  NPUMESH_RETURN_IF_ERROR(group->AllGather(&word, words.data(), sizeof(word), deadline));
  start_time_ = static_cast<std::time_t>(words[0].clock);
  for (size_t r = 0; r < words.size(); ++r)
    local_world_sizes_[r] = static_cast<int>(words[r].local);
  if (!mine.ok()) return mine;
  // A rank that has started may have had a setback by now; that is no reason.
  for (int r : local_ranks_) NPUMESH_RETURN_IF_ERROR(board_->CheckLost(r));
  for (int r : everyone) {
    if (words[static_cast<size_t>(r)].code != 0) {
      return Error(Code::kPeerLost, "rank {} could not start; see its message", r);
    }
  }
  return Status();
}

WorldCompanion* World::Keep(const std::string& name,
                            const std::function<std::unique_ptr<WorldCompanion>()>& make) {
  std::lock_guard lock(companions_mutex_);
  const auto [it, added] = companions_.try_emplace(name);
  if (added) it->second = make();
  return it->second.get();
}

uint64_t World::NextOrdinal(uint64_t key) {
  std::lock_guard lock(ordinals_mutex_);
  return ordinals_[key]++;
}

void World::BeginEra(uint64_t key) {
  constexpr int kEraBits = 32;
  std::lock_guard lock(ordinals_mutex_);
  uint64_t& next = ordinals_[key];
  next = ((next >> kEraBits) + 1) << kEraBits;
}

Status World::Shutdown() {
  if (shut_down_) return Status();
  shut_down_ = true;
  for (const auto& [name, companion] : companions_) {
    if (companion) companion->OnShutdown();
  }
  board_->PublishEnd();
  return transport_->Shutdown(Deadline::After(kFarewell));
}

}  // namespace npumesh
