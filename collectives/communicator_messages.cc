// Send, Recv and BatchSendRecv of Communicator.
#include <atomic>
#include <cstring>
#include <deque>
#include <functional>
#include <future>
#include <new>
#include <set>
#include <thread>

#include "collectives/communicator_impl.h"
#include "collectives/extent.h"
#include "runtime/base/process/thread.h"
#include "runtime/base/process/thread_census.h"

namespace npumesh {
namespace {

// Data that a rank sends to itself.
Status Keep(const SendRecvItem& from, const SendRecvItem& to, const DeviceMemory& memory) {
  const uint64_t bytes = BytesOf(from.dtype, from.count).value_or(kTooManyBytes);
  if (bytes == 0) return Status();
  for (const SendRecvItem* item : {&from, &to}) {
    const std::string why =
        WhyNoBuffer(memory, item->buffer, bytes, item->sends ? "send" : "receive");
    if (!why.empty()) return Error(Code::kInvalidArgument, "{}", why);
  }
  std::memmove(to.buffer, from.buffer, bytes);
  return Status();
}

const SendRecvItem* Find(std::span<const SendRecvItem> items, int peer, bool sends) {
  for (const SendRecvItem& item : items) {
    if (item.peer == peer && item.sends == sends) return &item;
  }
  return nullptr;
}

}  // namespace

Status Communicator::Send(const void* buffer, uint64_t count, DataType dtype, int peer,
                          std::string_view node) {
  const SendRecvItem item{true, const_cast<void*>(buffer), count, dtype, peer};
  return impl_->RunMessages(std::span(&item, 1), node);
}

Status Communicator::Recv(void* buffer, uint64_t count, DataType dtype, int peer,
                          std::string_view node) {
  const SendRecvItem item{false, buffer, count, dtype, peer};
  return impl_->RunMessages(std::span(&item, 1), node);
}

Status Communicator::BatchSendRecv(std::span<const SendRecvItem> items, std::string_view node) {
  return impl_->RunMessages(items, node);
}

Status Communicator::Impl::RunMessages(std::span<const SendRecvItem> items, std::string_view node) {
  NPUMESH_RETURN_IF_ERROR(Ready());
  broken = PerformMessages(items, node);
  totals.calls += 1;
  if (!broken.ok()) totals.torn += 1;
  for (const SendRecvItem& item : items) {
    if (broken.ok() && item.sends) totals.bytes += *BytesOf(item.dtype, item.count);
  }
  return broken;
}

namespace {

// One message that a thread carries while the caller carries another one, and then waits for all;
// known to the census of threads.
class Errand {
 public:
  explicit Errand(const std::atomic<bool>& caller_waits)
      : caller_waits_(caller_waits), in_census_([this] { return Look(); }) {}

  void Begin() { carrier_ = ThisThread(); }
  void End() { done_ = true; }

 private:
  QueueSight Look() const {
    if (done_) return {};
    const auto waiting = caller_waits_ ? std::vector<pid_t>{caller_} : std::vector<pid_t>();
    return {.idle = false, .runner = carrier_, .waiting = waiting};
  }

  const std::atomic<bool>& caller_waits_;
  const pid_t caller_ = ThisThread();
  std::atomic<pid_t> carrier_{0};
  std::atomic<bool> done_{false};
  QueueInCensus in_census_;  // the last to be made, the first to go
};

}  // namespace

// Every message has a separate thread, so none can keep another from coming; what they wait for
// is the transport's business.
Status Communicator::Impl::PerformMessages(std::span<const SendRecvItem> items,
                                           std::string_view node) {
  const auto where = [&](const Status& status) {
    return status.WithContext(
        fmt::format("{} (group {})", NameOf(CollectiveKind::kSendRecv, node), name));
  };
  NPUMESH_RETURN_IF_ERROR(where(CheckItems(items)));
  std::vector<Half> halves;
  std::vector<Lane*> under_way;
  for (const SendRecvItem& item : items) {
    if (item.peer != rank) {
      halves.push_back(HalfOf(item));
      under_way.push_back(&LaneOf(item));
    } else if (item.sends) {
      NPUMESH_RETURN_IF_ERROR(where(Keep(item, *Find(items, rank, false), memory)));
    }
  }
  std::vector<Status> statuses(halves.size());
  const auto carry = [&](size_t i) -> Status {
    try {
      return Carry(halves[i], *under_way[i], node);
    } catch (const std::bad_alloc&) {
      return Error(Code::kOutOfMemory, "no host memory is left to carry a message");
    }
  };
  {
    std::atomic<bool> caller_waits{false};
    std::deque<Errand> errands;
    std::vector<std::thread> others(halves.empty() ? 0 : halves.size() - 1);
    std::promise<bool> all_are_there;
    const std::shared_future<bool> go = all_are_there.get_future().share();
    Status started;
    for (size_t i = 1; i < halves.size() && started.ok(); ++i) {
      started = StartThread("a message", &others[i - 1],
                            [&, go, i, errand = &errands.emplace_back(caller_waits)] {
                              errand->Begin();
                              if (go.get()) statuses[i] = carry(i);
                              errand->End();
                            });
    }
    all_are_there.set_value(started.ok());
    if (!halves.empty()) {
      statuses[0] = started.ok() ? carry(0) : started;
    }
    caller_waits = true;
    for (std::thread& other : others) {
      if (other.joinable()) other.join();
    }
  }
  for (const Status& status : statuses) NPUMESH_RETURN_IF_ERROR(where(status));
  return Status();
}

Status Communicator::Impl::CheckItems(std::span<const SendRecvItem> items) const {
  std::set<std::pair<int, bool>> seen;
  for (const SendRecvItem& item : items) {
    if (item.peer < 0 || item.peer >= size()) {
      return Error(Code::kInvalidArgument, "peer {} is outside the group of {}", item.peer, size());
    }
    if (!seen.emplace(item.peer, item.sends).second) {
      return Error(Code::kInvalidArgument, "two items {} rank {}; one call takes one",
                   item.sends ? "send to" : "receive from", item.peer);
    }
    if (item.peer != rank) continue;
    const SendRecvItem* other = Find(items, rank, !item.sends);
    if (other == nullptr || other->count != item.count || other->dtype != item.dtype) {
      return Error(Code::kInvalidArgument,
                   "rank {} {} itself {}[{}] without the counterpart in the same call", rank,
                   item.sends ? "sends" : "receives from", Name(item.dtype), item.count);
    }
  }
  return Status();
}

Lane& Communicator::Impl::LaneOf(const SendRecvItem& item) {
  std::unique_ptr<Lane>& lane = lanes[{item.peer, item.sends}];
  if (lane == nullptr) {
    const int peer = world_ranks[static_cast<size_t>(item.peer)];
    const int sender = item.sends ? world.rank() : peer;
    const int receiver = item.sends ? peer : world.rank();
    lane = std::make_unique<Lane>(world, fmt::format("{} -> {} of {}", sender, receiver, name),
                                  std::vector<int>{sender, receiver});
  }
  return *lane;
}

Status Communicator::Impl::Carry(const Half& half, Lane& lane, std::string_view node) const {
  const Request& request = half.request;
  lane.logbook.Enter({.kind = request.kind,
                      .dtype = static_cast<DataType>(request.dtype),
                      .root = request.root,
                      .count = request.count,
                      .node = node,
                      .call = request.sequence,
                      .peer = half.peer,
                      .bytes = half.sends ? half.bytes : 0},
                     0);
  WaitState state(world);
  const std::function<Status()> remark = [&] {
    return lane.waiter.Remark(
        state, fmt::format("{}, call {}", NameOf(request.kind, node), request.sequence),
        meeting->exec_timeout(), lane.logbook.Absent(world, half.peer, request.sequence));
  };
  Post post{
      world, memory, name, tag, ExecDeadline(meeting->exec_timeout()), meeting->exec_timeout()};
  post.deadline.meanwhile = &remark;
  const Status status = CarryOut(half, post);
  lane.logbook.Leave(status);
  return status;
}

// Numbers the message; both sides count alike.
Half Communicator::Impl::HalfOf(const SendRecvItem& item) {
  Half half;
  half.sends = item.sends;
  half.peer = world_ranks[static_cast<size_t>(item.peer)];
  half.data = static_cast<std::byte*>(item.buffer);
  half.bytes = BytesOf(item.dtype, item.count).value_or(kTooManyBytes);
  half.request.kind = CollectiveKind::kSendRecv;
  half.request.dtype = static_cast<int32_t>(item.dtype);
  half.request.root = 0;
  half.request.count = item.count;
  half.request.sequence = ++LaneOf(item).messages;
  if (BitsOf(item.dtype) % 8 != 0 || BitsOf(item.dtype) == 0) {
    half.request.set_refusal(fmt::format("dtype {} cannot travel", Name(item.dtype)));
  } else if (const std::string why =
                 WhyNoBuffer(memory, half.data, half.bytes, item.sends ? "send" : "receive");
             !why.empty()) {
    half.request.set_refusal(why);
  }
  return half;
}

}  // namespace npumesh
