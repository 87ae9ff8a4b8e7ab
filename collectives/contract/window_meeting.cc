#include "collectives/contract/window_meeting.h"

#include <algorithm>
#include <cstring>

#include "collectives/contract/slot.h"

namespace npumesh {
namespace {

class WindowMeeting final : public Meeting {
 public:
  WindowMeeting(World& world, std::string name, std::vector<int> world_ranks)
      : world_(world),
        name_(std::move(name)),
        world_ranks_(std::move(world_ranks)),
        waiter_(world, name_, world_ranks_) {
    const auto me = std::find(world_ranks_.begin(), world_ranks_.end(), world.rank());
    rank_ = static_cast<size_t>(me - world_ranks_.begin());
  }

  ~WindowMeeting() override {
    if (index_ < 0) return;
    DirectoryOf(world_.shared_area(world_.rank()))->keys[index_].store(0);
  }

  // Takes a slot, announces it and finds the others'.
  Status Meet() {
    key_ = MeetingKey(world_, name_, world_ranks_);
    NPUMESH_RETURN_IF_ERROR(ClaimSlot());
    slots_.assign(world_ranks_.size(), nullptr);
    bases_.assign(world_ranks_.size(), 0);
    const auto what = [this] { return fmt::format("creating group \"{}\"", name_); };
    NPUMESH_RETURN_IF_ERROR(waiter_.ForAll(what, world_.env().connect_timeout,
                                           [this](size_t i) { return FindSlot(i); }));
    mine_ = slots_[rank_];
    // Nobody uses a slot before everybody has found all of them.
    NPUMESH_RETURN_IF_ERROR(Arrive(Request(), Buffers()));
    return Depart();
  }

  Status Arrive(const Request& request, const Buffers& buffers) override {
    const uint64_t call = sequence_;
    mine_->request = request;
    mine_->request.sequence = call;
    const uint64_t fingerprint = Fingerprint(mine_->request);
    mine_->arrival.fingerprint = fingerprint;
    mine_->arrival.send_offset = buffers.send_offset;
    mine_->arrival.recv_offset = buffers.recv_offset;
    std::copy(buffers.send_bytes.begin(), buffers.send_bytes.end(), mine_->send_bytes);
    std::copy(buffers.send_at.begin(), buffers.send_at.end(), mine_->send_at);
    std::copy(buffers.recv_bytes.begin(), buffers.recv_bytes.end(), mine_->recv_bytes);
    mine_->arrival.sequence.store(bases_[rank_] + call, std::memory_order_release);
    NPUMESH_RETURN_IF_ERROR(waiter_.ForAll(
        [this] { return Where(); }, world_.env().exec_timeout,
        [this, call](size_t i) {
          return slots_[i]->arrival.sequence.load(std::memory_order_acquire) >= bases_[i] + call;
        }));
    bool agree = request.refused == 0;
    for (const Slot* slot : slots_) agree = agree && slot->arrival.fingerprint == fingerprint;
    if (!agree) return Leave(CompareRequests());
    if (buffers.send_bytes.empty()) return Status();
    const Status fits = CompareSlotBlocks();
    return fits.ok() ? fits : Leave(fits);
  }

  Status Depart() override {
    const uint64_t call = sequence_++;
    mine_->departure.sequence.store(bases_[rank_] + call, std::memory_order_release);
    return waiter_.ForAll([this] { return Where(); }, world_.env().exec_timeout,
                          [this, call](size_t i) {
                            return slots_[i]->departure.sequence.load(std::memory_order_acquire) >=
                                   bases_[i] + call;
                          });
  }

  bool in_window() const override { return true; }
  uint64_t send_offset(int peer) const override { return At(peer)->arrival.send_offset; }
  uint64_t recv_offset(int peer) const override { return At(peer)->arrival.recv_offset; }
  uint64_t block_at(int peer) const override { return At(peer)->send_at[rank_]; }
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
  const Slot* At(int peer) const { return slots_[static_cast<size_t>(peer)]; }

  std::string Where() const {
    const std::string_view node(mine_->request.node);
    return fmt::format("{} \"{}\", call {}", Name(mine_->request.kind), node, sequence_);
  }

  Status ClaimSlot() {
    std::byte* area = world_.shared_area(world_.rank());
    SlotDirectory* directory = DirectoryOf(area);
    for (int i = 0; i < SlotDirectory::kSlots; ++i) {
      uint64_t free = 0;
      if (directory->keys[i].load(std::memory_order_relaxed) != 0) continue;
      // `kClaimed` is no key that a peer looks for; the slot is made ready before it is announced.
      if (!directory->keys[i].compare_exchange_strong(free, kClaimed)) continue;
      Slot* slot = SlotOf(area, i);
      slot->base = slot->arrival.sequence.load(std::memory_order_relaxed) + 1;
      slot->departure.sequence.store(slot->base, std::memory_order_release);
      slot->arrival.sequence.store(slot->base, std::memory_order_release);
      directory->keys[i].store(key_, std::memory_order_release);
      index_ = i;
      return Status();
    }
    return Error(Code::kOutOfMemory,
                 "group \"{}\": this rank is in {} groups already; destroy some", name_,
                 SlotDirectory::kSlots);
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
    for (const Slot* slot : slots_) requests.push_back(slot->request);
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

  static constexpr uint64_t kClaimed = ~uint64_t{0};

  World& world_;
  const std::string name_;
  const std::vector<int> world_ranks_;
  Waiter waiter_;
  size_t rank_ = 0;
  uint64_t key_ = 0;
  int index_ = -1;
  Slot* mine_ = nullptr;
  std::vector<Slot*> slots_;
  std::vector<uint64_t> bases_;  // of each member's slot
  uint64_t sequence_ = 1;
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
