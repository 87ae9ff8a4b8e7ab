#include "runtime/world/setbacks.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace npumesh {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr size_t kTextWords = 256;

}  // namespace

// The reason. The text is made of atomic words, because a rank that no longer waits for this one
// may read it while the next is written; it notices by `version`.
struct Setbacks::Page {
  std::atomic<uint64_t> version;  // odd while the text is written
  std::atomic<uint64_t> text_bytes;
  std::atomic<uint64_t> text[kTextWords];
};

// What a rank says for one other rank.
struct Setbacks::Mark {
  std::atomic<uint64_t> count;     // setbacks that concern both; release: the rest stands before it
  std::atomic<uint64_t> marks[2];  // setback n: marks[n % 2]
  uint64_t padding;
};

uint64_t Setbacks::BytesFor(int ranks) {
  const uint64_t marks = static_cast<uint64_t>(ranks) * sizeof(Mark);
  return kPageBytes + (marks + kPageBytes - 1) / kPageBytes * kPageBytes;
}

Setbacks::Setbacks(const Transport& transport, const NodeSegment& segment, uint64_t offset)
    : transport_(transport),
      segment_(segment),
      offset_(offset),
      over_(new std::atomic<uint64_t>[static_cast<size_t>(transport.size())]()) {
  static_assert(sizeof(Page) <= kPageBytes && sizeof(Mark) == 32);
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
}

Setbacks::Page* Setbacks::page(int world_rank) const {
  std::byte* part = segment_.part(world_rank);
  return part == nullptr ? nullptr : reinterpret_cast<Page*>(part + offset_);
}

Setbacks::Mark& Setbacks::mark(int of, int reader) const {
  return reinterpret_cast<Mark*>(segment_.part(of) + offset_ + kPageBytes)[reader];
}

bool Setbacks::Publish(const Status& status, const std::vector<CommonCall>& calls) {
  const std::lock_guard lock(mutex_);
  const bool seen_by_all = std::all_of(calls.begin(), calls.end(), [this](const CommonCall& call) {
    return page(call.world_rank) != nullptr;
  });
  if (lasting() || !seen_by_all) return false;
  const int me = transport_.rank();
  Page& mine = *page(me);
  const std::string_view text = status.message().substr(0, kTextWords * sizeof(uint64_t));
  mine.version.fetch_add(1, std::memory_order_acq_rel);
  mine.text_bytes.store(text.size(), std::memory_order_relaxed);
  for (size_t at = 0; at < text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, std::min(sizeof(word), text.size() - at));
    mine.text[at / sizeof(word)].store(word, std::memory_order_relaxed);
  }
  mine.version.fetch_add(1, std::memory_order_release);
  calls_ = calls;
  lasting_.store(true, std::memory_order_release);
  for (const CommonCall& call : calls_) {
    Mark& theirs = mark(me, call.world_rank);
    const uint64_t count = theirs.count.load(std::memory_order_relaxed) + 1;
    theirs.marks[count % 2].store(call.mark, std::memory_order_relaxed);
    theirs.count.store(count, std::memory_order_release);
  }
  return true;
}

Status Setbacks::Of(int world_rank) const {
  const int me = transport_.rank();
  if (world_rank == me || page(world_rank) == nullptr) return Status();
  const Page& theirs = *page(world_rank);
  for (;;) {
    const uint64_t over = over_[static_cast<size_t>(world_rank)].load(std::memory_order_acquire);
    if (mark(world_rank, me).count.load(std::memory_order_acquire) <= over) return Status();
    const uint64_t version = theirs.version.load(std::memory_order_acquire);
    const size_t bytes = std::min<uint64_t>(theirs.text_bytes.load(std::memory_order_acquire),
                                            kTextWords * sizeof(uint64_t));
    std::string text(bytes, '\0');
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
      const uint64_t word = theirs.text[at / sizeof(word)].load(std::memory_order_acquire);
      std::memcpy(text.data() + at, &word, std::min(sizeof(word), bytes - at));
    }
    if (version % 2 != 0 || theirs.version.load(std::memory_order_relaxed) != version) continue;
    return Error(Code::kPeerLost, "rank {} failed: {}", world_rank, text);
  }
}

std::vector<int> Setbacks::Awaited() const {
  const std::lock_guard lock(mutex_);
  const int me = transport_.rank();
  std::vector<int> awaited;
  for (const CommonCall& call : calls_) {
    const uint64_t mine = mark(me, call.world_rank).count.load(std::memory_order_relaxed);
    if (mark(call.world_rank, me).count.load(std::memory_order_acquire) < mine) {
      awaited.push_back(call.world_rank);
    }
  }
  return awaited;
}

Status Setbacks::End() {
  const std::lock_guard lock(mutex_);
  const int me = transport_.rank();
  for (const CommonCall& call : calls_) {
    const uint64_t count = mark(me, call.world_rank).count.load(std::memory_order_relaxed);
    const Mark& theirs = mark(call.world_rank, me);
    if (theirs.marks[count % 2].load(std::memory_order_acquire) == call.mark) continue;
    return Error(Code::kMismatch,
                 "rank {} and rank {} failed in different calls and cannot go on together; all "
                 "ranks have to go through their calls in the same order",
                 me, call.world_rank);
  }
  for (const CommonCall& call : calls_) {
    over_[static_cast<size_t>(call.world_rank)].store(
        mark(me, call.world_rank).count.load(std::memory_order_relaxed), std::memory_order_release);
  }
  calls_.clear();
  lasting_.store(false, std::memory_order_release);
  return Status();
}

}  // namespace npumesh
