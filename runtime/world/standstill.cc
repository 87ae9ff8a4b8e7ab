#include "runtime/world/standstill.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/base/process/thread_census.h"

namespace npumesh {
namespace {

// A look of the last of these rounds began after the first of them was over.
constexpr uint64_t kRounds = 3;
constexpr auto kBetweenLooks = std::chrono::milliseconds(200);
// For others to find out the same before this rank leaves and is missed by them.
constexpr auto kForOthers = std::chrono::seconds(2);
// Looks after which a reading that led to nothing is taken anew.
constexpr int kLooksOfReading = 12;

bool Misses(const std::set<int>& wait, const std::set<int>& ranks) {
  return std::any_of(wait.begin(), wait.end(), [&](int rank) { return ranks.contains(rank); });
}

// ---- the page of a rank ----

void Store(std::atomic<uint64_t>& word, uint64_t value) {
  word.store(value, std::memory_order_release);
}
uint64_t Load(const std::atomic<uint64_t>& word) {
  return word.load(std::memory_order_acquire);
}

// Locals of a node are numbered by their place in `ranks`.
std::set<int> RanksOf(const StandingPage::Ranks& bits, const std::vector<int>& ranks) {
  std::set<int> found;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if ((Load(bits[i / 64]) >> (i % 64) & 1) != 0) found.insert(ranks[i]);
  }
  return found;
}

void StoreRanks(const std::set<int>& wait, const std::vector<int>& ranks,
                StandingPage::Ranks& bits) {
  for (size_t word = 0; word < bits.size(); ++word) {
    uint64_t value = 0;
    for (size_t i = word * 64; i < std::min(ranks.size(), (word + 1) * 64); ++i) {
      if (wait.contains(ranks[i])) value |= uint64_t{1} << (i % 64);
    }
    Store(bits[word], value);
  }
}

// Nothing for a page that is written all the time.
std::optional<RankStanding> ReadPage(const StandingPage& page, const std::vector<int>& ranks) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t writes = Load(page.writes);
    if (writes % 2 != 0) continue;
    RankStanding standing;
    standing.version = Load(page.version);
    standing.rounds = Load(page.rounds);
    standing.still = Load(page.still) != 0;
    const uint64_t waits = std::min<uint64_t>(Load(page.waits), StandingPage::kWaits);
    for (uint64_t w = 0; w < waits; ++w) standing.waits.push_back(RanksOf(page.missing[w], ranks));
    if (Load(page.writes) == writes) return standing;
  }
  return std::nullopt;
}

Standings ReadAll(const World& world) {
  Standings all;
  const std::vector<int>& ranks = world.local_ranks();
  for (const int rank : ranks) {
    const Sight sight = world.board().Look(rank);
    RankStanding standing =
        ReadPage(*world.board().standing_page(rank), ranks).value_or(RankStanding());
    standing.process = sight.process;
    standing.ended = sight.leaving;
    all.emplace(rank, std::move(standing));
  }
  return all;
}

}  // namespace

Standings Steady(const Standings& before, Standings now) {
  std::set<int> moved;  // processes
  for (const auto& [rank, standing] : now) {
    const auto it = before.find(rank);
    if (it == before.end() || it->second.version != standing.version) {
      moved.insert(standing.process);
    }
  }
  for (auto& [rank, standing] : now) {
    const auto it = before.find(rank);
    standing.still = standing.still && !moved.contains(standing.process) &&
                     standing.rounds >= it->second.rounds + kRounds;
  }
  return now;
}

std::set<int> NeverMoving(const Standings& standings) {
  std::set<int> never;
  for (const auto& [rank, standing] : standings) {
    if (standing.ended || (standing.still && !standing.waits.empty())) never.insert(rank);
  }
  for (size_t before = 0; before != never.size();) {
    before = never.size();
    std::erase_if(never, [&](int rank) {
      const RankStanding& standing = standings.at(rank);
      return !standing.ended &&
             !std::all_of(standing.waits.begin(), standing.waits.end(),
                          [&](const std::set<int>& wait) { return Misses(wait, never); });
    });
  }
  return never;
}

// What the threads of this rank wait for, and its page.
//
// Thread-safety: all members may be called from any thread.
class LongWait::Ledger final : public WorldCompanion {
 public:
  explicit Ledger(World& world)
      : ranks_(world.local_ranks()), page_(*world.board().standing_page(world.rank())) {}

  // Null where the node has more ranks than a page can name.
  static Ledger* Of(World& world) {
    if (world.local_ranks().size() > StandingPage::kRanks) return nullptr;
    return static_cast<Ledger*>(world.Keep(
        "standstill",
        [&world]() -> std::unique_ptr<WorldCompanion> { return std::make_unique<Ledger>(world); }));
  }

  // Of the calling thread; its number.
  uint64_t Enter() {
    const std::lock_guard lock(mutex_);
    const uint64_t number = next_++;
    entries_[number].thread = std::make_unique<StillThread>();
    Moved();
    return number;
  }

  // To be called by the thread that has entered.
  void Leave(uint64_t number) {
    const std::lock_guard lock(mutex_);
    entries_.erase(number);
    Moved();
  }

  void Look(uint64_t number, const std::set<int>& missing) {
    const std::lock_guard lock(mutex_);
    Entry& mine = entries_[number];
    mine.missing = missing;
    mine.looked = true;
    const auto looked = [](const auto& entry) { return entry.second.looked; };
    if (!std::all_of(entries_.begin(), entries_.end(), looked)) return;
    for (auto& [other, entry] : entries_) entry.looked = false;
    ++rounds_;
    Publish(entries_.size() <= StandingPage::kWaits && StandsStill());
  }

 private:
  struct Entry {
    std::unique_ptr<StillThread> thread;
    std::set<int> missing;
    bool looked = false;
  };

  void Moved() {
    ++version_;
    Publish(false);
  }

  void Publish(bool still) {
    const uint64_t writes = page_.writes.load(std::memory_order_relaxed);
    page_.writes.store(writes + 1, std::memory_order_relaxed);
    Store(page_.version, version_);
    Store(page_.rounds, rounds_);
    Store(page_.still, still ? 1 : 0);
    uint64_t waits = 0;
    for (const auto& [number, entry] : entries_) {
      if (waits == StandingPage::kWaits) break;
      StoreRanks(entry.missing, ranks_, page_.missing[waits++]);
    }
    Store(page_.waits, waits);
    page_.writes.store(writes + 2, std::memory_order_release);
  }

  const std::vector<int>& ranks_;
  std::mutex mutex_;
  StandingPage& page_;
  std::map<uint64_t, Entry> entries_;
  uint64_t next_ = 0;
  uint64_t version_ = 0;
  uint64_t rounds_ = 0;
};

void LongWait::Leave() {
  std::exchange(ledger_, nullptr)->Leave(number_);
}

bool LongWait::NeverEnds(const std::vector<int>& missing) {
  const auto now = SteadyClock::now();
  if (now < next_look_) return false;
  next_look_ = now + kBetweenLooks;
  if (ledger_ == nullptr) {
    ledger_ = Ledger::Of(world_);
    if (ledger_ == nullptr) return false;
    number_ = ledger_->Enter();
  }
  const std::set<int> ranks(missing.begin(), missing.end());
  ledger_->Look(number_, ranks);
  const bool certain = certain_at_ != SteadyClock::time_point();
  if (!certain && Advance(ranks, ReadAll(world_))) certain_at_ = now;
  return certain && now - certain_at_ >= kForOthers;
}

bool LongWait::Advance(const std::set<int>& missing, const Standings& now) {
  const auto ended = [&](int rank) {
    const auto it = first_->find(rank);
    return it != first_->end() && it->second.ended;
  };
  if (first_ != nullptr && std::any_of(missing.begin(), missing.end(), ended)) return true;
  if (first_ == nullptr || ++looks_ > kLooksOfReading) {
    first_ = std::make_unique<Standings>(now);
    second_ = nullptr;
    looks_ = 0;
    return false;
  }
  const Standings steady = Steady(second_ ? *second_ : *first_, now);
  if (!Misses(missing, NeverMoving(steady))) return false;
  if (second_ != nullptr) return true;
  second_ = std::make_unique<Standings>(steady);
  return false;
}

}  // namespace npumesh
