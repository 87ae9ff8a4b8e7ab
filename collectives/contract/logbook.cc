#include "collectives/contract/logbook.h"

#include <time.h>

#include <algorithm>

#include "collectives/contract/waiter.h"

namespace npumesh {
namespace {

// Low bits of Position::kind.
constexpr int kKindBits = 8;

int64_t Now() {
  return std::chrono::nanoseconds(SteadyClock::now().time_since_epoch()).count();
}

// The same clock to a few milliseconds, at a quarter of its price: positions are read by people.
int64_t RoughlyNow() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Equal on all members, who make groups of equal name and members in the same order. Not the number
// under which they meet: that one they count separately.
uint64_t GroupNumber(World& world, const std::string& name, const std::vector<int>& world_ranks) {
  return NumberGroup(world, name, world_ranks, kLogbookPurpose);
}

}  // namespace

uint32_t PositionKind(CollectiveKind kind, int peer) {
  return static_cast<uint32_t>(kind) | static_cast<uint32_t>(peer + 1) << kKindBits;
}

CollectiveKind KindOf(const Position& position) {
  return static_cast<CollectiveKind>(position.kind & ((1u << kKindBits) - 1));
}

std::optional<int> PeerOf(const Position& position) {
  const uint32_t next = position.kind >> kKindBits;
  return next == 0 ? std::nullopt : std::optional(static_cast<int>(next) - 1);
}

Logbook::Logbook(World& world, const std::string& name, const std::vector<int>& world_ranks)
    : group_(GroupNumber(world, name, world_ranks)),
      position_(world.board().ClaimPosition()),
      record_(FlightRecord::Of(world)),
      span_(world, group_, name, world_ranks) {
  if (position_) position_->Open(group_, name, RoughlyNow());
  if (record_) {
    const auto me = std::find(world_ranks.begin(), world_ranks.end(), world.rank());
    record_->OpenGroup({group_, name, world_ranks, static_cast<int>(me - world_ranks.begin())});
  }
}

Logbook::~Logbook() {
  if (position_) position_->Close(RoughlyNow());
}

void Logbook::Creating() {
  constexpr uint64_t kCreationCall = 0;
  if (!record_) return;
  CallFacts facts;
  facts.call = kCreationCall;
  entry_ = record_->Begin(group_, facts, Now());
}

void Logbook::Created(const Status& met) {
  if (position_ && met.ok()) position_->Leave(RoughlyNow());
  if (entry_ && met.ok()) FlightRecord::Arrived(entry_, Now());
  if (entry_) FlightRecord::Done(entry_, met.code(), Now());
  entry_ = nullptr;
}

void Logbook::Enter(const CallFacts& facts, uint64_t serial) {
  if (position_ && serial != 0 && serial == entered_) {
    position_->EnterAgain(facts.call, RoughlyNow());
  } else if (position_) {
    position_->Enter(facts.call, PositionKind(facts.kind, facts.peer), facts.node, RoughlyNow());
    entered_ = serial;
  }
  if (record_) entry_ = record_->Begin(group_, facts, Now());
  span_.Enter(facts);
}

void Logbook::Arrived() {
  span_.Arrived();
  if (position_) position_->Move(Phase::kRunning);
  if (entry_) FlightRecord::Arrived(entry_, Now());
}

void Logbook::Departing() {
  if (position_) position_->Move(Phase::kDeparting);
  if (entry_) FlightRecord::Departing(entry_);
}

// A rank whose lines have run out may be anywhere.
std::vector<int> Logbook::Absent(const World& world, int peer, uint64_t call) const {
  const Sight sight = world.board().Look(peer);
  if (!sight.visible || sight.positions.size() != sight.lines ||
      sight.lines == static_cast<size_t>(Board::kPositionLines)) {
    return {};
  }
  const bool entered =
      std::any_of(sight.positions.begin(), sight.positions.end(), [&](const Position& position) {
        return position.group == group_ &&
               (position.call >= call || position.phase == Phase::kClosed);
      });
  return entered ? std::vector<int>() : std::vector<int>{peer};
}

void Logbook::Leave(const Status& status) {
  span_.Leave();
  if (position_) position_->Leave(RoughlyNow(), status.ok() ? Phase::kOutside : Phase::kBroken);
  if (entry_) FlightRecord::Done(entry_, status.code(), Now());
  entry_ = nullptr;
}

}  // namespace npumesh
