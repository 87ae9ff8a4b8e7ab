#include "collectives/contract/hang_verdict.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "collectives/contract/logbook.h"
#include "collectives/contract/request.h"
#include "collectives/contract/wait_graph.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/loop_line.h"

namespace npumesh {
namespace {

// Ranks described one by one; more would hide what matters.
constexpr size_t kDescribed = 4;

std::string CallText(const Position& p) {
  if (p.kind == kGatheringKind) return fmt::format("an agreement of all ranks, number {}", p.call);
  const std::string_view kind = Name(KindOf(p));
  const std::string node = p.node.empty() ? "" : fmt::format(" \"{}\"", p.node);
  return fmt::format("{}{} (group {}, call {})", kind, node, p.group_name, p.call);
}

// Draws one scene; short-lived.
class Drawing {
 public:
  explicit Drawing(const WaitScene& scene) : scene_(scene), mine_(Mine()) {
    std::vector<RankStands> ranks;
    for (const auto& [rank, sight] : scene.sights) ranks.push_back(StandsOf(rank, sight));
    waits_ = WaitsAmong(ranks);
    for (const auto& [rank, sight] : scene.sights) AddMessageWaits(rank, sight);
    for (const auto& [rank, sight] : scene.sights) {
      if (rank != scene.rank && WaitsHere(rank, sight)) company_.insert(rank);
    }
  }

  std::vector<int> LikelyMissing() const {
    std::vector<int> stopped;
    std::vector<int> near;
    std::vector<int> far;
    std::vector<int> others;
    for (const int rank : scene_.missing) {
      if (rank == scene_.rank) continue;
      others.push_back(rank);
      const auto it = scene_.sights.find(rank);
      if (it == scene_.sights.end() || !it->second.visible) {
        far.push_back(rank);
        continue;
      }
      if (it->second.stopped()) stopped.push_back(rank);
      if (!InSameCall(it->second)) near.push_back(rank);
    }
    for (const auto& ranks : {near, stopped, far}) {
      if (!ranks.empty()) return ranks;
    }
    return others;
  }

  WaitNotice Notice(bool gave_up) const {
    WaitNotice notice;
    notice.gave_up = gave_up;
    notice.waited = scene_.waited;
    if (mine_) notice.group = mine_->group;
    if (mine_) notice.call = mine_->call;
    notice.ranks = Circle();
    if (!notice.ranks.empty()) {
      notice.reason = WaitReason::kCircle;
      std::sort(notice.ranks.begin(), notice.ranks.end());
      return notice;
    }
    for (const int rank : EndsOfChains()) {
      const WaitReason reason = ReasonOf(rank);
      if (reason > notice.reason) notice.ranks.clear();
      if (reason >= notice.reason) notice.ranks.push_back(rank);
      notice.reason = std::max(notice.reason, reason);
    }
    return notice;
  }

  const std::vector<Wait>& waits() const { return waits_; }

  // "is in allgather ...": what follows "which" or "rank 5".
  std::string Predicate(int rank) const {
    const auto it = scene_.sights.find(rank);
    if (it == scene_.sights.end() || !it->second.visible) {
      return "is on another node, where it cannot be seen from here";
    }
    const Sight& sight = it->second;
    if (!sight.lost.ok()) return fmt::format("is lost ({})", sight.lost.message());
    const std::string loops = LoopsText(rank);
    return Doing(rank, sight) + (loops.empty() ? "" : ", " + loops) + Stopped(sight);
  }

  std::string Text() {
    std::string text = fmt::format("rank {} has waited {} s in {} for {}", scene_.rank,
                                   scene_.waited.count(), Where(), MissingText());
    text += CircleText();
    if (const std::string loops = LoopsText(scene_.rank); !loops.empty()) {
      text += fmt::format("; rank {} waits {}", scene_.rank, loops);
    }
    text += FurtherText();
    const std::vector<int> company(company_.begin(), company_.end());
    if (!company.empty()) {
      text += fmt::format("; {} {} here too", RanksText(company),
                          company.size() == 1 ? "waits" : "wait");
    }
    return text;
  }

 private:
  // Where the waiting rank stands. Lines carry cut names, and groups within a group add to its
  // name, so the longest beginning counts.
  std::optional<Position> Mine() const {
    const auto it = scene_.sights.find(scene_.rank);
    if (it == scene_.sights.end()) return std::nullopt;
    const Position* found = nullptr;
    for (const Position& p : it->second.positions) {
      if (!p.active() || !scene_.group.starts_with(p.group_name)) continue;
      const auto rank = [](const Position& q) {
        return std::pair(q.group_name.size(), q.since_ns);
      };
      if (found == nullptr || rank(p) > rank(*found)) found = &p;
    }
    return found ? std::optional(*found) : std::nullopt;
  }

  // A broken group counts only while its rank does nothing else.
  static RankStands StandsOf(int rank, const Sight& sight) {
    RankStands stands{rank, {}};
    const Position* latest = Latest(sight);
    for (const Position& p : sight.positions) {
      if (p.phase == Phase::kClosed) continue;
      const bool past = p.phase == Phase::kBroken && &p != latest;
      stands.stands.push_back({p.group, p.call, past ? Phase::kOutside : p.phase});
    }
    return stands;
  }

  // A message whose other end has no line for it yet, which WaitsAmong cannot know.
  void AddMessageWaits(int rank, const Sight& sight) {
    for (const Position& p : sight.positions) {
      const std::optional<int> peer = PeerOf(p);
      if (!peer || !p.active()) continue;
      const auto it = scene_.sights.find(*peer);
      const bool seen = it != scene_.sights.end() && it->second.visible;
      const auto same = [&](const Position& other) { return other.group == p.group; };
      if (seen && std::any_of(it->second.positions.begin(), it->second.positions.end(), same)) {
        continue;
      }
      waits_.push_back({rank, *peer, p.group});
    }
  }

  bool WaitsHere(int rank, const Sight& sight) const {
    for (const Position& p : sight.positions) {
      const bool here = mine_ && p.group == mine_->group && p.call == mine_->call &&
                        (p.active() || p.phase == Phase::kBroken);
      if (here && !WaitedForBy(rank, p.group).empty()) return !Missing(rank);
    }
    return false;
  }

  bool InSameCall(const Sight& sight) const {
    return std::any_of(sight.positions.begin(), sight.positions.end(), [&](const Position& p) {
      return mine_ && p.group == mine_->group && p.call == mine_->call && p.active();
    });
  }

  bool Missing(int rank) const {
    return std::binary_search(scene_.missing.begin(), scene_.missing.end(), rank);
  }

  std::string Where() const {
    if (mine_ && mine_->phase != Phase::kCreating) return CallText(*mine_);
    return std::string(scene_.what);
  }

  std::string Since(const Position& p) const {
    return fmt::format("{:.1f} s", static_cast<double>(scene_.now_ns - p.since_ns) / 1e9);
  }

  const Position* InMyGroup(const Sight& sight) const {
    const Position* closed = nullptr;
    for (const Position& p : sight.positions) {
      if (!mine_ || p.group != mine_->group) continue;
      if (p.phase != Phase::kClosed) return &p;
      closed = &p;
    }
    return closed;
  }

  // The collective the rank is in now; the latest entered when there are several.
  static const Position* Busy(const Sight& sight) {
    const Position* busy = nullptr;
    for (const Position& p : sight.positions) {
      if (p.active() && (busy == nullptr || p.since_ns > busy->since_ns)) busy = &p;
    }
    return busy;
  }

  std::vector<int> WaitedForBy(int rank, uint64_t group) const {
    std::vector<int> ranks;
    for (const Wait& wait : waits_) {
      if (wait.rank == rank && wait.group == group) ranks.push_back(wait.for_rank);
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  std::string Doing(int rank, const Sight& sight) const {
    const Position* here = InMyGroup(sight);
    const std::string last =
        here && here->call != 0 ? fmt::format(" after call {}", here->call) : "";
    if (sight.leaving) return "has ended its work" + last;
    if (const Position* busy = Busy(sight)) return InCall(rank, *busy);
    if (here != nullptr && here->phase == Phase::kClosed) return "has left the group" + last;
    const Position* latest = Latest(sight);
    if (latest == nullptr) return "has not used any group yet";
    if (latest->phase == Phase::kBroken) return GivenUp(rank, *latest);
    if (here == nullptr && !Missing(rank)) {
      return fmt::format("is not in any collective since {}", Since(*latest));
    }
    if (here == nullptr) {
      return fmt::format("has not used this group yet and is not in any collective since {}",
                         Since(*latest));
    }
    return fmt::format("is not in any collective since {} ({})", Since(*latest),
                       here->call == 0
                           ? "it has not used this group yet"
                           : fmt::format("its last call of this group is {}", here->call));
  }

  static const Position* Latest(const Sight& sight) {
    const Position* latest = nullptr;
    for (const Position& p : sight.positions) {
      if (latest == nullptr || p.since_ns > latest->since_ns) latest = &p;
    }
    return latest;
  }

  std::string GivenUp(int rank, const Position& broken) const {
    const std::vector<int> others = WaitedForBy(rank, broken.group);
    return fmt::format("has given up {}{}", CallText(broken),
                       others.empty() ? "" : ", where it waited for " + RanksText(others));
  }

  std::string InCall(int rank, const Position& busy) const {
    if (busy.phase == Phase::kCreating) {
      return fmt::format("creates group {} since {}", busy.group_name, Since(busy));
    }
    const bool same = mine_ && busy.group == mine_->group && busy.call == mine_->call;
    const std::string call = same ? "this call" : CallText(busy);
    const std::vector<int> others = WaitedForBy(rank, busy.group);
    if (!others.empty()) return fmt::format("is in {} and waits for {}", call, RanksText(others));
    return fmt::format("is in {} since {} and waits for no rank", call, Since(busy));
  }

  // "in turn 512 of loop ..."; empty when the rank is in none.
  std::string LoopsText(int rank) const {
    const auto it = scene_.loops.find(rank);
    if (it == scene_.loops.end()) return "";
    std::string text;
    for (const Position& loop : it->second) {
      text += fmt::format("{}in turn {} of loop \"{}\", which began {} ago",
                          text.empty() ? "" : ", ", loop.call, loop.node, Since(loop));
    }
    return text;
  }

  static std::string Stopped(const Sight& sight) {
    return sight.stopped() ? fmt::format("; its process {} is stopped", sight.process) : "";
  }

  std::string MissingText() {
    std::string text;
    const size_t described = scene_.missing.size() <= kDescribed ? scene_.missing.size() : 1;
    for (size_t i = 0; i < described; ++i) {
      const int rank = scene_.missing[i];
      told_.insert(rank);
      text += fmt::format("{}rank {}, which {}", i == 0 ? "" : ", and for ", rank, Predicate(rank));
    }
    const std::vector<int> rest(scene_.missing.begin() + static_cast<int64_t>(described),
                                scene_.missing.end());
    told_.insert(rest.begin(), rest.end());
    return rest.empty() ? text : text + ", and for " + RanksText(rest);
  }

  // Waits of the waiting rank itself count as the waiter knows them, also while a group is made.
  std::vector<Wait> AllWaits() const {
    std::vector<Wait> waits = waits_;
    for (int rank : scene_.missing) waits.push_back({scene_.rank, rank, 0});
    return waits;
  }

  std::vector<int> Circle() const { return CircleFrom(scene_.rank, AllWaits()); }

  // The ranks that are waited for, directly or over others, and that do not wait; ascending.
  // Without one, those that are waited for directly.
  std::set<int> EndsOfChains() const {
    const std::vector<Wait> waits = AllWaits();
    std::set<int> seen = {scene_.rank};
    std::set<int> ends;
    std::deque<int> chain = {scene_.rank};
    for (; !chain.empty(); chain.pop_front()) {
      bool waiting = false;
      for (const Wait& wait : waits) {
        const bool stopped =
            chain.front() != scene_.rank && ReasonOf(chain.front()) == WaitReason::kStopped;
        if (wait.rank != chain.front() || stopped) continue;
        waiting = true;
        if (seen.insert(wait.for_rank).second) chain.push_back(wait.for_rank);
      }
      if (!waiting) ends.insert(chain.front());
    }
    return ends.empty() ? std::set<int>(scene_.missing.begin(), scene_.missing.end()) : ends;
  }

  WaitReason ReasonOf(int rank) const {
    const auto it = scene_.sights.find(rank);
    if (it == scene_.sights.end() || !it->second.visible) return WaitReason::kLate;
    if (it->second.stopped()) return WaitReason::kStopped;
    const Position* const here = InMyGroup(it->second);
    const bool left = here != nullptr && here->phase == Phase::kClosed;
    return it->second.leaving || left ? WaitReason::kEnded : WaitReason::kLate;
  }

  std::string CircleText() const {
    const std::vector<int> circle = Circle();
    if (circle.empty()) return "";
    std::string text;
    for (int rank : circle) text += fmt::format("{} -> ", rank);
    return fmt::format(": the ranks wait for each other in a circle ({}{})", text, circle.front());
  }

  // Ranks further down the chain of waits.
  std::string FurtherText() {
    std::string text;
    std::deque<int> chain(scene_.missing.begin(), scene_.missing.end());
    size_t described = 0;
    told_.insert(scene_.rank);
    told_.insert(company_.begin(), company_.end());
    for (; !chain.empty() && described < kDescribed; chain.pop_front()) {
      for (const Wait& wait : waits_) {
        if (wait.rank != chain.front() || !told_.insert(wait.for_rank).second) continue;
        if (described++ == kDescribed) break;
        text += fmt::format("; rank {} {}", wait.for_rank, Predicate(wait.for_rank));
        chain.push_back(wait.for_rank);
      }
    }
    return text;
  }

  const WaitScene& scene_;
  const std::optional<Position> mine_;
  std::vector<Wait> waits_;
  std::set<int> company_;  // others that wait in the same call of the same group
  std::set<int> told_;     // ranks the text has named
};

}  // namespace

WaitScene Survey(const World& world, std::string_view group, std::string_view what,
                 std::vector<int> missing, std::chrono::seconds waited) {
  WaitScene scene{world.rank(), group, what, std::move(missing), waited};
  std::sort(scene.missing.begin(), scene.missing.end());
  scene.now_ns = SteadyClock::now().time_since_epoch().count();
  for (int rank : world.local_ranks()) {
    Sight& sight = scene.sights[rank] = world.board().Look(rank);
    scene.loops[rank] = TakeLoops(sight.positions);
  }
  return scene;
}

std::vector<int> LikelyMissing(const WaitScene& scene) {
  return Drawing(scene).LikelyMissing();
}

std::vector<Wait> WaitsIn(const WaitScene& scene) {
  return Drawing(scene).waits();
}

std::string DoingText(const WaitScene& scene, int rank) {
  return Drawing(scene).Predicate(rank);
}

std::string Verdict(const WaitScene& scene) {
  return Drawing(scene).Text();
}

WaitNotice NoticeOf(const WaitScene& scene, bool gave_up) {
  WaitNotice notice = Drawing(scene).Notice(gave_up);
  notice.text = Verdict(scene);
  return notice;
}

}  // namespace npumesh
