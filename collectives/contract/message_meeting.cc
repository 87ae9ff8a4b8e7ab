#include "collectives/contract/message_meeting.h"

#include <algorithm>

namespace npumesh {
namespace {

class MessageMeeting final : public Meeting {
 public:
  MessageMeeting(World& world, std::string name, std::vector<int> world_ranks)
      : world_(world), name_(std::move(name)), world_ranks_(std::move(world_ranks)) {}

  Status Meet() {
    const auto key = static_cast<uint32_t>(MeetingKey(world_, name_, world_ranks_));
    Result<std::unique_ptr<PlainGroup>> group =
        world_.transport().Group(world_ranks_, key, Deadline::After(world_.env().connect_timeout));
    if (!group.ok()) {
      return group.status().WithContext(fmt::format("creating group \"{}\"", name_));
    }
    plain_ = *std::move(group);
    return Status();
  }

  Status Arrive(const Request& request, const Buffers&) override {
    Request mine = request;
    mine.sequence = sequence_;
    std::vector<Request> requests(world_ranks_.size());
    NPUMESH_RETURN_IF_ERROR(
        Blame(mine, plain_->AllGather(&mine, requests.data(), sizeof(Request), ExecDeadline())));
    const uint64_t fingerprint = Fingerprint(mine);
    const bool agree = request.refused == 0 &&
                       std::all_of(requests.begin(), requests.end(),
                                   [&](const Request& r) { return Fingerprint(r) == fingerprint; });
    return agree ? Status() : Compare(requests, world_ranks_, name_);
  }

  // Plain collectives return when the caller's buffers are its own again.
  Status Depart() override {
    ++sequence_;
    return Status();
  }

  bool in_window() const override { return false; }
  uint64_t send_offset(int) const override { return 0; }
  uint64_t recv_offset(int) const override { return 0; }
  uint64_t block_bytes(int) const override { return 0; }
  uint64_t block_at(int) const override { return 0; }
  uint64_t sequence() const override { return sequence_; }
  Result<PlainGroup*> Plain() override { return plain_.get(); }

 private:
  Deadline ExecDeadline() const {
    const std::chrono::seconds limit = world_.env().exec_timeout;
    return limit == kNoTimeout ? Deadline::Never() : Deadline::After(limit);
  }

  // A peer of this node that failed has said why.
  Status Blame(const Request& mine, const Status& status) const {
    if (status.ok()) return status;
    const Status known = world_.CheckPeers(world_ranks_);
    const Status& cause = known.ok() ? status : known;
    return cause.WithContext(
        fmt::format("{} \"{}\" (group {}, call {})", Name(mine.kind), mine.node, name_, sequence_));
  }

  World& world_;
  const std::string name_;
  const std::vector<int> world_ranks_;
  std::unique_ptr<PlainGroup> plain_;
  uint64_t sequence_ = 1;
};

}  // namespace

Result<std::unique_ptr<Meeting>> OpenMessageMeeting(World& world, const std::string& name,
                                                    const std::vector<int>& world_ranks) {
  auto meeting = std::make_unique<MessageMeeting>(world, name, world_ranks);
  NPUMESH_RETURN_IF_ERROR(meeting->Meet());
  return std::unique_ptr<Meeting>(std::move(meeting));
}

}  // namespace npumesh
