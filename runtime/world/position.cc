#include "runtime/world/position.h"

#include <cstring>

namespace npumesh {
namespace {

// The value of a line that is claimed but not opened yet.
constexpr auto kClaimed = ~uint32_t{0};

template <size_t N>
void StoreText(std::string_view text, std::array<std::atomic<uint64_t>, N>& words) {
  char bytes[N * 8] = {};
  text.copy(bytes, sizeof(bytes));
  for (size_t i = 0; i < N; ++i) {
    uint64_t word;
    std::memcpy(&word, bytes + i * 8, 8);
    words[i].store(word, std::memory_order_release);
  }
}

template <size_t N>
std::string LoadText(const std::array<std::atomic<uint64_t>, N>& words) {
  char bytes[N * 8];
  for (size_t i = 0; i < N; ++i) {
    const uint64_t word = words[i].load(std::memory_order_acquire);
    std::memcpy(bytes + i * 8, &word, 8);
  }
  return std::string(bytes, strnlen(bytes, sizeof(bytes)));
}

}  // namespace

bool PositionLine::Claim() {
  uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (phase != static_cast<uint32_t>(Phase::kFree) &&
      phase != static_cast<uint32_t>(Phase::kClosed)) {
    return false;
  }
  return phase_.compare_exchange_strong(phase, kClaimed, std::memory_order_acq_rel);
}

void PositionLine::Begin() {
  const uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_relaxed);
}

void PositionLine::End() {
  const uint64_t version = version_.load(std::memory_order_relaxed);
  version_.store(version + 1, std::memory_order_release);
}

void PositionLine::Open(uint64_t group, std::string_view group_name, int64_t now_ns) {
  Begin();
  group_.store(group, std::memory_order_release);
  call_.store(0, std::memory_order_release);
  kind_.store(0, std::memory_order_release);
  since_ns_.store(now_ns, std::memory_order_release);
  StoreText(group_name, group_name_);
  StoreText("", node_);
  Move(Phase::kCreating);
  End();
}

void PositionLine::Enter(uint64_t call, uint32_t kind, std::string_view node, int64_t now_ns) {
  Begin();
  call_.store(call, std::memory_order_release);
  kind_.store(kind, std::memory_order_release);
  since_ns_.store(now_ns, std::memory_order_release);
  StoreText(node, node_);
  Move(Phase::kArriving);
  End();
}

void PositionLine::EnterAgain(uint64_t call, int64_t now_ns) {
  Begin();
  call_.store(call, std::memory_order_release);
  since_ns_.store(now_ns, std::memory_order_release);
  Move(Phase::kArriving);
  End();
}

void PositionLine::Leave(int64_t now_ns, Phase phase) {
  Begin();
  since_ns_.store(now_ns, std::memory_order_release);
  Move(phase);
  End();
}

void PositionLine::Close(int64_t now_ns) {
  Begin();
  since_ns_.store(now_ns, std::memory_order_release);
  End();
  Move(Phase::kClosed);  // last: from here on the line may belong to another thread
}

std::optional<Position> PositionLine::Read() const {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    const uint64_t version = version_.load(std::memory_order_acquire);
    if (version % 2 != 0) continue;
    Position position;
    position.group = group_.load(std::memory_order_acquire);
    position.call = call_.load(std::memory_order_acquire);
    position.kind = kind_.load(std::memory_order_acquire);
    position.since_ns = since_ns_.load(std::memory_order_acquire);
    const uint32_t phase = phase_.load(std::memory_order_acquire);
    position.group_name = LoadText(group_name_);
    position.node = LoadText(node_);
    if (version_.load(std::memory_order_relaxed) != version) continue;
    if (phase == static_cast<uint32_t>(Phase::kFree) || phase == kClaimed) return std::nullopt;
    position.phase = static_cast<Phase>(phase);
    return position;
  }
  return std::nullopt;
}

}  // namespace npumesh
