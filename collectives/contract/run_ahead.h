// RunAhead: calls in which a sole sender does not wait for those who receive from it.
//
// In a small broadcast only the root has something to say. When it waits for the others all the
// same, it does so for the contract alone, and ranks that share cores pay a switch of core for each
// call. So once a group has made the same call Streak::kTrusted times in a row, the next equal ones
// *run ahead*: the sender leaves its data in a ring of cells (sender_ring.h) and goes on, as many
// calls ahead as there are cells; the others, its *followers*, wait for their cell only.
//
// A member is in one of four states:
//
//   counting   the streak is shorter than kTrusted; all meet in each call
//   trusted    all met in the last call, and the next one runs ahead if it repeats that one
//   ahead      some calls ran ahead since all met
//   disputed   a member wanted another call where others ran ahead
//
//   counting --kTrusted equal calls--> trusted --equal call--> ahead --equal call--> ahead
//   trusted, ahead --all make another call--> counting
//   trusted, ahead --some make another call--> disputed --all compare--> the group fails
//
// The contract is still checked in full, only later. Each member knows which calls may run ahead,
// because it has made the ones before. A member that wants another call announces it in person, as
// always: that is the dispute. Every member that sees it, at the latest in its next wait, goes back
// to that call, announces what it wanted there, and all compare. So all ranks get the same text;
// those that have already finished the disputed call get it from one of their next calls.
//
// The sender decides to which call all go back, because it alone watches all ranks: the earliest
// one that a rank has announced. The followers go where the sender is.
//
// Thread-safety: one thread of a rank uses an object at a time.
#ifndef NPUMESH_COLLECTIVES_CONTRACT_RUN_AHEAD_H_
#define NPUMESH_COLLECTIVES_CONTRACT_RUN_AHEAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "collectives/contract/meeting.h"
#include "collectives/contract/sender_ring.h"
#include "collectives/contract/streak.h"
#include "collectives/contract/window_slots.h"
#include "collectives/contract/window_wait.h"

namespace npumesh {

class RunAhead {
 public:
  // Both must outlive the object.
  RunAhead(WindowSlots& slots, WindowWait& wait) : slots_(slots), ring_(slots), wait_(wait) {}

  // ---- calls in which all meet ----

  // All have arrived for `call`.
  void Met(uint64_t call) {
    met_ = call;
    ahead_ = 0;
  }
  // They have also agreed on it; `sole_sender` as in EagerData.
  void Count(const Announcement& announcement, int sole_sender) {
    streak_.Count(announcement, sole_sender);
  }

  // ---- calls that run ahead ----

  // The next call runs ahead.
  bool Takes(const Announcement& announcement, int sole_sender) const {
    return streak_.trusted() && streak_.Continues(announcement, sole_sender);
  }
  // Makes a call that runs ahead: the sender writes its data, a follower waits for them. A dispute
  // ends it, and is `*disputed` then.
  Status Arrive(uint64_t call, const EagerData& eager, uint64_t* disputed);

  // The last call ran ahead.
  bool active() const { return ahead_ != 0; }
  // REQUIRES: active. The data of `call`, which this rank has made and not left.
  const std::byte* Data(int sender, uint64_t call) const {
    return ring_.Data(static_cast<size_t>(sender), call, bytes_);
  }

  // REQUIRES: active. Before this rank announces `call` in person: waits until no rank reads what
  // stands in its rounds, where the announcement goes. `*disputed` as above.
  Status AwaitReaders(uint64_t call, uint64_t* disputed) const;

  // ---- disputes ----

  // A call below `end` that others ran ahead with and for which a rank has arrived in person; to
  // the sender the earliest one it sees, to a follower the one that the sender is in. 0: none.
  uint64_t Disputed(uint64_t end) const { return streak_.trusted() ? FindDispute(end) : 0; }

  // Waits as WindowWait::ForAll. Ends as well with a dispute about a call below `end`, which is
  // `*disputed` then.
  template <typename Here, typename Cpu>
  Status Await(uint64_t end, uint64_t* disputed, Here here, Cpu cpu) const {
    const auto ends = [&] { return *disputed != 0 || (*disputed = Disputed(end)) != 0; };
    return wait_.ForAll([&](size_t i) { return here(i) || ends(); }, cpu);
  }

  // Goes back to a disputed call and waits there for all. Returns its number, which is another than
  // `disputed` when the sender learns of an earlier dispute meanwhile. `announce` arrives for a
  // call.
  using AnnounceFn = std::function<void(const Announcement&, uint64_t call)>;
  Result<uint64_t> GoBack(uint64_t disputed, const AnnounceFn& announce);

 private:
  bool is_sender() const { return streak_.sender() == slots_.rank(); }

  Status Send(uint64_t call, std::span<const std::byte> data, uint64_t* disputed);
  Status Follow(uint64_t call, uint64_t* disputed);

  // REQUIRES: trusted.
  uint64_t FindDispute(uint64_t end) const;
  // The call that is disputed now, when it is not `call`; else 0.
  uint64_t DisputedInsteadOf(uint64_t call) const;
  Status ArriveFor(uint64_t call, const AnnounceFn& announce);

  WindowSlots& slots_;
  SenderRing ring_;
  WindowWait& wait_;
  Streak streak_;
  uint64_t met_ = 0;       // the last call in which all met
  uint64_t ahead_ = 0;     // calls that ran ahead since
  uint64_t bytes_ = 0;     // of the data of each
  uint64_t all_read_ = 0;  // a sender's: no rank reads cells of this call or an earlier one
};

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_CONTRACT_RUN_AHEAD_H_
