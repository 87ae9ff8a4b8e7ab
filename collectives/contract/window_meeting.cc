#include "collectives/contract/window_meeting.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "collectives/contract/run_ahead.h"
#include "collectives/contract/window_slots.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// Added to the number of a call by those who have read why it failed.
constexpr uint64_t kSettled = uint64_t{1} << 40;

class WindowMeeting final : public Meeting {
 public:
  WindowMeeting(World& world, std::string name, std::vector<int> world_ranks)
      : Meeting(world),
        world_(world),
        name_(std::move(name)),
        slots_(world, std::move(world_ranks)),
        ring_(slots_),
        waiter_(world, name_, slots_.world_ranks()) {}

  ~WindowMeeting() override {
    const Status verdict = Close();
    if (!verdict.ok()) NPUMESH_ERROR("group \"{}\" is left: {}", name_, verdict.message());
  }

  // A member that is slow may still be reading this slot. It is waited for a moment; if it does not
  // come, the slot is given up rather than given to another group under its eyes.
  Status Close() override {
    if (std::exchange(closed_, true)) return Status();
    constexpr auto kPatience = std::chrono::seconds(1);
    const auto deadline = Deadline::After(kPatience);
    const auto read = [&] { return slots_.AllDeparted(sequence_ - 1); };
    uint64_t disputed = 0;
    (void)WaitUntil(
        world_.wait_policy(), [&] { return read() || (disputed = Disputed(sequence_)) != 0; },
        [&] { return deadline.expired() ? Error(Code::kTimeout, "slow") : GoneAny(); });
    const Status verdict = disputed != 0 ? Settle(disputed) : Status();
    slots_.Release(read());
    return verdict;
  }

  // Takes a slot, announces it and finds the others'.
  Status Meet() {
    key_ = MeetingKey(world_, name_, slots_.world_ranks());
    NPUMESH_RETURN_IF_ERROR(slots_.Claim(key_, name_));
    const auto what = [this] { return fmt::format("creating group \"{}\"", name_); };
    NPUMESH_RETURN_IF_ERROR(waiter_.ForAll(
        what, world_.env().connect_timeout, [this](size_t i) { return slots_.Find(i); },
        [](size_t) { return -1; }));
    // No member uses a slot before all members have found all slots.
    NPUMESH_RETURN_IF_ERROR(Arrive(Request(), Buffers(), EagerData()));
    return Depart();
  }

  Status Arrive(const Announcement& announcement, const Buffers& buffers,
                const EagerData& eager) override {
    if (streak_.trusted() && streak_.Continues(announcement, eager.sole_sender)) {
      return ArriveLed(eager);
    }
    uint64_t disputed = 0;
    if (led_ != 0) NPUMESH_RETURN_IF_ERROR(AwaitReaders(&disputed));
    if (disputed != 0) return Settle(disputed);
    const uint64_t call = called_ = sequence_;
    Announce(announcement, call, buffers, eager.bytes);
    NPUMESH_RETURN_IF_ERROR(AwaitUnlessDisputed(
        call, &disputed, [&](size_t i) { return HasCome(i, call); },
        [&](size_t i) { return slots_.CpuAtArrival(i, call - 1); }));
    if (disputed != 0) return Settle(disputed);
    led_ = 0;
    met_ = call;
    NPUMESH_RETURN_IF_ERROR(CompareAll(announcement, buffers));
    if (compare_) streak_.Count(announcement, eager.sole_sender);
    return Status();
  }

  Status Depart() override {
    const uint64_t call = sequence_;
    Pass();
    return Await([this, call](size_t i) { return slots_.Departed(i, call); },
                 [this, call](size_t i) { return slots_.CpuAtArrival(i, call); });
  }

  void Pass() override {
    slots_.Depart(sequence_);
    ++sequence_;
  }

  void StopComparing() override { compare_ = false; }
  bool in_window() const override { return true; }
  uint64_t send_offset(int peer) const override { return At(peer).arrival.send_offset; }
  uint64_t recv_offset(int peer) const override { return At(peer).arrival.recv_offset; }
  const std::byte* eager(int peer) const override {
    return led_ == 0 ? At(peer).eager
                     : ring_.Data(static_cast<size_t>(peer), sequence_, led_bytes_);
  }
  uint64_t block_at(int peer) const override {
    return slots_.of(static_cast<size_t>(peer)).send_at[slots_.rank()];
  }
  uint64_t sequence() const override { return sequence_; }

  Result<PlainGroup*> Plain() override {
    if (!plain_) {
      NPUMESH_ASSIGN_OR_RETURN(
          plain_, world_.transport().Group(slots_.world_ranks(), static_cast<uint32_t>(key_),
                                           Deadline::After(world_.env().connect_timeout)));
    }
    return plain_.get();
  }

 private:
  const Round& RoundOf(size_t i) const { return slots_.round(i, sequence_); }
  const Round& At(int peer) const { return RoundOf(static_cast<size_t>(peer)); }
  Status GoneAny() const { return world_.CheckPeers(slots_.world_ranks()); }

  // Until `here(i)` for all members; `cpu(i)` as in Waiter.
  template <typename Here, typename Cpu>
  Status Await(Here here, Cpu cpu) const {
    return waiter_.ForAll([this] { return Where(); }, exec_timeout(), here, cpu);
  }
  // The same, but it ends as well with a dispute about a call below `end`, which is `*disputed`
  // then.
  template <typename Here, typename Cpu>
  Status AwaitUnlessDisputed(uint64_t end, uint64_t* disputed, Here here, Cpu cpu) const {
    const auto ends = [&] { return *disputed != 0 || (*disputed = Disputed(end)) != 0; };
    return Await([&](size_t i) { return here(i) || ends(); }, cpu);
  }

  bool HasCome(size_t i, uint64_t call) const {
    if (!slots_.Arrived(i, call)) return false;
    // The first eager bytes are under way while the caller still compares.
    __builtin_prefetch(slots_.round(i, call).eager);
    return true;
  }

  // ---- calls in which all meet ----

  void Announce(const Announcement& announcement, uint64_t call, const Buffers& buffers,
                std::span<const std::byte> eager) {
    Round& mine = slots_.my_round(call);
    wanted_ = &mine.request;
    if (compare_) Publish(announcement, call);
    if (!eager.empty()) std::memcpy(mine.eager, eager.data(), eager.size());
    if (!buffers.send_bytes.empty()) PublishBlocks(buffers);
    // The line that others poll comes last and in one go.
    mine.arrival.fingerprint = compare_ ? AtCall(announcement.content_fingerprint, call) : 0;
    mine.arrival.send_offset = buffers.send_offset;
    mine.arrival.recv_offset = buffers.recv_offset;
    mine.arrival.cpu.store(sched_getcpu(), std::memory_order_relaxed);
    mine.arrival.sequence.store(slots_.Stamp(slots_.rank(), call), std::memory_order_release);
  }

  // Most calls repeat what stands in the round already. The refusal is long and seldom there.
  void Publish(const Announcement& announcement, uint64_t call) {
    Request& shared = slots_.my_round(call).request;
    uint64_t& published = published_[call % 2];
    if (announcement.serial == 0 || announcement.serial != published) {
      constexpr size_t kUsual = offsetof(Request, refusal);
      const Request& request = announcement.request;
      std::memcpy(static_cast<void*>(&shared), &request,
                  request.refused ? sizeof(Request) : kUsual);
      published = announcement.serial;
    }
    shared.sequence = call;
  }

  void PublishBlocks(const Buffers& buffers) {
    Slot& mine = slots_.mine();
    std::copy(buffers.send_bytes.begin(), buffers.send_bytes.end(), mine.send_bytes);
    std::copy(buffers.send_at.begin(), buffers.send_at.end(), mine.send_at);
    std::copy(buffers.recv_bytes.begin(), buffers.recv_bytes.end(), mine.recv_bytes);
  }

  // REQUIRES: all have arrived.
  Status CompareAll(const Announcement& announcement, const Buffers& buffers) {
    bool agree = announcement.request.refused == 0;
    const uint64_t fingerprint = RoundOf(slots_.rank()).arrival.fingerprint;
    for (size_t i = 0; compare_ && i < slots_.size(); ++i) {
      agree = agree && RoundOf(i).arrival.fingerprint == fingerprint;
    }
    if (!agree) return Leave(CompareRequests());
    if (buffers.send_bytes.empty()) return Status();
    const Status fits = CompareSlotBlocks();
    return fits.ok() ? fits : Leave(fits);
  }

  // All members read the same, so all say the same.
  Status CompareRequests() const {
    std::vector<Request> requests;
    for (size_t i = 0; i < slots_.size(); ++i) {
      requests.push_back(RoundOf(i).request);
    }
    const Status verdict = Compare(requests, slots_.world_ranks(), name_);
    if (!verdict.ok()) return verdict;
    return Error(Code::kInternal, "group \"{}\": fingerprints differ, requests do not", name_);
  }

  Status CompareSlotBlocks() const {
    const size_t n = slots_.size();
    std::vector<uint64_t> sent;
    std::vector<uint64_t> expected;
    for (size_t i = 0; i < n; ++i) {
      const Slot& slot = slots_.of(i);
      sent.insert(sent.end(), slot.send_bytes, slot.send_bytes + n);
      expected.insert(expected.end(), slot.recv_bytes, slot.recv_bytes + n);
    }
    return CompareBlocks(sent, expected, slots_.world_ranks()).WithContext(Where());
  }

  // No member leaves before all have read. The meeting is over.
  Status Leave(const Status& verdict) {
    sequence_ += kSettled;
    (void)Depart();
    return verdict;
  }

  std::string Where() const {
    return fmt::format("{}, call {}", NameOf(wanted_->kind, wanted_->node), called_);
  }

  // ---- led calls (run_ahead.h) ----

  Status ArriveLed(const EagerData& eager) {
    ++led_;
    led_bytes_ = eager.sole_bytes;
    called_ = sequence_;
    wanted_ = &slots_.my_round(met_).request;
    return leads() ? RunAhead(eager.bytes) : Follow();
  }

  bool leads() const { return streak_.sender() == slots_.rank(); }

  Status RunAhead(std::span<const std::byte> data) {
    const uint64_t call = sequence_;
    const uint64_t depth = SenderRing::Depth(data.size());
    if (led_ == 1) NPUMESH_RETURN_IF_ERROR(AwaitReadersOfLastMet());
    if (call > all_read_ + depth) {
      uint64_t disputed = 0;
      NPUMESH_RETURN_IF_ERROR(AwaitUnlessDisputed(
          call, &disputed, [&](size_t i) { return slots_.Departed(i, call - depth); },
          [this](size_t i) { return slots_.CpuOfFollower(i); }));
      if (disputed != 0) return Settle(disputed);
      all_read_ = slots_.FirstDeparture();
    }
    ring_.Write(call, data);
    return Status();
  }

  Status Follow() {
    const uint64_t call = sequence_;
    const size_t sender = streak_.sender();
    slots_.TellCpuOfFollower();
    uint64_t disputed = 0;
    NPUMESH_RETURN_IF_ERROR(AwaitUnlessDisputed(
        call + 1, &disputed, [&](size_t i) { return i != sender || ring_.Written(sender, call); },
        // The sender may be waiting for somebody who needs this core, wherever it runs itself.
        [](size_t) { return sched_getcpu(); }));
    return disputed == 0 ? Status() : Settle(disputed);
  }

  // A call below `end` that all may have led, but for which a member has arrived in person: the
  // earliest one that the sender sees; the sender's, to the others. 0: none.
  uint64_t Disputed(uint64_t end) const {
    if (!streak_.trusted()) return 0;
    const auto within = [&](uint64_t call) { return call > met_ && call < end ? call : 0; };
    if (!leads()) return within(slots_.LastArrival(streak_.sender()));
    uint64_t earliest = 0;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const uint64_t call = i == slots_.rank() ? 0 : within(slots_.LastArrival(i));
      if (call != 0 && (earliest == 0 || call < earliest)) earliest = call;
    }
    return earliest;
  }

  // Goes back to a disputed call, where all compare what they wanted then. The sender may learn of
  // an earlier one while it waits there.
  Status Settle(uint64_t call) {
    for (uint64_t decided = call; decided != 0;) {
      call = std::exchange(decided, 0);
      NPUMESH_RETURN_IF_ERROR(GoBackTo(call));
      const auto revised = [&] { return decided != 0 || (decided = AnotherThan(call)) != 0; };
      NPUMESH_RETURN_IF_ERROR(Await([&](size_t i) { return slots_.Arrived(i, call) || revised(); },
                                    [](size_t) { return -1; }));
    }
    sequence_ = call;
    return Leave(CompareRequests());
  }

  // The call that is disputed now, when it is not `call`; else 0.
  uint64_t AnotherThan(uint64_t call) const {
    constexpr uint64_t kNoEnd = ~uint64_t{0};
    const uint64_t now = Disputed(leads() ? call : kNoEnd);
    return now == call ? 0 : now;
  }

  Status GoBackTo(uint64_t call) {
    called_ = call;
    if (slots_.LastArrival(slots_.rank()) == call) return Status();  // wanted something else there
    NPUMESH_RETURN_IF_ERROR(AwaitReadersOfLastMet());
    slots_.TakeBackArrivals();
    Announce(streak_.announcement(), call, Buffers(), {});
    return Status();
  }

  // Led calls let this rank come to its next round while others read what stands there.
  Status AwaitReaders(uint64_t* disputed) const {
    if (!leads()) return AwaitReadersOfLastMet();
    return AwaitUnlessDisputed(
        sequence_, disputed, [this](size_t i) { return slots_.Departed(i, sequence_ - 1); },
        [this](size_t i) { return slots_.CpuOfFollower(i); });
  }

  Status AwaitReadersOfLastMet() const {
    return Await([this](size_t i) { return slots_.Departed(i, met_); },
                 [this](size_t i) { return slots_.CpuAtArrival(i, met_); });
  }

  World& world_;
  const std::string name_;
  WindowSlots slots_;
  SenderRing ring_;
  Waiter waiter_;
  uint64_t key_ = 0;
  uint64_t sequence_ = 1;  // of the call under way, or the next
  uint64_t called_ = 0;    // of the last call begun, also when Pass has counted it already
  const Request* wanted_ = nullptr;  // in it
  uint64_t met_ = 0;                 // the last call in which all met
  bool compare_ = true;
  bool closed_ = false;
  Streak streak_;
  uint64_t led_ = 0;            // calls since then
  uint64_t led_bytes_ = 0;      // of the data of each
  uint64_t all_read_ = 0;       // a sender's: cells of this call and earlier ones are free
  uint64_t published_[2] = {};  // serials of the requests that stand in the rounds
  std::unique_ptr<PlainGroup> plain_;
};

}  // namespace

Result<std::unique_ptr<Meeting>> OpenWindowMeeting(World& world, const std::string& name,
                                                   const std::vector<int>& world_ranks) {
  auto meeting = std::make_unique<WindowMeeting>(world, name, world_ranks);
  NPUMESH_RETURN_IF_ERROR(meeting->Meet());
  return std::unique_ptr<Meeting>(std::move(meeting));
}

}  // namespace npumesh
