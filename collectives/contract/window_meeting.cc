#include "collectives/contract/window_meeting.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include "collectives/contract/line_exchange.h"
#include "collectives/contract/run_ahead.h"
#include "collectives/contract/shared_parts.h"
#include "collectives/contract/waiter.h"
#include "collectives/contract/window_slots.h"
#include "collectives/contract/window_wait.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

// In which the members meet for the first time; their calls follow, from 1.
constexpr uint64_t kMeetingCall = 0;
// Added to the number of a call by those who have read why it failed.
constexpr uint64_t kSettled = uint64_t{1} << 40;
// Longer than what one processor has stored can be hidden from another.
constexpr auto kUntilSeen = std::chrono::milliseconds(10);

class WindowMeeting final : public Meeting {
 public:
  WindowMeeting(World& world, std::string name, std::vector<int> world_ranks)
      : Meeting(world),
        world_(world),
        name_(std::move(name)),
        slots_(world, std::move(world_ranks)),
        waiter_(world, name_, slots_.world_ranks()),
        wait_(*this, slots_, waiter_),
        run_ahead_(slots_, wait_),
        parts_(slots_, wait_),
        lines_(slots_) {
    waiter_.set_watch([this] { return CheckRetreats(); });
  }

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
    const auto read = [&] {
      return sequence_ == kMeetingCall || slots_.AllDeparted(sequence_ - 1);
    };
    uint64_t disputed = 0;
    (void)WaitUntil(
        world_.wait_policy(),
        [&] { return read() || (disputed = run_ahead_.Disputed(sequence_)) != 0; },
        [&] { return deadline.expired() ? Error(Code::kTimeout, "slow") : GoneAny(); });
    const Status verdict = disputed != 0 ? Settle(disputed) : Status();
    slots_.Release(read() && !slots_.RetreatOf(slots_.rank()));
    return verdict;
  }

  // Takes a slot, announces it and finds the others'.
  Status Meet(const std::string& what, std::chrono::seconds limit) override {
    key_ = MeetingKey(world_, name_, slots_.world_ranks());
    NPUMESH_RETURN_IF_ERROR(slots_.Claim(key_, name_));
    sequence_ = kMeetingCall;
    wait_.set_what(what);
    wait_.set_call(kMeetingCall);
    const Status found =
        waiter_.ForAll([&what] { return what; }, limit, [this](size_t i) { return slots_.Find(i); },
                       [](size_t) { return -1; });
    if (!found.ok()) return GiveUp(kMeetingCall, found);
    // No member uses a slot before all members have found all slots.
    NPUMESH_RETURN_IF_ERROR(Arrive(Request(), Buffers(), EagerData()));
    NPUMESH_RETURN_IF_ERROR(Depart());
    wait_.set_what({});
    return Status();
  }

  Status Arrive(const Announcement& announcement, const Buffers& buffers,
                const EagerData& eager) override {
    uint64_t disputed = 0;
    if (run_ahead_.Takes(announcement, eager.leader())) {
      const Status came = run_ahead_.Arrive(sequence_, eager, &disputed);
      if (!came.ok()) return GiveUp(sequence_, came);
      return disputed == 0 ? Status() : Settle(disputed);
    }
    NPUMESH_RETURN_IF_ERROR(MeetAll(announcement, buffers, eager, &disputed));
    if (disputed != 0) return Settle(disputed);
    run_ahead_.Met(sequence_);
    if (!lines_.AllCame()) NPUMESH_RETURN_IF_ERROR(CompareAll(announcement, buffers));
    if (compare_) run_ahead_.Count(announcement, eager.leader());
    return Status();
  }

  Status Depart() override {
    const uint64_t call = sequence_;
    Pass();
    return Together(
        call, [&] { return wait_.ForDepartures(call); },
        [&](size_t i) { return slots_.Departed(i, call); });
  }

  SharedParts* parts() override {
    parts_.Begin(sequence_);
    return &parts_;
  }

  Status DepartShared() override {
    const uint64_t call = sequence_;
    Pass();
    return Together(
        call, [&] { return parts_.Await(); }, [&](size_t i) { return parts_.IsDone(i); });
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
    if (run_ahead_.active()) return run_ahead_.Data(peer, sequence_);
    return lines_.active() ? lines_.Data(static_cast<size_t>(peer)) : At(peer).eager;
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
  Status GoneAny() const { return world_.board().CheckPeers(slots_.world_ranks()); }

  // Announces the call and waits until all have arrived, or until an earlier call is disputed.
  Status MeetAll(const Announcement& announcement, const Buffers& buffers, const EagerData& eager,
                 uint64_t* disputed) {
    const uint64_t call = sequence_;
    if (run_ahead_.active()) {
      NPUMESH_RETURN_IF_ERROR(run_ahead_.AwaitReaders(call, disputed));
      if (*disputed != 0) return Status();
    }
    wait_.set_call(call);
    lines_.Begin(call, compare_ ? announcement.content_fingerprint : 0, eager);
    Announce(announcement, call, buffers, eager.bytes);
    return Together(
        call, [&] { return AwaitAll(call, disputed); },
        [&](size_t i) { return lines_.active() ? lines_.HasBegun(i) : slots_.Arrived(i, call); });
  }

  Status AwaitAll(uint64_t call, uint64_t* disputed) {
    const auto cpu = [this, call](size_t i) { return slots_.CpuAtArrival(i, call - 1); };
    NPUMESH_RETURN_IF_ERROR(run_ahead_.Await(
        call, disputed, [this, call](size_t i) { return HasCome(i, call); }, cpu));
    if (*disputed != 0 || !lines_.active() || lines_.AllCame()) return Status();
    // What the others want stands in their arrival lines, which come after the data.
    return run_ahead_.Await(
        call, disputed, [this, call](size_t i) { return slots_.Arrived(i, call); }, cpu);
  }

  // `wait`, which this member has announced itself for, until all members are where `there` says:
  // it ends well on all of them or on none.
  template <typename Wait, typename There>
  Status Together(uint64_t call, Wait wait, There there) {
    for (;;) {
      Status status = wait();
      if (status.ok()) {
        // What this member has announced is on its way before it looks (kUntilSeen).
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (!slots_.AnyRetreat()) return Status();
        status = AwaitDecisions(call);
        if (status.ok()) return Status();
      } else if (!MayRetreat(call, status, there)) {
        continue;
      }
      return GiveUp(call, status);
    }
  }

  // Whether no member can have seen all others in `call`, and none will.
  template <typename There>
  bool MayRetreat(uint64_t call, const Status& why, There there) {
    slots_.SetRetreat({call, false, why.code()});
    std::this_thread::sleep_for(kUntilSeen);
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (i == slots_.rank()) continue;
      const auto theirs = slots_.RetreatOf(i);
      if ((theirs && theirs->decided) || !there(i)) return true;
    }
    slots_.TakeBackRetreat();
    return false;
  }

  Status GiveUp(uint64_t call, const Status& why) {
    slots_.SetRetreat({call, true, why.code()});
    return why;
  }

  // REQUIRES: all have been seen in `call`. Waits until those who think of giving it up have
  // decided.
  [[gnu::cold]] Status AwaitDecisions(uint64_t call) {
    const auto decided = [&] {
      for (size_t i = 0; i < slots_.size(); ++i) {
        const auto theirs = slots_.RetreatOf(i);
        if (theirs && theirs->call <= call && !theirs->decided) return false;
      }
      return true;
    };
    NPUMESH_RETURN_IF_ERROR(WaitUntil(world_.wait_policy(), decided, [this] { return GoneAny(); }));
    return CheckRetreats(call);
  }

  // A member that has given up this call, or one before it, comes to none any more.
  Status CheckRetreats() const { return CheckRetreats(wait_.call()); }
  Status CheckRetreats(uint64_t call) const {
    for (size_t i = 0; i < slots_.size(); ++i) {
      const auto theirs = slots_.RetreatOf(i);
      if (i == slots_.rank() || !theirs || !theirs->decided || theirs->call > call) continue;
      return Error(
          theirs->code, "{} (group {}): rank {} has given up {}, because {}", wait_.Where(), name_,
          slots_.world_ranks()[i],
          theirs->call == kMeetingCall ? "its creation" : fmt::format("call {}", theirs->call),
          theirs->code == Code::kTimeout
              ? "it had waited as long as it may (HCCL_EXEC_TIMEOUT) or without hope"
              : "it failed; its message says why");
    }
    return Status();
  }

  bool HasCome(size_t i, uint64_t call) {
    if (lines_.active()) return lines_.HasCome(i);
    if (!slots_.Arrived(i, call)) return false;
    // The first eager bytes are under way while the caller still compares.
    __builtin_prefetch(slots_.round(i, call).eager);
    return true;
  }

  void Announce(const Announcement& announcement, uint64_t call, const Buffers& buffers,
                std::span<const std::byte> eager) {
    Round& mine = slots_.my_round(call);
    wait_.set_request(mine.request);
    if (compare_) Publish(announcement, call);
    if (lines_.active()) {
      lines_.Write(mine, eager);
    } else if (!eager.empty()) {
      std::memcpy(mine.eager, eager.data(), eager.size());
    }
    if (!buffers.send_bytes.empty()) PublishBlocks(buffers);
    // The line that others poll, unless they poll those of the data, comes last and in one go.
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
    return CompareBlocks(sent, expected, slots_.world_ranks()).WithContext(wait_.Where());
  }

  // No member leaves before all have read. The meeting is over.
  Status Leave(const Status& verdict) {
    sequence_ += kSettled;
    (void)Depart();
    return verdict;
  }

  // Goes back to a disputed call (run_ahead.h), where all compare what they wanted then.
  Status Settle(uint64_t disputed) {
    lines_.End();
    const auto announce = [this](const Announcement& announcement, uint64_t call) {
      Announce(announcement, call, Buffers(), {});
    };
    NPUMESH_ASSIGN_OR_RETURN(sequence_, run_ahead_.GoBack(disputed, announce));
    return Leave(CompareRequests());
  }

  World& world_;
  const std::string name_;
  WindowSlots slots_;
  Waiter waiter_;
  WindowWait wait_;
  RunAhead run_ahead_;
  SharedParts parts_;
  LineExchange lines_;
  uint64_t key_ = 0;
  uint64_t sequence_ = kMeetingCall + 1;  // of the call under way, or the next
  uint64_t published_[2] = {};            // serials of the requests that stand in the rounds
  bool compare_ = true;
  bool closed_ = false;
  std::unique_ptr<PlainGroup> plain_;
};

}  // namespace

std::unique_ptr<Meeting> MakeWindowMeeting(World& world, const std::string& name,
                                           const std::vector<int>& world_ranks) {
  return std::make_unique<WindowMeeting>(world, name, world_ranks);
}

}  // namespace npumesh
