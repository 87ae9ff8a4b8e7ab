#include "runtime/world/gathering.h"

#include <algorithm>
#include <set>

#include "runtime/base/log.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/loop_line.h"
#include "runtime/world/step_line.h"
#include "runtime/world/wait_notices.h"

namespace npumesh {
namespace {

int64_t Now() {
  return std::chrono::nanoseconds(SteadyClock::now().time_since_epoch()).count();
}

// Gatherings are told apart from groups, whose numbers are hashes of 64 bits.
uint64_t NumberOf(uint32_t key) {
  return uint64_t{0x676174686572} << 16 ^ key;
}

// What a rank that others wait for is doing.
std::string Doing(int rank, const Sight& sight) {
  if (sight.stopped())
    return fmt::format("rank {}, whose process {} is stopped", rank, sight.process);
  if (sight.leaving) return fmt::format("rank {}, which has ended its work", rank);
  const Position* latest = nullptr;
  for (const Position& p : sight.positions) {
    if (!p.active() || p.kind == kStepKind) continue;
    if (latest == nullptr || p.since_ns > latest->since_ns) latest = &p;
  }
  if (latest == nullptr || latest->kind == kGatheringKind) {
    return fmt::format("rank {}, which is not there yet", rank);
  }
  if (latest->kind == kLoopKind) {
    return fmt::format("rank {}, which is in turn {} of loop \"{}\"", rank, latest->call,
                       latest->node);
  }
  return fmt::format("rank {}, which is in call {} \"{}\" of group {}", rank, latest->call,
                     latest->node, latest->group_name);
}

}  // namespace

// One wait of a gathering.
class Gathering::Wait {
 public:
  explicit Wait(const Gathering& gathering)
      : gathering_(gathering),
        world_(gathering.world_),
        limit_(world_.env().exec_timeout),
        standstill_(world_),
        notices_(world_.env().soft_timeout) {}

  Deadline limit() const {
    Deadline deadline = limit_ == kNoTimeout ? Deadline::Never() : Deadline::After(limit_);
    deadline.meanwhile = &meanwhile_;
    return deadline;
  }

 private:
  Status Meanwhile() {
    const auto waited = SteadyClock::now() - since_;
    if (waited < std::chrono::seconds(1)) return Status();
    const std::vector<int> absent = gathering_.Absent();
    const bool fails = world_.env().deadlock == Env::Deadlock::kFail && !absent.empty();
    if (fails && standstill_.NeverEnds(absent)) {
      Note(absent, waited, true);
      return Error(Code::kTimeout,
                   "{}; this can never end, so the wait is given up (NPUMESH_DEADLOCK=wait goes on "
                   "waiting)",
                   Text(absent, waited));
    }
    if (!notices_.Due(waited)) return Status();
    Note(absent, waited, false);
    // Written whatever the level is: who looks at a job that hangs must see it.
    WriteLog(LogLevel::kWarning, {__FILE__, __LINE__},
             fmt::format("{}; {}", Text(absent, waited), GivesUpText(limit_, waited)));
    return Status();
  }

  // Ranks of this node that are absent, or whose process is stopped.
  std::set<int> Named(const std::vector<int>& absent) const {
    std::set<int> named(absent.begin(), absent.end());
    for (const int rank : world_.local_ranks()) {
      if (rank != world_.rank() && world_.board().Look(rank).stopped()) named.insert(rank);
    }
    return named;
  }

  void Note(const std::vector<int>& absent, std::chrono::nanoseconds waited, bool gave_up) const {
    WaitNotice notice;
    notice.gave_up = gave_up;
    for (const int rank : Named(absent)) {
      const Sight sight = world_.board().Look(rank);
      const WaitReason reason = sight.stopped() ? WaitReason::kStopped
                                : sight.leaving ? WaitReason::kEnded
                                                : WaitReason::kLate;
      if (reason > notice.reason) notice.ranks.clear();
      if (reason >= notice.reason) notice.ranks.push_back(rank);
      notice.reason = std::max(notice.reason, reason);
    }
    notice.waited = std::chrono::floor<std::chrono::seconds>(waited);
    notice.text = Text(absent, waited);
    WaitNotices::Of(world_).Tell(notice);
  }

  std::string Text(const std::vector<int>& absent, std::chrono::nanoseconds waited) const {
    const std::set<int> named = Named(absent);
    std::string text =
        fmt::format("rank {} has waited {} s for all ranks to agree to go on", world_.rank(),
                    std::chrono::floor<std::chrono::seconds>(waited).count());
    constexpr size_t kDescribed = 4;
    size_t described = 0;
    for (const int rank : named) {
      if (described++ == kDescribed)
        return text + fmt::format(", and {} more", named.size() - kDescribed);
      text += fmt::format("{} {}", described == 1 ? ": for" : ", and for",
                          Doing(rank, world_.board().Look(rank)));
    }
    return named.empty() ? text + ": for a rank of another node" : text;
  }

  const Gathering& gathering_;
  World& world_;
  const std::chrono::seconds limit_;
  const SteadyClock::time_point since_ = SteadyClock::now();
  LongWait standstill_;
  NoticeTimes notices_;
  const std::function<Status()> meanwhile_ = [this] { return Meanwhile(); };
};

Gathering::Gathering(World& world, uint64_t number)
    : world_(world),
      number_(number),
      position_(world.size() > 1 ? world.board().ClaimPosition() : nullptr) {
  if (position_) position_->Open(number_, "of all ranks", Now());
}

Gathering::~Gathering() {
  if (position_) position_->Close(Now());
}

Result<std::unique_ptr<Gathering>> Gathering::Create(World& world, uint32_t key) {
  // Ranks that gather again with the same key count alike.
  const uint32_t again =
      key + 0x9e3779b9u * static_cast<uint32_t>(world.size() == 1 ? 0 : world.NextOrdinal(key));
  std::unique_ptr<Gathering> gathering(new Gathering(world, NumberOf(again)));
  if (world.size() == 1) return gathering;
  const std::vector<int> everyone = AllRanks(world.size());
  NPUMESH_RETURN_IF_ERROR(gathering->Gather([&](Deadline limit) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(gathering->group_, world.transport().Group(everyone, again, limit));
    return Status();
  }));
  return gathering;
}

Status Gathering::Gather(const std::function<Status(Deadline)>& gather) {
  ++gatherings_;
  if (position_) position_->Enter(gatherings_, kGatheringKind, "", Now());
  const Wait wait(*this);
  const Status status = gather(wait.limit());
  if (position_) position_->Leave(Now(), status.ok() ? Phase::kOutside : Phase::kBroken);
  return status;
}

// A rank whose lines have run out, or are being written, may be here.
std::vector<int> Gathering::Absent() const {
  std::vector<int> absent;
  for (const int rank : world_.local_ranks()) {
    const Sight sight = world_.board().Look(rank);
    if (rank == world_.rank() || sight.positions.size() != sight.lines ||
        sight.lines == static_cast<size_t>(Board::kPositionLines)) {
      continue;
    }
    const auto here = [this](const Position& p) {
      return p.group == number_ && (p.call >= gatherings_ || p.phase == Phase::kClosed);
    };
    if (std::none_of(sight.positions.begin(), sight.positions.end(), here)) absent.push_back(rank);
  }
  return absent;
}

Result<std::vector<std::string>> Gathering::Share(std::string_view mine) {
  if (!group_) return std::vector<std::string>{std::string(mine)};
  const auto ranks = static_cast<size_t>(size());
  const uint64_t my_bytes = mine.size();
  std::vector<uint64_t> bytes(ranks);
  NPUMESH_RETURN_IF_ERROR(Gather([&](Deadline limit) {
    return group_->AllGather(&my_bytes, bytes.data(), sizeof(my_bytes), limit);
  }));
  const uint64_t most = *std::max_element(bytes.begin(), bytes.end());
  std::vector<std::string> texts(ranks);
  if (most == 0) return texts;
  std::string padded(mine);
  padded.resize(most);
  std::string all(most * ranks, '\0');
  NPUMESH_RETURN_IF_ERROR(Gather(
      [&](Deadline limit) { return group_->AllGather(padded.data(), all.data(), most, limit); }));
  for (size_t rank = 0; rank < ranks; ++rank) texts[rank] = all.substr(rank * most, bytes[rank]);
  return texts;
}

Status Gathering::AgreeOn(const Status& mine) {
  std::string told(1, static_cast<char>(mine.code()));
  told += mine.message();
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> all, Share(told));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const auto code = static_cast<Code>(all[rank][0]);
    if (code == Code::kOk) continue;
    const Status error = Error(code, "{}", all[rank].substr(1));
    return size() == 1 ? error : error.WithContext(fmt::format("rank {} of {}", rank, size()));
  }
  return Status();
}

}  // namespace npumesh
