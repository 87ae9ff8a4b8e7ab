#include "collectives/contract/logbook.h"

#include <algorithm>

namespace npumesh {
namespace {

int64_t Nanoseconds(SteadyClock::time_point time) {
  return std::chrono::nanoseconds(time.time_since_epoch()).count();
}

// Equal on all members, who make groups of equal name and members in the same order. Not the number
// under which they meet: that one they count separately.
uint64_t GroupNumber(World& world, const std::string& name, const std::vector<int>& world_ranks) {
  uint64_t number = 0x6c6f67626f6f6b00u;
  const auto mix = [&number](uint64_t value) { number = (number ^ value) * 0x100000001b3u; };
  for (const char c : name) mix(static_cast<unsigned char>(c));
  mix(0x100);  // ends the name
  for (int rank : world_ranks) mix(static_cast<uint64_t>(rank) + 1);
  mix(world.NextOrdinal(number) + 1);
  return number == 0 ? 1 : number;
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
