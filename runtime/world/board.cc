#include "runtime/world/board.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/base/process/process_state.h"

namespace npumesh {
namespace {

enum BoardState : uint32_t { kStarting = 0, kRunning = 1, kFailed = 2, kLeaving = 3 };

// A rank's part of the segment: its page, its position lines, its StandingPage, its shared area,
// its setbacks.
constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kLinesBytes = Board::kPositionLines * sizeof(PositionLine);
constexpr uint64_t kBoardBytes = kPageBytes + kLinesBytes + kPageBytes;
static_assert(kLinesBytes % kPageBytes == 0 && sizeof(StandingPage) <= kPageBytes);

}  // namespace

struct Board::Page {
  static constexpr uint32_t kLayout = 4;
  static constexpr size_t kTextBytes = 2048;

  uint32_t layout;  // kLayout; a peer built from other sources says something else
  int32_t process;  // as its owner sees it
  std::atomic<uint32_t> state;
  std::atomic<uint32_t> claimed;  // a failure is being written; the first one wins
  uint32_t code;                  // Code of the failure; published by `state`
  uint32_t text_bytes;
  std::atomic<uint32_t> lines;  // position lines that have ever been claimed
  char text[kTextBytes];
};

Result<std::unique_ptr<Board>> Board::Share(Transport& transport) {
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<NodeSegment> segment,
                           transport.Share("board", kBoardBytes + kSharedAreaBytes +
                                                        Setbacks::BytesFor(transport.size())));
  return std::unique_ptr<Board>(new Board(transport, std::move(segment)));
}

Board::Board(Transport& transport, std::unique_ptr<NodeSegment> segment)
    : transport_(transport),
      segment_(std::move(segment)),
      setbacks_(transport_, *segment_, kBoardBytes + kSharedAreaBytes) {
  static_assert(sizeof(Page) <= kPageBytes);
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
  Page* mine = page(transport_.rank());
  mine->layout = Page::kLayout;
  mine->process = static_cast<int32_t>(getpid());
}

Board::Page* Board::page(int world_rank) const {
  return reinterpret_cast<Page*>(segment_->part(world_rank));
}

PositionLine* Board::position_lines(int world_rank) const {
  std::byte* part = segment_->part(world_rank);
  return part ? reinterpret_cast<PositionLine*>(part + kPageBytes) : nullptr;
}

StandingPage* Board::standing_page(int world_rank) const {
  std::byte* part = segment_->part(world_rank);
  return part ? reinterpret_cast<StandingPage*>(part + kPageBytes + kLinesBytes) : nullptr;
}

std::byte* Board::shared_area(int world_rank) const {
  std::byte* part = segment_->part(world_rank);
  return part ? part + kBoardBytes : nullptr;
}

void Board::PublishStart() {
  page(transport_.rank())->state.store(kRunning, std::memory_order_release);
}

void Board::PublishEnd() {
  uint32_t running = kRunning;
  page(transport_.rank())
      ->state.compare_exchange_strong(running, kLeaving, std::memory_order_acq_rel);
}

void Board::PublishFailure(const Status& status) {
  Page* mine = page(transport_.rank());
  if (mine->claimed.exchange(1, std::memory_order_acq_rel) != 0) return;
  const std::string_view text = status.message().substr(0, Page::kTextBytes);
  mine->code = static_cast<uint32_t>(status.code());
  mine->text_bytes = static_cast<uint32_t>(text.size());
  text.copy(mine->text, text.size());
  mine->state.store(kFailed, std::memory_order_release);
}

Status Board::CheckLost(int world_rank) const {
  const Page* peer = page(world_rank);
  if (peer == nullptr || world_rank == transport_.rank()) return Status();
  if (peer->state.load(std::memory_order_acquire) == kFailed) {
    const size_t bytes = std::min<size_t>(peer->text_bytes, Page::kTextBytes);
    return Error(Code::kPeerLost, "rank {} failed: {}", world_rank,
                 std::string_view(peer->text, bytes));
  }
  if (transport_.Probe(world_rank) == PeerState::kGone) {
    return Error(Code::kPeerLost, "rank {} of {} (process {}) has ended", world_rank,
                 transport_.size(), peer->process);
  }
  return Status();
}

Status Board::CheckPeer(int world_rank) const {
  const Status lost = CheckLost(world_rank);
  if (lost.ok()) return setbacks_.Of(world_rank);
  if (Failed(world_rank)) return lost;
  const Status reason = setbacks_.Of(world_rank);  // why it has ended
  return reason.ok() ? lost : reason;
}

bool Board::Failed(int world_rank) const {
  return page(world_rank)->state.load(std::memory_order_acquire) == kFailed;
}

Status Board::CheckPeers(const std::vector<int>& world_ranks) const {
  Status gone;
  for (int peer : world_ranks) {
    const Status status = CheckPeer(peer);
    if (status.ok()) continue;
    if (Failed(peer) || !setbacks_.Of(peer).ok()) return status;
    if (gone.ok()) gone = status;
  }
  return gone;
}

// Lines never used before come first: a closed line still tells where its rank left the group.
PositionLine* Board::ClaimPosition() {
  PositionLine* lines = position_lines(transport_.rank());
  std::atomic<uint32_t>& used = page(transport_.rank())->lines;
  uint32_t next = used.load(std::memory_order_relaxed);
  while (next < kPositionLines) {
    if (!used.compare_exchange_weak(next, next + 1, std::memory_order_acq_rel)) continue;
    if (lines[next].Claim()) return &lines[next];
  }
  for (int i = 0; i < kPositionLines; ++i) {
    if (lines[i].Claim()) return &lines[i];
  }
  return nullptr;
}

Sight Board::Look(int world_rank) const {
  Sight sight;
  const Page* peer = page(world_rank);
  if (peer == nullptr) return sight;
  sight.visible = true;
  sight.leaving = peer->state.load(std::memory_order_acquire) == kLeaving;
  sight.lost = CheckPeer(world_rank);
  sight.process = peer->process;
  sight.process_state = ProcessState(peer->process);
  const PositionLine* lines = position_lines(world_rank);
  const uint32_t used = std::min<uint32_t>(peer->lines.load(std::memory_order_acquire),
                                           static_cast<uint32_t>(kPositionLines));
  sight.lines = used;
  for (uint32_t i = 0; i < used; ++i) {
    if (std::optional<Position> position = lines[i].Read()) {
      sight.positions.push_back(*std::move(position));
    }
  }
  return sight;
}

}  // namespace npumesh
