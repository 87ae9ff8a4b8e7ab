#include "collectives/contract/window_meeting.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "collectives/contract/slot.h"

namespace npumesh {
namespace {

class WindowMeeting final : public Meeting {
 public:
  WindowMeeting(World& world, std::string name, std::vector<int> world_ranks)
      : Meeting(world),
        world_(world),
        name_(std::move(name)),
        world_ranks_(std::move(world_ranks)),
        waiter_(world, name_, world_ranks_) {
    const auto me = std::find(world_ranks_.begin(), world_ranks_.end(), world.rank());
    rank_ = static_cast<size_t>(me - world_ranks_.begin());
  }

  // A member that is slow may still be reading this slot. It is waited for a moment; if it does not
  // come, the slot is given up rather than given to another group under its eyes.
  ~WindowMeeting() override {
    if (index_ < 0) return;
    constexpr auto kPatience = std::chrono::seconds(1);
    const uint64_t last = sequence_ - 1;
    const auto deadline = Deadline::After(kPatience);
    const Status read = WaitUntil(
        world_.wait_policy(), [&] { return DepartedAll(last); },
        [&] { return deadline.expired() ? Error(Code::kTimeout, "slow") : GoneAny(); });
    DirectoryOf(world_.shared_area(world_.rank()))->keys[index_].store(read.ok() ? 0 : kClosedKey);
  }

  // Takes a slot, announces it and finds the others'.
  Status Meet() {
    key_ = MeetingKey(world_, name_, world_ranks_);
    NPUMESH_RETURN_IF_ERROR(ClaimSlot());
    slots_.assign(world_ranks_.size(), nullptr);
    bases_.assign(world_ranks_.size(), 0);
    const auto what = [this] { return fmt::format("creating group \"{}\"", name_); };
    NPUMESH_RETURN_IF_ERROR(waiter_.ForAll(
        what, world_.env().connect_timeout, [this](size_t i) { return FindSlot(i); },
        [](size_t) { return -1; }));
    // Nobody uses a slot before everybody has found all of them.
    NPUMESH_RETURN_IF_ERROR(Arrive(Request(), Buffers(), {}));
    return Depart();
  }

  Status Arrive(const Announcement& announcement, const Buffers& buffers,
                std::span<const std::byte> eager) override {
    const uint64_t call = called_ = sequence_;
    Round& mine = slots_[rank_]->rounds[call % 2];
    if (compare_) Publish(announcement, call);
    if (!eager.empty()) std::memcpy(mine.eager, eager.data(), eager.size());
    if (!buffers.send_bytes.empty()) PublishBlocks(buffers);
    // The line that others poll comes last and in one go.
    const uint64_t fingerprint = compare_ ? AtCall(announcement.content_fingerprint, call) : 0;
    mine.arrival.fingerprint = fingerprint;
    mine.arrival.send_offset = buffers.send_offset;
    mine.arrival.recv_offset = buffers.recv_offset;
    mine.arrival.cpu.store(sched_getcpu(), std::memory_order_relaxed);
    mine.arrival.sequence.store(bases_[rank_] + call, std::memory_order_release);
    NPUMESH_RETURN_IF_ERROR(waiter_.ForAll([this] { return Where(); }, exec_timeout(),
                                           [this, call](size_t i) { return Arrived(i, call); },
                                           [this, call](size_t i) { return CpuOf(i, call - 1); }));
    bool agree = announcement.request.refused == 0;
    for (size_t i = 0; compare_ && i < slots_.size(); ++i) {
      agree = agree && RoundOf(i).arrival.fingerprint == fingerprint;
    }
    if (!agree) return Leave(CompareRequests());
    if (buffers.send_bytes.empty()) return Status();
    const Status fits = CompareSlotBlocks();
    return fits.ok() ? fits : Leave(fits);
  }

  Status Depart() override {
    const uint64_t call = sequence_;
    Pass();
    return waiter_.ForAll([this] { return Where(); }, exec_timeout(),
                          [this, call](size_t i) { return Departed(i, call); },
                          [this, call](size_t i) { return CpuOf(i, call); });
  }

  void Pass() override {
    slots_[rank_]->departure.sequence.store(bases_[rank_] + sequence_, std::memory_order_release);
    ++sequence_;
  }

  void StopComparing() override { compare_ = false; }
  bool in_window() const override { return true; }
  uint64_t send_offset(int peer) const override { return At(peer).arrival.send_offset; }
  uint64_t recv_offset(int peer) const override { return At(peer).arrival.recv_offset; }
  const std::byte* eager(int peer) const override { return At(peer).eager; }
  uint64_t block_at(int peer) const override {
    return slots_[static_cast<size_t>(peer)]->send_at[rank_];
  }
  uint64_t sequence() const override { return sequence_; }

  Result<PlainGroup*> Plain() override {
    if (!plain_) {
      NPUMESH_ASSIGN_OR_RETURN(
          plain_, world_.transport().Group(world_ranks_, static_cast<uint32_t>(key_),
                                           Deadline::After(world_.env().connect_timeout)));
    }
    return plain_.get();
  }

 private:
  const Round& RoundOf(size_t i) const { return slots_[i]->rounds[sequence_ % 2]; }
  const Round& At(int peer) const { return RoundOf(static_cast<size_t>(peer)); }

  bool Arrived(size_t i, uint64_t call) const {
    const Round& round = RoundOf(i);
    if (round.arrival.sequence.load(std::memory_order_acquire) < bases_[i] + call) return false;
    // The first eager bytes are under way while the caller still compares.
    __builtin_prefetch(round.eager);
    return true;
  }

  // Where rank i was in call `call`, which it has announced.
  int CpuOf(size_t i, uint64_t call) const {
    return slots_[i]->rounds[call % 2].arrival.cpu.load(std::memory_order_relaxed);
  }
  bool Departed(size_t i, uint64_t call) const {
    return slots_[i]->departure.sequence.load(std::memory_order_acquire) >= bases_[i] + call;
  }
  bool DepartedAll(uint64_t call) const {
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i] != nullptr && !Departed(i, call)) return false;
    }
    return true;
  }
  Status GoneAny() const { return world_.CheckPeers(world_ranks_); }

  // Most calls repeat what stands in the round already. The refusal is long and seldom there.
  void Publish(const Announcement& announcement, uint64_t call) {
    Request& shared = slots_[rank_]->rounds[call % 2].request;
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
    Slot* mine = slots_[rank_];
    std::copy(buffers.send_bytes.begin(), buffers.send_bytes.end(), mine->send_bytes);
    std::copy(buffers.send_at.begin(), buffers.send_at.end(), mine->send_at);
    std::copy(buffers.recv_bytes.begin(), buffers.recv_bytes.end(), mine->recv_bytes);
  }

  std::string Where() const {
    // The call that was begun last, also when Pass has counted it already.
    const Request& last = slots_[rank_]->rounds[called_ % 2].request;
    return fmt::format("{} \"{}\", call {}", Name(last.kind), std::string_view(last.node), called_);
  }

  Status ClaimSlot() {
    std::byte* area = world_.shared_area(world_.rank());
    SlotDirectory* directory = DirectoryOf(area);
    for (int i = 0; i < SlotDirectory::kSlots; ++i) {
      uint64_t free = 0;
      if (directory->keys[i].load(std::memory_order_relaxed) != 0) continue;
      // kClosedKey is no key that a peer looks for; the slot is made ready before it is announced.
      if (!directory->keys[i].compare_exchange_strong(free, kClosedKey)) continue;
      Slot* slot = SlotOf(area, i);
      slot->base = Highest(*slot) + 1;
      slot->departure.sequence.store(slot->base, std::memory_order_release);
      for (Round& round : slot->rounds) {
        round.arrival.sequence.store(slot->base, std::memory_order_release);
      }
      directory->keys[i].store(key_, std::memory_order_release);
      index_ = i;
      return Status();
    }
    return Error(Code::kOutOfMemory,
                 "group \"{}\": this rank is in {} groups already; destroy some", name_,
                 SlotDirectory::kSlots);
  }

  static uint64_t Highest(const Slot& slot) {
    return std::max({slot.departure.sequence.load(std::memory_order_relaxed),
                     slot.rounds[0].arrival.sequence.load(std::memory_order_relaxed),
                     slot.rounds[1].arrival.sequence.load(std::memory_order_relaxed)});
  }

  bool FindSlot(size_t i) {
    if (slots_[i] != nullptr) return true;
    std::byte* area = world_.shared_area(world_ranks_[i]);
    const SlotDirectory* directory = DirectoryOf(area);
    for (int s = 0; s < SlotDirectory::kSlots; ++s) {
      if (directory->keys[s].load(std::memory_order_acquire) != key_) continue;
      slots_[i] = SlotOf(area, s);
      bases_[i] = slots_[i]->base;
      return true;
    }
    return false;
  }

  // Everybody reads the same, so everybody says the same.
  Status CompareRequests() const {
    std::vector<Request> requests;
    for (size_t i = 0; i < slots_.size(); ++i) {
      requests.push_back(RoundOf(i).request);
    }
    const Status verdict = Compare(requests, world_ranks_, name_);
    if (!verdict.ok()) return verdict;
    return Error(Code::kInternal, "group \"{}\": fingerprints differ, requests do not", name_);
  }

  Status CompareSlotBlocks() const {
    const size_t n = slots_.size();
    std::vector<uint64_t> sent;
    std::vector<uint64_t> expected;
    for (const Slot* slot : slots_) {
      sent.insert(sent.end(), slot->send_bytes, slot->send_bytes + n);
      expected.insert(expected.end(), slot->recv_bytes, slot->recv_bytes + n);
    }
    return CompareBlocks(sent, expected, world_ranks_).WithContext(Where());
  }

  // Nobody leaves before all have read.
  Status Leave(const Status& verdict) {
    (void)Depart();
    return verdict;
  }

  World& world_;
  const std::string name_;
  const std::vector<int> world_ranks_;
  Waiter waiter_;
  size_t rank_ = 0;
  uint64_t key_ = 0;
  int index_ = -1;
  std::vector<Slot*> slots_;
  std::vector<uint64_t> bases_;  // of each member's slot
  uint64_t sequence_ = 1;        // of the call under way, or the next
  uint64_t called_ = 0;          // of the last call begun
  bool compare_ = true;
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
