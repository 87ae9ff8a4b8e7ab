#include "collectives/contract/run_ahead.h"

#include <utility>

namespace npumesh {

Status RunAhead::Arrive(uint64_t call, const EagerData& eager, uint64_t* disputed) {
  ++ahead_;
  bytes_ = eager.sole_bytes;
  wait_.set_call(call);
  wait_.set_request(slots_.my_round(met_).request);
  return is_sender() ? Send(call, eager.bytes, disputed) : Follow(call, disputed);
}

Status RunAhead::Send(uint64_t call, std::span<const std::byte> data, uint64_t* disputed) {
  const uint64_t depth = SenderRing::Depth(data.size());
  if (ahead_ == 1) NPUMESH_RETURN_IF_ERROR(wait_.ForDepartures(met_));
  if (call > all_read_ + depth) {
    NPUMESH_RETURN_IF_ERROR(Await(
        call, disputed, [&](size_t i) { return slots_.Departed(i, call - depth); },
        [this](size_t i) { return slots_.CpuOfFollower(i); }));
    if (*disputed != 0) return Status();
    all_read_ = slots_.FirstDeparture();
  }
  ring_.Write(call, data);
  return Status();
}

Status RunAhead::Follow(uint64_t call, uint64_t* disputed) {
  const size_t sender = streak_.sender();
  slots_.TellCpuOfFollower();
  return Await(
      call + 1, disputed, [&](size_t i) { return i != sender || ring_.Written(sender, call); },
      // The sender may be waiting for a rank that needs this core, wherever it runs itself.
      [](size_t) { return sched_getcpu(); });
}

// Two rounds are enough for members that meet, because no rank announces a call before all have
// arrived for the one before. After calls that ran ahead, others may still read the round that
// comes next: a follower's, which they saw when all met; the sender's, where its data may lie, too.
Status RunAhead::AwaitReaders(uint64_t call, uint64_t* disputed) const {
  if (!is_sender()) return wait_.ForDepartures(met_);
  return Await(
      call, disputed, [this, call](size_t i) { return slots_.Departed(i, call - 1); },
      [this](size_t i) { return slots_.CpuOfFollower(i); });
}

uint64_t RunAhead::FindDispute(uint64_t end) const {
  const auto within = [&](uint64_t call) { return call > met_ && call < end ? call : 0; };
  if (!is_sender()) return within(slots_.LastArrival(streak_.sender()));
  uint64_t earliest = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    const uint64_t call = i == slots_.rank() ? 0 : within(slots_.LastArrival(i));
    if (call != 0 && (earliest == 0 || call < earliest)) earliest = call;
  }
  return earliest;
}

Result<uint64_t> RunAhead::GoBack(uint64_t disputed, const AnnounceFn& announce) {
  uint64_t call = disputed;
  for (uint64_t decided = call; decided != 0;) {
    call = std::exchange(decided, 0);
    NPUMESH_RETURN_IF_ERROR(ArriveFor(call, announce));
    const auto revised = [&] { return decided != 0 || (decided = DisputedInsteadOf(call)) != 0; };
    NPUMESH_RETURN_IF_ERROR(wait_.ForAll(
        [&](size_t i) { return slots_.Arrived(i, call) || revised(); }, [](size_t) { return -1; }));
  }
  return call;
}

uint64_t RunAhead::DisputedInsteadOf(uint64_t call) const {
  constexpr uint64_t kNoEnd = ~uint64_t{0};
  const uint64_t now = Disputed(is_sender() ? call : kNoEnd);
  return now == call ? 0 : now;
}

Status RunAhead::ArriveFor(uint64_t call, const AnnounceFn& announce) {
  wait_.set_call(call);
  // This rank disputes the call itself: what it wanted stands there already.
  if (slots_.LastArrival(slots_.rank()) == call) return Status();
  NPUMESH_RETURN_IF_ERROR(wait_.ForDepartures(met_));
  slots_.TakeBackArrivals();
  announce(streak_.announcement(), call);
  return Status();
}

}  // namespace npumesh
