#include "runtime/world/thread_transport.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>

#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"
#include "runtime/world/mapping.h"
#include "runtime/world/message_group.h"
#include "runtime/world/world.h"

namespace npumesh {

// Thread-safety: one mutex guards everything; these paths are not the fast ones.
class ThreadFabric {
 public:
  using Message = std::vector<std::byte>;
  using Channel = std::tuple<int, int, int>;  // from, to, tag

  ThreadFabric(int ranks, const std::vector<int>& node_sizes, std::chrono::seconds connect_timeout)
      : connect_timeout_(connect_timeout),
        shares_made_(static_cast<size_t>(ranks), 0),
        gone_(static_cast<size_t>(ranks), false) {
    for (size_t node = 0; node < node_sizes.size(); ++node) {
      node_of_.insert(node_of_.end(), static_cast<size_t>(node_sizes[node]),
                      static_cast<int>(node));
    }
    if (node_of_.empty()) node_of_.assign(static_cast<size_t>(ranks), 0);
  }

  int size() const { return static_cast<int>(node_of_.size()); }
  const std::vector<int>& node_of() const { return node_of_; }

  bool gone(int rank) {
    std::lock_guard lock(mutex_);
    return gone_[static_cast<size_t>(rank)];
  }

  void Leave(int rank) {
    std::lock_guard lock(mutex_);
    gone_[static_cast<size_t>(rank)] = true;
    changed_.notify_all();
  }

  void Post(int from, int to, int tag, std::span<const std::byte> bytes) {
    std::lock_guard lock(mutex_);
    mail_[{from, to, tag}].emplace_back(bytes.begin(), bytes.end());
    changed_.notify_all();
  }

  Status Take(int from, int to, int tag, std::span<std::byte> bytes, Deadline deadline) {
    std::unique_lock lock(mutex_);
    std::deque<Message>& box = mail_[{from, to, tag}];
    NPUMESH_RETURN_IF_ERROR(Wait(lock, deadline, from, [&] { return !box.empty(); }));
    const Message message = std::move(box.front());
    box.pop_front();
    if (message.size() != bytes.size()) {
      return Error(Code::kMismatch, "rank {}: message of {} bytes from rank {}, expected {}", to,
                   message.size(), from, bytes.size());
    }
    std::copy(message.begin(), message.end(), bytes.begin());
    return Status();
  }

  Result<std::unique_ptr<NodeSegment>> Share(int rank, std::string_view label, uint64_t bytes,
                                             NodeSegment::Reach reach) {
    bytes = RoundUpToPages(bytes);
    UniqueFd own;
    NPUMESH_ASSIGN_OR_RETURN(std::shared_ptr<Mapping> mine,
                             reach == NodeSegment::Reach::kProcesses
                                 ? Mapping::OfDescriptor(label, bytes, &own)
                                 : Mapping::OfProcess(label, bytes));
    std::unique_lock lock(mutex_);
    const int node = node_of_[static_cast<size_t>(rank)];
    const uint64_t number = shares_made_[static_cast<size_t>(rank)]++;
    Sharing& sharing = sharings_[{node, number}];
    sharing.parts.resize(node_of_.size());
    sharing.parts[static_cast<size_t>(rank)] = std::move(mine);
    changed_.notify_all();
    for (int peer = 0; peer < size(); ++peer) {
      if (node_of_[static_cast<size_t>(peer)] != node) continue;
      NPUMESH_RETURN_IF_ERROR(Wait(lock, Deadline::After(connect_timeout_), peer, [&] {
        return sharing.parts[static_cast<size_t>(peer)] != nullptr;
      }));
    }
    std::vector<std::shared_ptr<Mapping>> parts = sharing.parts;
    const auto members = std::count(node_of_.begin(), node_of_.end(), node);
    if (++sharing.taken == members) sharings_.erase({node, number});
    return MakeNodeSegment(std::move(parts), bytes, std::move(own));
  }

  // Group tags are numbered by (members, key), alike on every rank.
  int TagOf(const std::vector<int>& ranks, uint32_t key) {
    std::lock_guard lock(mutex_);
    const auto [it, added] = tags_.try_emplace({ranks, key}, static_cast<int>(tags_.size()));
    return kGroupTags + it->second;
  }

 private:
  static constexpr int kGroupTags = 1 << 14;
  struct Sharing {
    std::vector<std::shared_ptr<Mapping>> parts;
    long taken = 0;
  };

  template <typename Ready>
  Status Wait(std::unique_lock<std::mutex>& lock, Deadline deadline, int peer, Ready ready) {
    while (!ready()) {
      if (gone_[static_cast<size_t>(peer)]) {
        return Error(Code::kPeerLost, "rank {} has ended", peer);
      }
      if (deadline.expired()) return Error(Code::kTimeout, "rank {} did not come in time", peer);
      changed_.wait_for(lock, std::chrono::milliseconds(20));
      if (deadline.meanwhile == nullptr) continue;
      lock.unlock();
      const Status status = (*deadline.meanwhile)();
      lock.lock();
      if (!status.ok()) return ready() ? Status() : status;
    }
    return Status();
  }

  const std::chrono::seconds connect_timeout_;
  std::vector<int> node_of_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Channel, std::deque<Message>> mail_;
  std::vector<uint64_t> shares_made_;
  std::map<std::pair<int, uint64_t>, Sharing> sharings_;
  std::map<std::pair<std::vector<int>, uint32_t>, int> tags_;
  std::vector<bool> gone_;
};

namespace {

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<ThreadFabric> fabric, int rank)
      : fabric_(std::move(fabric)), rank_(rank) {}
  ~ThreadTransport() override { fabric_->Leave(rank_); }

  int rank() const override { return rank_; }
  int size() const override { return fabric_->size(); }
  const std::vector<int>& node_of() const override { return fabric_->node_of(); }

  Result<std::unique_ptr<NodeSegment>> Share(std::string_view label, uint64_t bytes,
                                             NodeSegment::Reach reach) override {
    return fabric_->Share(rank_, label, bytes, reach);
  }

  Status Exchange(int send_to, std::span<const std::byte> send, int recv_from,
                  std::span<std::byte> recv, int tag, Deadline deadline) override {
    if (send_to >= 0) fabric_->Post(rank_, send_to, tag, send);
    if (recv_from < 0) return Status();
    return fabric_->Take(recv_from, rank_, tag, recv, deadline);
  }

  Result<std::unique_ptr<PlainGroup>> Group(const std::vector<int>& world_ranks, uint32_t key,
                                            Deadline) override {
    return MakeMessageGroup(*this, world_ranks, fabric_->TagOf(world_ranks, key));
  }

  PeerState Probe(int world_rank) const override {
    return fabric_->gone(world_rank) ? PeerState::kGone : PeerState::kAlive;
  }

  Status Shutdown(Deadline deadline) override {
    constexpr int kFarewellTag = (1 << 14) - 1;
    std::vector<int> everyone;
    for (int r = 0; r < size(); ++r) everyone.push_back(r);
    return MakeMessageGroup(*this, everyone, kFarewellTag)->Barrier(deadline);
  }

 private:
  std::shared_ptr<ThreadFabric> fabric_;
  int rank_;
};

}  // namespace

std::shared_ptr<ThreadFabric> MakeThreadFabric(int ranks, const std::vector<int>& node_sizes,
                                               std::chrono::seconds connect_timeout) {
  return std::make_shared<ThreadFabric>(ranks, node_sizes, connect_timeout);
}

std::unique_ptr<Transport> MakeThreadTransport(std::shared_ptr<ThreadFabric> fabric, int rank) {
  return std::make_unique<ThreadTransport>(std::move(fabric), rank);
}

std::vector<Status> RunRanks(int ranks, const Env& env, const std::function<Status(World&)>& body,
                             const std::vector<int>& node_sizes) {
  const auto fabric = MakeThreadFabric(ranks, node_sizes, env.connect_timeout);
  std::vector<Status> statuses(static_cast<size_t>(ranks));
  const Status started = OnThreads(ranks, "each rank", [&](int rank) {
    SetLogRank(rank);
    Result<std::unique_ptr<World>> world = World::Start(env, MakeThreadTransport(fabric, rank));
    statuses[static_cast<size_t>(rank)] = world.ok() ? body(**world) : world.status();
  });
  if (!started.ok()) std::fill(statuses.begin(), statuses.end(), started);
  return statuses;
}

}  // namespace npumesh
