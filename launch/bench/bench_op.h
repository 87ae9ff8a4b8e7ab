// BenchOp: one row for each collective that `npumesh bench` knows: how to call it, ours and MPI's,
// what it must deliver, and how its time becomes bandwidth. A new collective is a new row.
#ifndef NPUMESH_LAUNCH_BENCH_BENCH_OP_H_
#define NPUMESH_LAUNCH_BENCH_BENCH_OP_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "collectives/communicator.h"
#include "collectives/contract/collective_kind.h"
#include "hccl/hccl.h"
#include "runtime/world/mpi_baseline.h"

namespace npumesh {

// The arguments of one call, on this rank.
struct BenchCall {
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
  uint64_t count = 0;  // elements, as Communicator counts them for this collective
  DataType dtype = DataType::kFloat;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
};

// How calls of the C interface are made on this rank.
struct HcclSeat {
  HcclComm comm = nullptr;  // of all ranks
  aclrtStream stream = nullptr;
  int ranks = 1;
  HcclDataType dtype = HCCL_DATA_TYPE_FP32;  // of every call
};

// A stretch of a rank's result: elements [to, to + count) are elements [from, ...) of the send
// buffer of rank `source`, or of all ranks' send buffers, reduced.
struct Piece {
  static constexpr int kAllRanks = -1;
  uint64_t to = 0;
  uint64_t count = 0;
  int source = kAllRanks;
  uint64_t from = 0;
};

// A rank of a group and the count of a call.
struct Seat {
  int rank = 0;
  int ranks = 1;
  int root = 0;
  uint64_t count = 0;
};

struct BenchOp {
  std::string_view name;
  CollectiveKind kind = CollectiveKind::kNone;
  bool sized = true;        // false: no data, one measurement
  bool split = false;       // its size is that of one block for each rank together
  bool one_buffer = false;  // sends from its receive buffer
  bool in_all = false;      // measured by `bench all`
  // Bus bandwidth is algorithm bandwidth times this, as nccl-tests define it.
  double (*bus_factor)(int ranks) = nullptr;
  // Elements of the two buffers.
  uint64_t (*send_count)(const Seat&) = nullptr;
  uint64_t (*recv_count)(const Seat&) = nullptr;
  // What the receive buffer must hold afterwards.
  std::vector<Piece> (*result)(const Seat&) = nullptr;
  // Collective over all ranks.
  Status (*ours)(Communicator&, const BenchCall&) = nullptr;
  // Only issues the call; the stream does it.
  HcclResult (*hccl)(const HcclSeat&, const BenchCall&) = nullptr;
  Status (*mpi)(MpiBaseline&, const BenchCall&) = nullptr;

  // Takes a reduction and only dtypes that reduce.
  bool reduces() const { return Reduces(kind); }
};

std::span<const BenchOp> BenchOps();

// The rows a name stands for: one, or those of "all". Errors: kInvalidArgument lists the names.
Result<std::vector<const BenchOp*>> FindBenchOps(std::string_view name);

// The size a row of the table stands for when `bytes` are asked for, as hccl_test rounds them:
// collectives that split their data take a multiple of the ranks, above 16 MiB of 512 times the
// ranks.
uint64_t AdjustedBytes(const BenchOp& op, uint64_t bytes, int ranks);

// Elements of a call of `bytes` (adjusted), rounded up, for each rank when the data are split.
uint64_t CountOf(const BenchOp& op, uint64_t bytes, DataType dtype, int ranks);

// Bytes that bandwidth counts: the rank's whole buffer, all blocks together.
uint64_t BandwidthBytes(const BenchOp& op, uint64_t count, DataType dtype, int ranks);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_BENCH_BENCH_OP_H_
