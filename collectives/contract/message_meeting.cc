#include "collectives/contract/message_meeting.h"

#include <algorithm>
#include <functional>
#include <span>
#include <type_traits>

#include "collectives/contract/waiter.h"

namespace npumesh {
namespace {

class MessageMeeting final : public Meeting {
 public:
  MessageMeeting(World& world, std::string name, std::vector<int> world_ranks)
      : Meeting(world),
        world_(world),
        name_(std::move(name)),
        world_ranks_(std::move(world_ranks)),
        waiter_(world, name_, world_ranks_) {}

  Status Meet(const std::string& what, std::chrono::seconds limit) override {
    const auto key = static_cast<uint32_t>(MeetingKey(world_, name_, world_ranks_));
    return Watched(what, limit, [&](Deadline deadline) -> Status {
      NPUMESH_ASSIGN_OR_RETURN(plain_, world_.transport().Group(world_ranks_, key, deadline));
      return Status();
    });
  }

  Status Arrive(const Announcement& announcement, const Buffers& buffers,
                const EagerData&) override {
    Request mine = announcement.request;
    mine.sequence = sequence_;
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<Request> requests,
                             Gather(mine, std::span(&mine, 1)));
    const uint64_t fingerprint = Fingerprint(mine);
    const bool agree = mine.refused == 0 &&
                       std::all_of(requests.begin(), requests.end(),
                                   [&](const Request& r) { return Fingerprint(r) == fingerprint; });
    if (!agree) return Compare(requests, world_ranks_, name_);
    if (buffers.send_bytes.empty()) return Status();
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<uint64_t> sent, Gather(mine, buffers.send_bytes));
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<uint64_t> expected,
                             Gather(mine, buffers.recv_bytes));
    return CompareBlocks(sent, expected, world_ranks_).WithContext(Where(mine));
  }

  // Plain collectives return when the caller's buffers are its own again.
  Status Depart() override {
    Pass();
    return Status();
  }
  void Pass() override { ++sequence_; }

  bool in_window() const override { return false; }
  uint64_t send_offset(int) const override { return 0; }
  uint64_t recv_offset(int) const override { return 0; }
  const std::byte* eager(int) const override { return nullptr; }
  uint64_t block_at(int) const override { return 0; }
  uint64_t sequence() const override { return sequence_; }
  Result<PlainGroup*> Plain() override { return plain_.get(); }

 private:
  std::string Where(const Request& mine) const {
    return fmt::format("{} (group {}, call {})", NameOf(mine.kind, mine.node), name_, sequence_);
  }

  // The values of all members, by group rank.
  template <typename T, size_t N>
  Result<std::vector<std::remove_const_t<T>>> Gather(const Request& request,
                                                     std::span<T, N> values) {
    std::vector<std::remove_const_t<T>> all(world_ranks_.size() * values.size());
    NPUMESH_RETURN_IF_ERROR(Watched(Where(request), exec_timeout(), [&](Deadline deadline) {
      return plain_->AllGather(values.data(), all.data(), values.size_bytes(), deadline);
    }));
    return all;
  }

  // A wait of `step` in `what`, which says past the soft limit who is likely to be missing.
  Status Watched(const std::string& what, std::chrono::seconds limit,
                 const std::function<Status(Deadline)>& step) {
    WaitState state(world_);
    const std::function<Status()> remark = [&] { return waiter_.Remark(state, what, limit); };
    Deadline deadline = ExecDeadline(limit);
    deadline.meanwhile = &remark;
    const Status status = step(deadline);
    if (status.ok()) return status;
    // A peer of this node that failed has said why.
    const Status known = world_.board().CheckPeers(world_ranks_);
    return (known.ok() ? status : known).WithContext(what);
  }

  World& world_;
  const std::string name_;
  const std::vector<int> world_ranks_;
  Waiter waiter_;
  std::unique_ptr<PlainGroup> plain_;
  uint64_t sequence_ = 1;
};

}  // namespace

std::unique_ptr<Meeting> MakeMessageMeeting(World& world, const std::string& name,
                                            const std::vector<int>& world_ranks) {
  return std::make_unique<MessageMeeting>(world, name, world_ranks);
}

}  // namespace npumesh
