#include "runtime/world/world.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <set>

#include "runtime/base/log.h"
#include "runtime/base/process_state.h"
#include "runtime/base/rank_list.h"
#include "runtime/world/blocked_watch.h"
#include "runtime/world/mpi_transport.h"
#include "runtime/world/thread_transport.h"

namespace npumesh {
namespace {

enum BoardState : uint32_t { kStarting = 0, kRunning = 1, kFailed = 2, kLeaving = 3 };

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kLinesBytes = World::kPositionLines * sizeof(PositionLine);
constexpr uint64_t kBoardBytes =
    kPageBytes + kLinesBytes + kPageBytes;  // the page, lines, standing
static_assert(kLinesBytes % kPageBytes == 0 && sizeof(StandingPage) <= kPageBytes);

// What a rank says of itself at the start.
struct StartWord {
  int64_t clock;  // seconds since the epoch
  int64_t code;   // of the Status with which it starts
};

}  // namespace

// One rank's page on the board, followed by its position lines and its StandingPage. Written by its
// owner, read by the ranks of the node.
struct World::Board {
  static constexpr uint32_t kLayout = 3;
  static constexpr size_t kTextBytes = 2048;

  uint32_t layout;  // kLayout; a peer built from other sources says something else
  int32_t process;  // as its owner sees it
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> claimed;  // a failure is being written; the first one wins
  uint32_t code;                  // Code of the failure; published by `state`
  uint32_t text_bytes;
  std::atomic<uint32_t> lines;  // position lines that have ever been claimed
  char text[kTextBytes];
};

Result<std::unique_ptr<World>> World::Start(const Env& env) {
  std::unique_ptr<Transport> transport;
  std::optional<BlockedWatch> watch;
  if (StartedByLauncher()) {
    watch.emplace("the start of all ranks",
                  BlockedWatch::Limits{env.soft_timeout, env.connect_timeout});
    NPUMESH_ASSIGN_OR_RETURN(transport, MakeMpiTransport(env.connect_timeout, env.soft_timeout));
  } else {
    transport = MakeThreadTransport(MakeThreadFabric(1, {}, env.connect_timeout), 0);
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
  NPUMESH_RETURN_IF_ERROR(world->Introduce());
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

World::Board* World::board(int world_rank) const {
  return reinterpret_cast<Board*>(segment_->part(world_rank));
}

PositionLine* World::position_lines(int world_rank) const {
  std::byte* part = segment_->part(world_rank);
  return part ? reinterpret_cast<PositionLine*>(part + kPageBytes) : nullptr;
}

StandingPage* World::standing_page(int world_rank) const {
  std::byte* part = segment_->part(world_rank);
  return part ? reinterpret_cast<StandingPage*>(part + kPageBytes + kLinesBytes) : nullptr;
}

std::byte* World::shared_area(int world_rank) const {
  std::byte* part = segment_->part(world_rank);
  return part ? part + kBoardBytes : nullptr;
}

// Shares the board with the ranks of the node.
Status World::Introduce() {
  static_assert(sizeof(Board) <= kPageBytes);
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
  NPUMESH_ASSIGN_OR_RETURN(segment_, transport_->Share("board", kBoardBytes + kSharedAreaBytes));
  Board* mine = board(rank());
  mine->layout = Board::kLayout;
  mine->process = static_cast<int32_t>(getpid());
  return Status();
}

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
  if (!mine.ok()) PublishFailure(mine);
  if (mine.ok()) board(rank())->state.store(kRunning, std::memory_order_release);
  start_time_ = std::time(nullptr);
  if (size() == 1) return mine;
  const std::vector<int> everyone = AllRanks(size());
  const Deadline deadline = Deadline::After(env_.connect_timeout);
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<PlainGroup> group,
                           transport_->Group(everyone, 0, deadline));
  const StartWord word{static_cast<int64_t>(start_time_), static_cast<int64_t>(mine.code())};
  std::vector<StartWord> words(everyone.size());
  NPUMESH_RETURN_IF_ERROR(group->AllGather(&word, words.data(), sizeof(word), deadline));
  start_time_ = static_cast<std::time_t>(words[0].clock);
  if (!mine.ok()) return mine;
  NPUMESH_RETURN_IF_ERROR(CheckPeers(local_ranks_));
  for (int r : everyone) {
    if (words[static_cast<size_t>(r)].code != 0) {
      return Error(Code::kPeerLost, "rank {} could not start; see its message", r);
    }
  }
  return Status();
}

void World::PublishFailure(const Status& status) {
  Board* mine = board(rank());
  if (mine->claimed.exchange(1, std::memory_order_acq_rel) != 0) return;
  const std::string_view text = status.message().substr(0, Board::kTextBytes);
  mine->code = static_cast<uint32_t>(status.code());
  mine->text_bytes = static_cast<uint32_t>(text.size());
  text.copy(mine->text, text.size());
  mine->state.store(kFailed, std::memory_order_release);
}

Status World::CheckPeer(int world_rank) const {
  const Board* peer = board(world_rank);
  if (peer == nullptr || world_rank == rank()) return Status();
  if (peer->state.load(std::memory_order_acquire) == kFailed) {
    const size_t bytes = std::min<size_t>(peer->text_bytes, Board::kTextBytes);
    return Error(Code::kPeerLost, "rank {} failed: {}", world_rank,
                 std::string_view(peer->text, bytes));
  }
  if (transport_->Probe(world_rank) == PeerState::kGone) {
    return Error(Code::kPeerLost, "rank {} of {} (process {}) has ended", world_rank, size(),
                 peer->process);
  }
  return Status();
}

Status World::CheckPeers(const std::vector<int>& world_ranks) const {
  Status gone;
  for (int peer : world_ranks) {
    const Status status = CheckPeer(peer);
    if (status.ok()) continue;
    const Board* page = board(peer);
    if (page->state.load(std::memory_order_acquire) == kFailed) return status;
    if (gone.ok()) gone = status;
  }
  return gone;
}

// Lines never used before come first: a closed line still tells where its rank left the group.
PositionLine* World::ClaimPosition() {
  PositionLine* lines = position_lines(rank());
  std::atomic<uint32_t>& used = board(rank())->lines;
  uint32_t next = used.load(std::memory_order_relaxed);
  while (next < kPositionLines) {
    if (!used.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
    if (lines[next].Claim()) return &lines[next];
  }
  for (int i = 0; i < kPositionLines; ++i) {
    if (lines[i].Claim()) return &lines[i];
  }
  return nullptr;
}

Sight World::Look(int world_rank) const {
  Sight sight;
  const Board* peer = board(world_rank);
  if (peer == nullptr) return sight;
  sight.visible = true;
  sight.leaving = peer->state.load(std::memory_order_acquire) == kLeaving;
  sight.lost = CheckPeer(world_rank);
  sight.process = peer->process;
  sight.process_state = ProcessState(peer->process);
  const PositionLine* lines = position_lines(world_rank);
  const uint32_t used = std::min<uint32_t>(peer->lines.load(std::memory_order_acquire),
                                           static_cast<uint32_t>(kPositionLines));
  sight.lines = used;
  for (uint32_t i = 0; i < used; ++i) {
    if (std::optional<Position> position = lines[i].Read()) {
      sight.positions.push_back(*std::move(position));
    }
  }
  return sight;
}

WorldCompanion* World::Keep(const std::string& name,
                            const std::function<std::unique_ptr<WorldCompanion>()>& make) {
  std::lock_guard lock(companions_mutex_);
  const auto [it, added] = companions_.try_emplace(name);
  if (added) it->second = make();
  return it->second.get();
}

uint32_t World::NextOrdinal(uint64_t key) {
  std::lock_guard lock(ordinals_mutex_);
  return ordinals_[key]++;
}

Status World::Shutdown() {
  if (shut_down_) return Status();
  shut_down_ = true;
  for (const auto& [name, companion] : companions_) {
    if (companion) companion->OnShutdown();
  }
  uint32_t running = kRunning;
  board(rank())->state.compare_exchange_strong(running, kLeaving, std::memory_order_acq_rel);
  return transport_->Shutdown(Deadline::After(kFarewell));
}

}  // namespace npumesh
