#include "collectives/contract/logbook.h"

#include <algorithm>

#include "collectives/contract/waiter.h"

namespace npumesh {
namespace {

int64_t Nanoseconds(SteadyClock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

// Equal on all members, who make groups of equal name and members in the same order. Not the number
// under which they meet: that one they count separately.
uint64_t GroupNumber(World& world, const std::string& name, const std::vector<int>& world_ranks) {
  constexpr uint64_t kLogbookPurpose = 0x6c6f67626f6f6b00u;
  return NumberGroup(world, name, world_ranks, kLogbookPurpose);
}

}  // namespace

Logbook::Logbook(World& world, const std::string& name, const std::vector<int>& world_ranks)
    : group_(GroupNumber(world, name, world_ranks)),
      position_(world.ClaimPosition()),
      record_(FlightRecord::Of(world)) {
  if (position_) position_->Open(group_, name, Nanoseconds(SteadyClock::now()));
  if (record_) {
    const auto me = std::find(world_ranks.begin(), world_ranks.end(), world.rank());
    record_->OpenGroup({group_, name, world_ranks, static_cast<int>(me - world_ranks.begin())});
  }
}

Logbook::~Logbook() {
  if (position_) position_->Close(Nanoseconds(SteadyClock::now()));
}

void Logbook::Created() {
  if (position_) position_->Leave(Nanoseconds(SteadyClock::now()));
}

void Logbook::Enter(const CallFacts& facts, SteadyClock::time_point now) {
  const int64_t now_ns = Nanoseconds(now);
  if (position_) {
    position_->Enter(facts.call, static_cast<uint32_t>(facts.kind), facts.node, now_ns);
  }
  if (record_) entry_ = record_->Begin(group_, facts, now_ns);
}

void Logbook::Arrived() {
  if (position_) position_->Move(Phase::kRunning);
  if (entry_) FlightRecord::Arrived(entry_, Nanoseconds(SteadyClock::now()));
}

void Logbook::Departing() {
  if (position_) position_->Move(Phase::kDeparting);
  if (entry_) FlightRecord::Departing(entry_);
}

void Logbook::Leave(const Status& status, SteadyClock::time_point now) {
  const int64_t now_ns = Nanoseconds(now);
  if (position_) position_->Leave(now_ns, status.ok() ? Phase::kOutside : Phase::kBroken);
  if (entry_) FlightRecord::Done(entry_, status.code(), now_ns);
  entry_ = nullptr;
}

}  // namespace npumesh
