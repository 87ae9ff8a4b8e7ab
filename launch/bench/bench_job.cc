#include "launch/bench/bench_job.h"

#include <algorithm>
#include <cstring>

#include "collectives/algorithms/selection.h"
#include "collectives/contract/meeting.h"
#include "collectives/reduce/reduce.h"
#include "launch/bench/pattern.h"
#include "runtime/acl/process/device_context.h"
#include "runtime/base/log.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

// Blocks of device memory that go back together.
class Blocks {
 public:
  explicit Blocks(DeviceMemory& memory) : memory_(memory) {}
  ~Blocks() {
    for (void* block : blocks_) {
      if (const Status freed = memory_.Free(block); !freed.ok()) {
        NPUMESH_WARNING("bench: {}", freed.message());
      }
    }
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  Result<std::byte*> Take(uint64_t bytes) {
    NPUMESH_ASSIGN_OR_RETURN(void* block, memory_.Allocate(std::max<uint64_t>(1, bytes)));
    blocks_.push_back(block);
    return static_cast<std::byte*>(block);
  }

 private:
  DeviceMemory& memory_;
  std::vector<void*> blocks_;
};

std::string Pack(const Measured& measured) {
  std::string text;
  const auto put = [&text](const int64_t* from, size_t count) {
    text.append(reinterpret_cast<const char*>(from), count * sizeof(int64_t));
  };
  for (const BenchTimes* times : {&measured.ours, &measured.mpi, &measured.floor}) {
    put(&times->switches, 1);
    put(times->nanoseconds.data(), times->nanoseconds.size());
  }
  return text + measured.wrong;
}

// REQUIRES: packed on a rank with as many times as `like` has.
Measured Unpack(const std::string& text, const Measured& like) {
  Measured measured;
  size_t at = 0;
  const auto take = [&](int64_t* to, size_t count) {
    // What was not measured has no array to copy to.
    if (count != 0) std::memcpy(to, text.data() + at, count * sizeof(int64_t));
    at += count * sizeof(int64_t);
  };
  const auto take_times = [&](const BenchTimes& as_many, BenchTimes& times) {
    take(&times.switches, 1);
    times.nanoseconds.resize(as_many.nanoseconds.size());
    take(times.nanoseconds.data(), times.nanoseconds.size());
  };
  take_times(like.ours, measured.ours);
  take_times(like.mpi, measured.mpi);
  take_times(like.floor, measured.floor);
  measured.wrong = text.substr(at);
  return measured;
}

// What a send buffer, or the only buffer, holds before the call.
std::span<std::byte> SourceOf(const BenchOp& op, const BenchCall& call, const Seat& seat) {
  const uint64_t count = op.one_buffer ? op.recv_count(seat) : op.send_count(seat);
  return {op.one_buffer ? call.recv : call.send, *BytesOf(call.dtype, count)};
}

}  // namespace

BenchPlace BenchJob::place() const {
  const bool in_window = world_.node_count() == 1 && world_.size() <= Meeting::kMaxSlotRanks;
  return {world_.size(), world_.node_count(), in_window, in_window && world_.crowded(), *tables_};
}

Status BenchJob::CheckOptions(std::span<const BenchOp* const> ops) {
  for (const BenchOp* op : ops) {
    if (options_.api == BenchApi::kHccl) NPUMESH_RETURN_IF_ERROR(CheckHccl(*op, options_));
  }
  NPUMESH_ASSIGN_OR_RETURN(tables_, AlgorithmTables::Load(world_.env().algorithm_libraries));
  NPUMESH_RETURN_IF_ERROR(
      Selection::Parse(world_.env().hccl_algo, "HCCL_ALGO", tables_->Names()).status());
  if (options_.root >= world_.size()) {
    return Error(Code::kInvalidArgument, "-r {}: expected a rank of 0 to {}", options_.root,
                 world_.size() - 1);
  }
  if (options_.floor && !place().in_window) {
    return Error(
        Code::kInvalidArgument,
        "--floor: the ranks do not share memory; measure on one host, with at most {} ranks",
        Meeting::kMaxSlotRanks);
  }
  if (options_.npus && *options_.npus < world_.local_size()) {
    return Error(Code::kInvalidArgument,
                 "-p {}: {} ranks run on this host, each with a separate device", *options_.npus,
                 world_.local_size());
  }
  return Status();
}

Status BenchJob::Prepare() {
  NPUMESH_RETURN_IF_ERROR(options_.api == BenchApi::kHccl ? JoinHccl() : JoinCommunicator());
  if (options_.floor) {
    NPUMESH_ASSIGN_OR_RETURN(floor_, MachineFloor::Create(world_, *memory_, circle_));
  }
  if (!options_.baseline || world_.size() == 1) return Status();
  mpi_watch_ = std::make_unique<BlockedWatch>(
      "the collectives of MPI itself",
      BlockedWatch::Limits{world_.env().soft_timeout, kNoTimeout, std::chrono::seconds(1)});
  NPUMESH_ASSIGN_OR_RETURN(mpi_, MpiBaseline::Create());
  if (const CombineFn combine = FindCombine(options_.dtype, options_.reduce_op)) {
    mpi_->SetReduction(options_.dtype, options_.reduce_op, combine);
  }
  return Status();
}

Status BenchJob::JoinHccl() {
  NPUMESH_ASSIGN_OR_RETURN(AclDevice* const device, CurrentDevice());
  memory_ = &device->memory;
  NPUMESH_ASSIGN_OR_RETURN(hccl_, HcclGroup::Create(circle_, options_.dtype));
  return Status();
}

Status BenchJob::JoinCommunicator() {
  NPUMESH_ASSIGN_OR_RETURN(own_memory_, DeviceMemory::Create(world_));
  memory_ = own_memory_.get();
  const std::vector<int> everyone = AllRanks(world_.size());
  NPUMESH_ASSIGN_OR_RETURN(
      group_, Communicator::Create(world_, *memory_, std::string(kWorldGroup), everyone));
  return Status();
}

Status BenchJob::Ours(const BenchOp& op, const BenchCall& call) {
  return hccl_ ? hccl_->Run(op, call) : op.ours(*group_, call);
}

Status BenchJob::Meet() {
  return hccl_ ? hccl_->Barrier() : group_->Barrier("bench");
}

Result<BenchPoint> BenchJob::Run(const BenchOp& op, uint64_t size) {
  const uint64_t adjusted = AdjustedBytes(op, size, world_.size());
  const uint64_t count = CountOf(op, adjusted, options_.dtype, world_.size());
  const Seat seat{world_.rank(), world_.size(), options_.root, op.sized ? count : 0};
  NPUMESH_ASSIGN_OR_RETURN(const Measured mine, Measure(op, seat));
  return Conclude(op, adjusted, seat, mine);
}

Result<Measured> BenchJob::Measure(const BenchOp& op, const Seat& seat) {
  const DataType dtype = options_.dtype;
  Blocks blocks(*memory_);
  Pattern pattern(dtype, op.reduces() ? std::optional(options_.reduce_op) : std::nullopt,
                  seat.ranks);
  std::vector<BenchCall> calls;
  for (int i = 0; i < options_.rotate; ++i) {
    BenchCall call{nullptr, nullptr, seat.count, dtype, options_.reduce_op, options_.root};
    const uint64_t recv_bytes = *BytesOf(dtype, op.recv_count(seat));
    NPUMESH_ASSIGN_OR_RETURN(call.send, blocks.Take(*BytesOf(dtype, op.send_count(seat))));
    NPUMESH_ASSIGN_OR_RETURN(call.recv, blocks.Take(recv_bytes));
    std::memset(call.recv, 0, recv_bytes);
    pattern.Fill(seat.rank, SourceOf(op, call, seat));
    calls.push_back(call);
  }
  Measured measured;
  NPUMESH_RETURN_IF_ERROR(Time(op, seat, calls, measured));
  if (options_.check != CheckMode::kNone && op.sized) {
    NPUMESH_ASSIGN_OR_RETURN(measured.wrong, Verify(op, seat, calls[0]));
  }
  return measured;
}

Status BenchJob::Time(const BenchOp& op, const Seat& seat, const std::vector<BenchCall>& calls,
                      Measured& measured) {
  if (floor_) NPUMESH_RETURN_IF_ERROR(floor_->Use(op, calls, seat));
  Pace pace{options_.iterations, options_.warm_ups, {}};
  if (options_.barrier) pace.meet = [this] { return Meet(); };
  const auto call_of = [&](int i) -> const BenchCall& {
    return calls[static_cast<size_t>(i) % calls.size()];
  };
  for (int round = 0; round < options_.rounds; ++round) {
    NPUMESH_ASSIGN_OR_RETURN(const BenchTimes ours,
                             TimeRound(pace, [&](int i) { return Ours(op, call_of(i)); }));
    measured.ours.Append(ours);
    if (floor_) {
      NPUMESH_ASSIGN_OR_RETURN(const BenchTimes floor,
                               TimeRound(pace, [&](int i) { return floor_->Run(i); }));
      measured.floor.Append(floor);
    }
    if (!mpi_) continue;
    NPUMESH_ASSIGN_OR_RETURN(const BenchTimes theirs,
                             TimeRound(pace, [&](int i) { return op.mpi(*mpi_, call_of(i)); }));
    measured.mpi.Append(theirs);
  }
  return Status();
}

Result<std::string> BenchJob::Verify(const BenchOp& op, const Seat& seat, const BenchCall& call) {
  Pattern pattern(options_.dtype, op.reduces() ? std::optional(options_.reduce_op) : std::nullopt,
                  seat.ranks);
  const std::vector<Piece> expected = op.result(seat);
  const uint64_t recv_bytes = *BytesOf(options_.dtype, op.recv_count(seat));
  std::string wrong;
  const auto judge = [&](std::string_view whose, const std::function<Status()>& run) -> Status {
    std::memset(call.recv, 0xA5, recv_bytes);
    pattern.Fill(seat.rank, SourceOf(op, call, seat));
    NPUMESH_RETURN_IF_ERROR(run());
    const std::string difference = pattern.FirstDifference(expected, call.recv);
    if (!difference.empty() && wrong.empty()) wrong = fmt::format("{}: {}", whose, difference);
    return Status();
  };
  NPUMESH_RETURN_IF_ERROR(judge("ours", [&] { return Ours(op, call); }));
  if (mpi_) NPUMESH_RETURN_IF_ERROR(judge("MPI's", [&] { return op.mpi(*mpi_, call); }));
  return wrong;
}

Result<BenchPoint> BenchJob::Conclude(const BenchOp& op, uint64_t size, const Seat& seat,
                                      const Measured& mine) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts, circle_.Share(Pack(mine)));
  std::vector<BenchTimes> ours, theirs, floor;
  bool right = true;
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    Measured measured = Unpack(texts[rank], mine);
    right = right && measured.wrong.empty();
    ours.push_back(std::move(measured.ours));
    theirs.push_back(std::move(measured.mpi));
    floor.push_back(std::move(measured.floor));
  }
  BenchPoint point;
  point.operation = op.name;
  point.size = size;
  point.bytes = BandwidthBytes(op, seat.count, options_.dtype, seat.ranks);
  point.ours = Summarise(ours, options_.iterations);
  if (mpi_) point.mpi = Summarise(theirs, options_.iterations);
  if (floor_) point.floor = Summarise(floor, options_.iterations);
  point.algorithm_bandwidth = static_cast<double>(point.bytes) / point.ours.average * 1e-3;
  point.bus_bandwidth = point.algorithm_bandwidth * op.bus_factor(seat.ranks);
  point.algorithm = TakenAlgorithm(op, options_, place(), world_.env().hccl_algo,
                                   *BytesOf(options_.dtype, seat.count));
  point.check = options_.check == CheckMode::kNone || !op.sized ? "NULL"
                : right                                         ? "success"
                                                                : "failed";
  if (!mine.wrong.empty()) {
    point.wrong = fmt::format("rank {}: {} of {} bytes: {}", seat.rank, op.name, size, mine.wrong);
  }
  return point;
}

}  // namespace npumesh
