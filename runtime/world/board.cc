#include "runtime/world/board.h"

#include <unistd.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "runtime/base/process/process_state.h"
#include "runtime/world/board_page.h"

namespace npumesh {
namespace {

constexpr uint64_t kBoardBytes = board::kPageBytes + board::kLinesBytes + board::kPageBytes;
static_assert(Board::kPositionLines == board::kPositionLines);
static_assert(sizeof(StandingPage) <= board::kPageBytes);

constexpr uint32_t Word(BoardState state) {
  return static_cast<uint32_t>(state);
}

}  // namespace

struct Board::Page : BoardPage {};

Result<std::unique_ptr<Board>> Board::Share(Transport& transport) {
  const uint64_t bytes = kBoardBytes + kSharedAreaBytes + Setbacks::BytesFor(transport.size());
  // `npumesh ps` and `attach` read it from outside (rank_window.h).
  NPUMESH_ASSIGN_OR_RETURN(std::unique_ptr<NodeSegment> segment,
                           transport.Share(board::kLabel, bytes, NodeSegment::Reach::kProcesses));
  return std::unique_ptr<Board>(new Board(transport, std::move(segment)));
}

Board::Board(Transport& transport, std::unique_ptr<NodeSegment> segment)
    : transport_(transport),
      segment_(std::move(segment)),
      setbacks_(transport_, *segment_, kBoardBytes + kSharedAreaBytes) {
  static_assert(std::atomic<uint32_t>::is_always_lock_free);
  Page* mine = page(transport_.rank());
  mine->process = static_cast<int32_t>(getpid());
  mine->rank = transport_.rank();
  mine->world_size = transport_.size();
  std::atomic_ref(mine->layout).store(Page::kLayout, std::memory_order_release);
}

Board::Page* Board::page(int world_rank) const {
  return reinterpret_cast<Page*>(segment_->part(world_rank));
}

PositionLine* Board::position_lines(int world_rank) const {
  std::byte* part = segment_->part(world_rank);
  return part ? reinterpret_cast<PositionLine*>(part + board::kPageBytes) : nullptr;
}

StandingPage* Board::standing_page(int world_rank) const {
  std::byte* part = segment_->part(world_rank);
  return part ? reinterpret_cast<StandingPage*>(part + board::kPageBytes + board::kLinesBytes)
              : nullptr;
}

std::byte* Board::shared_area(int world_rank) const {
  std::byte* part = segment_->part(world_rank);
  return part ? part + kBoardBytes : nullptr;
}

void Board::PublishStart() {
  page(transport_.rank())->state.store(Word(BoardState::kRunning), std::memory_order_release);
}

void Board::PublishEnd() {
  uint32_t running = Word(BoardState::kRunning);
  page(transport_.rank())
      ->state.compare_exchange_strong(running, Word(BoardState::kLeaving),
                                      std::memory_order_acq_rel);
}

void Board::PublishFailure(const Status& status) {
  Page* mine = page(transport_.rank());
  if (mine->claimed.exchange(1, std::memory_order_acq_rel) != 0) return;
  const std::string_view text = status.message().substr(0, Page::kTextBytes);
  mine->code = static_cast<uint32_t>(status.code());
  mine->text_bytes = static_cast<uint32_t>(text.size());
  text.copy(mine->text, text.size());
  mine->state.store(Word(BoardState::kFailed), std::memory_order_release);
}

Status Board::CheckLost(int world_rank) const {
  const Page* peer = page(world_rank);
  if (peer == nullptr || world_rank == transport_.rank()) return Status();
  if (Failed(world_rank)) {
    return Error(Code::kPeerLost, "rank {} failed: {}", world_rank, peer->failure());
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
  return page(world_rank)->state.load(std::memory_order_acquire) == Word(BoardState::kFailed);
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
  sight.leaving = peer->state.load(std::memory_order_acquire) == Word(BoardState::kLeaving);
  sight.lost = CheckPeer(world_rank);
  sight.process = peer->process;
  sight.process_state = ProcessState(peer->process);
  sight.positions = board::ReadPositions(segment_->part(world_rank), &sight.lines);
  return sight;
}

}  // namespace npumesh
