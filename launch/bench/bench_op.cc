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

// Rows name a function and the fields of the call that it takes, in its order.
constexpr auto kSend = &BenchCall::send;
constexpr auto kRecv = &BenchCall::recv;
constexpr auto kCount = &BenchCall::count;
constexpr auto kDtype = &BenchCall::dtype;
constexpr auto kOp = &BenchCall::op;
constexpr auto kRoot = &BenchCall::root;

template <auto kFunction, auto... kFields>
Status Ours(Communicator& group, const BenchCall& call) {
  return (group.*kFunction)(call.*kFields..., kNode);
}

template <auto kFunction, auto... kFields>
Status Mpi(MpiBaseline& mpi, const BenchCall& call) {
  return (mpi.*kFunction)(call.*kFields...);
}

// A field as the C interface has it. The numbers of the two reductions are the same.
std::byte* ForHccl(const HcclSeat&, std::byte* buffer) {
  return buffer;
}
uint64_t ForHccl(const HcclSeat&, uint64_t count) {
  return count;
}
HcclDataType ForHccl(const HcclSeat& seat, DataType) {
  return seat.dtype;
}
HcclReduceOp ForHccl(const HcclSeat&, ReduceOp op) {
  return static_cast<HcclReduceOp>(op);
}
uint32_t ForHccl(const HcclSeat&, int root) {
  return static_cast<uint32_t>(root);
}

template <auto kFunction, auto... kFields>
HcclResult CallHccl(const HcclSeat& seat, const BenchCall& call) {
  return kFunction(ForHccl(seat, call.*kFields)..., seat.comm, seat.stream);
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

constexpr std::array<BenchOp, 9> kOps = {{
    {.name = "allreduce",
     .kind = CollectiveKind::kAllReduce,
     .in_all = true,
     .bus_factor = Twice,
     .send_count = One,
     .recv_count = One,
     .result = AllReduced,
     .ours = Ours<&Communicator::AllReduce, kSend, kRecv, kCount, kDtype, kOp>,
     .hccl = CallHccl<HcclAllReduce, kSend, kRecv, kCount, kDtype, kOp>,
     .mpi = Mpi<&MpiBaseline::AllReduce, kSend, kRecv, kCount>},
    {.name = "reducescatter",
     .kind = CollectiveKind::kReduceScatter,
     .split = true,
     .in_all = true,
     .bus_factor = Others,
     .send_count = ForAll,
     .recv_count = One,
     .result = BlockReduced,
     .ours = Ours<&Communicator::ReduceScatter, kSend, kRecv, kCount, kDtype, kOp>,
     .hccl = CallHccl<HcclReduceScatter, kSend, kRecv, kCount, kDtype, kOp>,
     .mpi = Mpi<&MpiBaseline::ReduceScatter, kSend, kRecv, kCount>},
    {.name = "allgather",
     .kind = CollectiveKind::kAllGather,
     .split = true,
     .in_all = true,
     .bus_factor = Others,
     .send_count = One,
     .recv_count = ForAll,
     .result = AllGathered,
     .ours = Ours<&Communicator::AllGather, kSend, kRecv, kCount, kDtype>,
     .hccl = CallHccl<HcclAllGather, kSend, kRecv, kCount, kDtype>,
     .mpi = Mpi<&MpiBaseline::AllGather, kSend, kRecv, kCount, kDtype>},
    {.name = "alltoall",
     .kind = CollectiveKind::kAllToAll,
     .split = true,
     .in_all = true,
     .bus_factor = Others,
     .send_count = ForAll,
     .recv_count = ForAll,
     .result = Exchanged,
     .ours = Ours<&Communicator::AllToAll, kSend, kRecv, kCount, kDtype>,
     .hccl = CallHccl<HcclAlltoAll, kSend, kCount, kDtype, kRecv, kCount, kDtype>,
     .mpi = Mpi<&MpiBaseline::AllToAll, kSend, kRecv, kCount, kDtype>},
    {.name = "broadcast",
     .kind = CollectiveKind::kBroadcast,
     .one_buffer = true,
     .in_all = true,
     .bus_factor = Once,
     .send_count = One,
     .recv_count = One,
     .result = FromRoot,
     .ours = Ours<&Communicator::Broadcast, kRecv, kCount, kDtype, kRoot>,
     .hccl = CallHccl<HcclBroadcast, kRecv, kCount, kDtype, kRoot>,
     .mpi = Mpi<&MpiBaseline::Broadcast, kRecv, kCount, kDtype, kRoot>},
    {.name = "reduce",
     .kind = CollectiveKind::kReduce,
     .bus_factor = Once,
     .send_count = One,
     .recv_count = One,
     .result = ReducedAtRoot,
     .ours = Ours<&Communicator::Reduce, kSend, kRecv, kCount, kDtype, kOp, kRoot>,
     .hccl = CallHccl<HcclReduce, kSend, kRecv, kCount, kDtype, kOp, kRoot>,
     .mpi = Mpi<&MpiBaseline::Reduce, kSend, kRecv, kCount, kRoot>},
    {.name = "scatter",
     .kind = CollectiveKind::kScatter,
     .split = true,
     .bus_factor = Others,
     .send_count = ForAll,
     .recv_count = One,
     .result = BlockFromRoot,
     .ours = Ours<&Communicator::Scatter, kSend, kRecv, kCount, kDtype, kRoot>,
     .hccl = CallHccl<HcclScatter, kSend, kRecv, kCount, kDtype, kRoot>,
     .mpi = Mpi<&MpiBaseline::Scatter, kSend, kRecv, kCount, kDtype, kRoot>},
    {.name = "alltoallv",
     .kind = CollectiveKind::kAllToAllV,
     .split = true,
     .bus_factor = Others,
     .send_count = ForAll,
     .recv_count = ForAll,
     .result = Exchanged,
     .ours = OursAllToAllV,
     .hccl = ViaHcclAllToAllV,
     .mpi = MpiAllToAllV},
    {.name = "barrier",
     .kind = CollectiveKind::kBarrier,
     .sized = false,
     .bus_factor = Once,
     .send_count = Nothing,
     .recv_count = Nothing,
     .result = NoData,
     .ours = Ours<&Communicator::Barrier>,
     .hccl = CallHccl<HcclBarrier>,
     .mpi = Mpi<&MpiBaseline::Barrier>},
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
