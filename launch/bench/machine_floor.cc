#include "launch/bench/machine_floor.h"

#include <sched.h>

#include <cstring>
#include <limits>
#include <new>

#include "runtime/base/log.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
MachineFloor::MachineFloor(World& world, DeviceMemory& memory, RankCircle& circle)
    : world_(world),
      memory_(memory),
      circle_(circle),
      waiter_(world, "floor", AllRanks(world.size())) {}

MachineFloor::~MachineFloor() {
  if (block_ == nullptr) return;
  if (const Status freed = memory_.Free(block_); !freed.ok()) {
    NPUMESH_WARNING("bench: {}", freed.message());
  }
}

Result<std::unique_ptr<MachineFloor>> MachineFloor::Create(World& world, DeviceMemory& memory,
                                                           RankCircle& circle) {
  std::unique_ptr<MachineFloor> floor(new MachineFloor(world, memory, circle));
  NPUMESH_ASSIGN_OR_RETURN(floor->block_, memory.Allocate(sizeof(Line)));
  new (floor->block_) Line{};
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::byte*> lines,
                           floor->Everybodys(static_cast<std::byte*>(floor->block_)));
  for (std::byte* line : lines) floor->lines_.push_back(reinterpret_cast<Line*>(line));
  return floor;
}

Result<std::vector<std::byte*>> MachineFloor::Everybodys(const std::byte* mine) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> offsets,
                           circle_.Share(fmt::format("{}", memory_.OffsetOf(mine))));
  std::vector<std::byte*> places;
  for (size_t rank = 0; rank < offsets.size(); ++rank) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
    NPUMESH_ASSIGN_OR_RETURN(const int64_t offset, ParseInt(offsets[rank], 0, kMost, "an offset"));
    places.push_back(memory_.PeerAddress(static_cast<int>(rank), static_cast<uint64_t>(offset)));
  }
  return places;
}

Status MachineFloor::Use(const BenchOp& op, const std::vector<BenchCall>& calls, const Seat& seat) {
  copies_.clear();
  for (const BenchCall& call : calls) {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::byte*> sources,
                             Everybodys(op.one_buffer ? call.recv : call.send));
    const uint64_t width = *BytesOf(call.dtype, 1);
    std::vector<Copy>& copies = copies_.emplace_back();
    for (const Piece& piece : op.result(seat)) {
      const int source =
          piece.source == Piece::kAllRanks ? (seat.rank + 1) % seat.ranks : piece.source;
      std::byte* const to = call.recv + piece.to * width;
      const std::byte* const from = sources[static_cast<size_t>(source)] + piece.from * width;
      if (to != from) copies.push_back({to, from, piece.count * width});
    }
  }
  return Status();
}

Status MachineFloor::Meet() {
  const uint64_t meeting = ++meeting_;
  Line& mine = *lines_[static_cast<size_t>(world_.rank())];
  mine.cpu.store(sched_getcpu(), std::memory_order_relaxed);
  mine.meeting.store(meeting, std::memory_order_release);
  return waiter_.ForAll(
      [] { return std::string("bench --floor"); }, world_.env().exec_timeout,
      [&](size_t i) { return lines_[i]->meeting.load(std::memory_order_acquire) >= meeting; },
      [&](size_t i) { return lines_[i]->cpu.load(std::memory_order_relaxed); });
}

Status MachineFloor::Run(int i) {
  NPUMESH_RETURN_IF_ERROR(Meet());
  for (const Copy& copy : copies_[static_cast<size_t>(i) % copies_.size()]) {
    std::memcpy(copy.to, copy.from, copy.bytes);
  }
  return Status();
}

}  // namespace npumesh
