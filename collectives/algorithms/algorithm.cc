#include "collectives/algorithms/algorithm.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/base/log.h"

namespace npumesh {

namespace {

struct KindTable {
  CollectiveKind kind;
  std::span<const Algorithm> (*rows)();
};

// The most frequent kinds first. A kind that is not here has the barrier's table.
constexpr std::array<KindTable, 12> kTables = {{
    {CollectiveKind::kAllReduce, AllReduceTable},
    {CollectiveKind::kAllGather, AllGatherTable},
    {CollectiveKind::kReduceScatter, ReduceScatterTable},
    {CollectiveKind::kBroadcast, BroadcastTable},
    {CollectiveKind::kAllToAll, AllToAllTable},
    {CollectiveKind::kAllToAllV, AllToAllTable},
    {CollectiveKind::kAllToAllVC, AllToAllTable},
    {CollectiveKind::kReduce, ReduceTable},
    {CollectiveKind::kScatter, ScatterTable},
    {CollectiveKind::kAllGatherV, AllGatherVTable},
    {CollectiveKind::kReduceScatterV, ReduceScatterVTable},
    {CollectiveKind::kBarrier, BarrierTable},
}};

}  // namespace

std::span<const Algorithm> AlgorithmsFor(CollectiveKind kind) {
  for (const KindTable& table : kTables) {
    if (table.kind == kind) return table.rows();
  }
  return BarrierTable();
}

std::vector<std::string_view> AlgorithmNames() {
  std::vector<std::string_view> names;
  for (const KindTable& table : kTables) {
    for (const Algorithm& row : table.rows()) {
      const bool known = std::find(names.begin(), names.end(), row.name) != names.end();
      if (!known) names.push_back(row.name);
    }
  }
  return names;
}

const Algorithm& Choose(const Facts& facts, std::string_view preferred, bool trace) {
  return Choose(AlgorithmsFor(facts.kind), facts, preferred, trace);
}

const Algorithm& Choose(std::span<const Algorithm> table, const Facts& facts,
                        std::string_view preferred, bool trace) {
  const auto say = [&](const Algorithm& row, std::string_view verdict) {
    if (trace) {
      WriteLog(
          LogLevel::kInfo, {__FILE__, __LINE__},
          fmt::format("{} of {} bytes: {}: {}", Name(facts.kind), facts.bytes, row.name, verdict));
    }
  };
  for (const Algorithm& row : table) {
    if (row.name == preferred && row.why_not(facts).empty()) {
      say(row, "taken, asked for by name");
      return row;
    }
  }
  for (const Algorithm& row : table) {
    const std::string_view objection = row.why_not(facts);
    say(row, objection.empty() ? "taken" : objection);
    if (objection.empty()) return row;
  }
  return table.back();
}

std::string_view NoObjection(const Facts&) {
  return "";
}

std::string_view UnlessInWindow(const Facts& facts) {
  return facts.in_window ? "" : "the ranks do not share memory";
}

std::string_view UnlessHierarchical(const Facts& facts) {
  return facts.hierarchical ? "" : "the ranks are not nodes that share memory inside";
}

namespace {

// Bytes of every rank's eager data; those of a broadcast are the root's alone.
uint64_t EagerBytes(CollectiveKind kind, uint64_t bytes, int size) {
  const bool block_for_each = TraitsOf(kind).send == Portion::kAllBlocks;
  return block_for_each ? bytes * static_cast<uint64_t>(size) : bytes;
}

// An eager row copies what the others read; a row in buffers meets twice, which takes as long as
// copying so many bytes, also with more ranks than cores, because those run each other's parts. Of
// two ranks each reads only one other's: 1 KiB takes 0.35 to 0.43 us so, not 0.46 to 0.51. A
// broadcast saves more: no rank reads what a follower writes, and a root that runs ahead gives no
// core away.
uint64_t EagerLimit(const Facts& facts) {
  constexpr uint64_t kSecondMeeting = 512;
  const bool broadcast = facts.kind == CollectiveKind::kBroadcast;
  if (facts.crowded) return (broadcast ? 16 : 1) * kSecondMeeting;
  return (broadcast || facts.size == 2 ? 2 : 1) * kSecondMeeting;
}

}  // namespace

std::string_view UnlessEager(const Facts& facts) {
  if (!facts.in_window) return UnlessInWindow(facts);
  if (TraitsOf(facts.kind).send == Portion::kListed) return "blocks of different sizes";
  const uint64_t limit = EagerLimit(facts);
  // The first test keeps the second from overflowing.
  const bool fits =
      facts.bytes <= limit && EagerBytes(facts.kind, facts.bytes, facts.size) <= limit;
  return fits ? "" : "too much to copy instead of meeting twice";
}

EagerData EagerDataOf(const Call& call, int rank, int size) {
  const uint64_t bytes = EagerBytes(call.kind, call.bytes(), size);
  if (call.kind == CollectiveKind::kBroadcast) {
    return {{call.send, rank == call.root ? bytes : 0}, call.root, bytes};
  }
  EagerData data{{call.send, bytes}};
  // A block for each rank.
  if (bytes != call.bytes()) {
    data.part_at = call.bytes() * static_cast<uint64_t>(rank);
    data.part_bytes = call.bytes();
  }
  return data;
}

Slice SliceOf(uint64_t count, uint64_t element_bytes, int rank, int size) {
  const uint64_t line = std::max<uint64_t>(1, 64 / element_bytes);
  const uint64_t lines = (count + line - 1) / line;
  const uint64_t n = static_cast<uint64_t>(size);
  const uint64_t r = static_cast<uint64_t>(rank);
  const uint64_t begin = std::min(count, lines / n * r * line + std::min(r, lines % n) * line);
  const uint64_t next =
      std::min(count, lines / n * (r + 1) * line + std::min(r + 1, lines % n) * line);
  return {begin, next - begin};
}

uint64_t OutputBytes(const Call& call, int size) {
  uint64_t bytes = 0;
  for (int r = 0; r < size; ++r) bytes += call.recv_block_bytes(r);
  return bytes;
}

void CopyBlock(std::byte* to, const std::byte* from, uint64_t bytes, uint64_t output_bytes) {
  if (bytes == 0 || to == from) return;
  if (output_bytes < kCopyStreamBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  // A reduction of one input is a copy.
  const void* in = from;
  void* out = to;
  FindReduce(DataType::kUint8, ReduceOp::kSum)(&in, 1, &out, 1, bytes, true);
}

}  // namespace npumesh
