#include "launch/bench/bench_op.h"

#include <algorithm>
#include <array>
#include <limits>

namespace npumesh {
namespace {

double Twice(int n) {
  return 2.0 * (n - 1) / n;
}
double Others(int n) {
  return static_cast<double>(n - 1) / n;
}
double Once(int) {
  return 1;
}

uint64_t One(const Seat& seat) {
  return seat.count;
}
uint64_t ForAll(const Seat& seat) {
  return seat.count * static_cast<uint64_t>(seat.ranks);
}
uint64_t Nothing(const Seat&) {
  return 0;
}

uint64_t BlockOf(const Seat& seat) {
  return seat.count * static_cast<uint64_t>(seat.rank);
}

std::vector<Piece> AllReduced(const Seat& seat) {
  return {{0, seat.count, Piece::kAllRanks, 0}};
}
std::vector<Piece> BlockReduced(const Seat& seat) {
  return {{0, seat.count, Piece::kAllRanks, BlockOf(seat)}};
}
std::vector<Piece> ReducedAtRoot(const Seat& seat) {
  return seat.rank == seat.root ? AllReduced(seat) : std::vector<Piece>();
}
std::vector<Piece> AllGathered(const Seat& seat) {
  std::vector<Piece> pieces;
  for (int r = 0; r < seat.ranks; ++r) {
    pieces.push_back({static_cast<uint64_t>(r) * seat.count, seat.count, r, 0});
  }
  return pieces;
}
std::vector<Piece> FromRoot(const Seat& seat) {
  return {{0, seat.count, seat.root, 0}};
}
std::vector<Piece> BlockFromRoot(const Seat& seat) {
  return {{0, seat.count, seat.root, BlockOf(seat)}};
}
std::vector<Piece> Exchanged(const Seat& seat) {
  std::vector<Piece> pieces;
  for (int r = 0; r < seat.ranks; ++r) {
    pieces.push_back({static_cast<uint64_t>(r) * seat.count, seat.count, r, BlockOf(seat)});
  }
  return pieces;
}
std::vector<Piece> NoData(const Seat&) {
  return {};
}

constexpr std::string_view kNode = "bench";

// The numbers of the two enumerations are the same.
HcclReduceOp OpOf(const BenchCall& call) {
  return static_cast<HcclReduceOp>(call.op);
}
uint32_t RootOf(const BenchCall& call) {
  return static_cast<uint32_t>(call.root);
}

Status OursAllReduce(Communicator& group, const BenchCall& c) {
  return group.AllReduce(c.send, c.recv, c.count, c.dtype, c.op, kNode);
}
HcclResult ViaHcclAllReduce(const HcclSeat& seat, const BenchCall& c) {
  return HcclAllReduce(c.send, c.recv, c.count, seat.dtype, OpOf(c), seat.comm, seat.stream);
}
Status MpiAllReduce(MpiBaseline& mpi, const BenchCall& c) {
  return mpi.AllReduce(c.send, c.recv, c.count);
}
Status OursReduce(Communicator& group, const BenchCall& c) {
  return group.Reduce(c.send, c.recv, c.count, c.dtype, c.op, c.root, kNode);
}
HcclResult ViaHcclReduce(const HcclSeat& seat, const BenchCall& c) {
  return HcclReduce(c.send, c.recv, c.count, seat.dtype, OpOf(c), RootOf(c), seat.comm,
                    seat.stream);
}
Status MpiReduce(MpiBaseline& mpi, const BenchCall& c) {
  return mpi.Reduce(c.send, c.recv, c.count, c.root);
}
Status OursReduceScatter(Communicator& group, const BenchCall& c) {
  return group.ReduceScatter(c.send, c.recv, c.count, c.dtype, c.op, kNode);
}
HcclResult ViaHcclReduceScatter(const HcclSeat& seat, const BenchCall& c) {
  return HcclReduceScatter(c.send, c.recv, c.count, seat.dtype, OpOf(c), seat.comm, seat.stream);
}
Status MpiReduceScatter(MpiBaseline& mpi, const BenchCall& c) {
  return mpi.ReduceScatter(c.send, c.recv, c.count);
}
Status OursAllGather(Communicator& group, const BenchCall& c) {
  return group.AllGather(c.send, c.recv, c.count, c.dtype, kNode);
}
HcclResult ViaHcclAllGather(const HcclSeat& seat, const BenchCall& c) {
  return HcclAllGather(c.send, c.recv, c.count, seat.dtype, seat.comm, seat.stream);
}
Status MpiAllGather(MpiBaseline& mpi, const BenchCall& c) {
  return mpi.AllGather(c.send, c.recv, c.count, c.dtype);
}
Status OursBroadcast(Communicator& group, const BenchCall& c) {
  return group.Broadcast(c.recv, c.count, c.dtype, c.root, kNode);
}
HcclResult ViaHcclBroadcast(const HcclSeat& seat, const BenchCall& c) {
  return HcclBroadcast(c.recv, c.count, seat.dtype, RootOf(c), seat.comm, seat.stream);
}
Status MpiBroadcast(MpiBaseline& mpi, const BenchCall& c) {
  return mpi.Broadcast(c.recv, c.count, c.dtype, c.root);
}
Status OursScatter(Communicator& group, const BenchCall& c) {
  return group.Scatter(c.send, c.recv, c.count, c.dtype, c.root, kNode);
}
HcclResult ViaHcclScatter(const HcclSeat& seat, const BenchCall& c) {
  return HcclScatter(c.send, c.recv, c.count, seat.dtype, RootOf(c), seat.comm, seat.stream);
}
Status MpiScatter(MpiBaseline& mpi, const BenchCall& c) {
  return mpi.Scatter(c.send, c.recv, c.count, c.dtype, c.root);
}
Status OursAllToAll(Communicator& group, const BenchCall& c) {
  return group.AllToAll(c.send, c.recv, c.count, c.dtype, kNode);
}
HcclResult ViaHcclAllToAll(const HcclSeat& seat, const BenchCall& c) {
  return HcclAlltoAll(c.send, c.count, seat.dtype, c.recv, c.count, seat.dtype, seat.comm,
                      seat.stream);
}
Status MpiAllToAll(MpiBaseline& mpi, const BenchCall& c) {
  return mpi.AllToAll(c.send, c.recv, c.count, c.dtype);
}
Status OursBarrier(Communicator& group, const BenchCall&) {
  return group.Barrier(kNode);
}
HcclResult ViaHcclBarrier(const HcclSeat& seat, const BenchCall&) {
  return HcclBarrier(seat.comm, seat.stream);
}
Status MpiBarrier(MpiBaseline& mpi, const BenchCall&) {
  return mpi.Barrier();
}

// Equal blocks, as hccl_test's alltoallv_test sends them: rank r's block is the r-th.
template <typename T>
struct EqualBlocks {
  EqualBlocks(int ranks, uint64_t count) : counts(static_cast<size_t>(ranks), T(count)) {
    for (size_t r = 0; r < counts.size(); ++r) at.push_back(T(count * r));
  }
  std::vector<T> counts, at;
};

Status OursAllToAllV(Communicator& group, const BenchCall& c) {
  const EqualBlocks<uint64_t> blocks(group.size(), c.count);
  return group.AllToAllV(c.send, blocks.counts, blocks.at, c.recv, blocks.counts, blocks.at,
                         c.dtype, kNode);
}
HcclResult ViaHcclAllToAllV(const HcclSeat& seat, const BenchCall& c) {
  const EqualBlocks<uint64_t> blocks(seat.ranks, c.count);
  return HcclAlltoAllV(c.send, blocks.counts.data(), blocks.at.data(), seat.dtype, c.recv,
                       blocks.counts.data(), blocks.at.data(), seat.dtype, seat.comm, seat.stream);
}
Status MpiAllToAllV(MpiBaseline& mpi, const BenchCall& c) {
  const uint64_t all = c.count * static_cast<uint64_t>(mpi.size());
  if (all > std::numeric_limits<int>::max()) {
    return Error(Code::kUnsupported, "MPI_Alltoallv: {} elements are more than an int counts", all);
  }
  const EqualBlocks<int> blocks(mpi.size(), c.count);
  return mpi.AllToAllV(c.send, c.recv, blocks.counts, blocks.at, c.dtype);
}

using Kind = CollectiveKind;
// name, kind, sized, reduces, split, one_buffer, in_all, ...
constexpr std::array<BenchOp, 9> kOps = {{
    {"allreduce", Kind::kAllReduce, true, true, false, false, true, Twice, One, One, AllReduced,
     OursAllReduce, ViaHcclAllReduce, MpiAllReduce},
    {"reducescatter", Kind::kReduceScatter, true, true, true, false, true, Others, ForAll, One,
     BlockReduced, OursReduceScatter, ViaHcclReduceScatter, MpiReduceScatter},
    {"allgather", Kind::kAllGather, true, false, true, false, true, Others, One, ForAll,
     AllGathered, OursAllGather, ViaHcclAllGather, MpiAllGather},
    {"alltoall", Kind::kAllToAll, true, false, true, false, true, Others, ForAll, ForAll, Exchanged,
     OursAllToAll, ViaHcclAllToAll, MpiAllToAll},
    {"broadcast", Kind::kBroadcast, true, false, false, true, true, Once, One, One, FromRoot,
     OursBroadcast, ViaHcclBroadcast, MpiBroadcast},
    {"reduce", Kind::kReduce, true, true, false, false, false, Once, One, One, ReducedAtRoot,
     OursReduce, ViaHcclReduce, MpiReduce},
    {"scatter", Kind::kScatter, true, false, true, false, false, Others, ForAll, One, BlockFromRoot,
     OursScatter, ViaHcclScatter, MpiScatter},
    {"alltoallv", Kind::kAllToAllV, true, false, true, false, false, Others, ForAll, ForAll,
     Exchanged, OursAllToAllV, ViaHcclAllToAllV, MpiAllToAllV},
    {"barrier", Kind::kBarrier, false, false, false, false, false, Once, Nothing, Nothing, NoData,
     OursBarrier, ViaHcclBarrier, MpiBarrier},
}};

uint64_t DivideUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit;
}

}  // namespace

std::span<const BenchOp> BenchOps() {
  return kOps;
}

Result<std::vector<const BenchOp*>> FindBenchOps(std::string_view name) {
  std::vector<const BenchOp*> found;
  std::string names = "all";
  for (const BenchOp& op : kOps) {
    names += fmt::format(" {}", op.name);
    if (name == op.name || (name == "all" && op.in_all)) found.push_back(&op);
  }
  if (!found.empty()) return found;
  return Error(Code::kInvalidArgument, "no collective is called \"{}\"; known: {}", name, names);
}

uint64_t AdjustedBytes(const BenchOp& op, uint64_t bytes, int ranks) {
  if (!op.sized) return 0;
  if (!op.split) return bytes;
  constexpr uint64_t kLarge = uint64_t{16} << 20;
  const auto n = static_cast<uint64_t>(ranks);
  if (bytes < n) return n;
  const uint64_t unit = bytes > kLarge ? 512 * n : n;
  return std::max(n, bytes / unit * unit);
}

uint64_t CountOf(const BenchOp& op, uint64_t bytes, DataType dtype, int ranks) {
  const uint64_t count = DivideUp(bytes, *BytesOf(dtype, 1));
  return op.split ? DivideUp(count, static_cast<uint64_t>(ranks)) : count;
}

uint64_t BandwidthBytes(const BenchOp& op, uint64_t count, DataType dtype, int ranks) {
  const uint64_t bytes = count * *BytesOf(dtype, 1);
  return op.split ? bytes * static_cast<uint64_t>(ranks) : bytes;
}

}  // namespace npumesh
