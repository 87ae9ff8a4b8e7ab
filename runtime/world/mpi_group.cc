// Plain collectives by MPI itself: the `mpi` row of every algorithm table.
#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/world/mpi_calls.h"

namespace npumesh {
namespace {

constexpr uint64_t kMaxCount = uint64_t{1} << 30;  // elements in one MPI call; counts are ints

class MpiGroup final : public PlainGroup {
 public:
  MpiGroup(std::shared_ptr<MpiCalls> calls, MPI_Comm comm, std::vector<int> world_ranks)
      : calls_(std::move(calls)), comm_(comm), ranks_(std::move(world_ranks)) {
    MPI_Comm_rank(comm_, &rank_);
  }
  ~MpiGroup() override {
    int finalized = 0;
    std::lock_guard lock(calls_->mutex);
    MPI_Finalized(&finalized);
    // Freeing is collective in MPI's eyes; a group that has failed is left to the process's end.
    if (!finalized && healthy_) MPI_Comm_free(&comm_);
  }

  Status AllReduce(const void* send, void* recv, uint64_t count, DataType dtype, ReduceOp op,
                   CombineFn combine, Deadline deadline) override {
    const uint64_t width = *BytesOf(dtype, 1);
    return WithType(dtype, op, combine, [&](MPI_Datatype type, MPI_Op mpi_op) {
      return InChunks(count, [&](uint64_t at, int chunk) {
        auto* out = static_cast<std::byte*>(recv) + at * width;
        const void* in =
            send == recv ? MPI_IN_PLACE : static_cast<const std::byte*>(send) + at * width;
        return Run("MPI allreduce", deadline, [&](MPI_Request* request) {
          return MPI_Iallreduce(in, out, chunk, type, mpi_op, comm_, request);
        });
      });
    });
  }

  Status ReduceScatter(const void* send, void* recv, uint64_t recv_count, DataType dtype,
                       ReduceOp op, CombineFn combine, Deadline deadline) override {
    const uint64_t width = *BytesOf(dtype, 1);
    const auto* in = static_cast<const std::byte*>(send);
    return WithType(dtype, op, combine, [&](MPI_Datatype type, MPI_Op mpi_op) -> Status {
      if (recv_count <= kMaxCount / ranks_.size()) {
        return Run("MPI reduce-scatter", deadline, [&](MPI_Request* request) {
          return MPI_Ireduce_scatter_block(send, recv, static_cast<int>(recv_count), type, mpi_op,
                                           comm_, request);
        });
      }
      for (size_t root = 0; root < ranks_.size(); ++root) {
        NPUMESH_RETURN_IF_ERROR(InChunks(recv_count, [&](uint64_t at, int chunk) {
          const std::byte* block = in + (root * recv_count + at) * width;
          return Run("MPI reduce", deadline, [&](MPI_Request* request) {
            return MPI_Ireduce(block, static_cast<std::byte*>(recv) + at * width, chunk, type,
                               mpi_op, static_cast<int>(root), comm_, request);
          });
        }));
      }
      return Status();
    });
  }

  Status AllGather(const void* send, void* recv, uint64_t bytes, Deadline deadline) override {
    const auto* mine = static_cast<std::byte*>(recv) + static_cast<uint64_t>(rank_) * bytes;
    const void* in = send == mine ? MPI_IN_PLACE : send;
    return WithBytes(bytes, [&](MPI_Datatype type) {
      return Run("MPI allgather", deadline, [&](MPI_Request* request) {
        return MPI_Iallgather(in, 1, type, recv, 1, type, comm_, request);
      });
    });
  }

  Status Broadcast(void* buffer, uint64_t bytes, int root, Deadline deadline) override {
    return WithBytes(bytes, [&](MPI_Datatype type) {
      return Run("MPI broadcast", deadline, [&](MPI_Request* request) {
        return MPI_Ibcast(buffer, 1, type, root, comm_, request);
      });
    });
  }

  Status AllToAllV(const void* send, std::span<const uint64_t> send_bytes,
                   std::span<const uint64_t> send_at, void* recv,
                   std::span<const uint64_t> recv_bytes, std::span<const uint64_t> recv_at,
                   Deadline deadline) override {
    const size_t n = ranks_.size();
    constexpr uint64_t kInt = std::numeric_limits<int>::max();
    std::vector<int> counts(4 * n);
    for (size_t r = 0; r < n; ++r) {
      const uint64_t values[4] = {send_bytes[r], send_at[r], recv_bytes[r], recv_at[r]};
      for (size_t k = 0; k < 4; ++k) {
        if (values[k] > kInt) {
          return PairwiseAllToAll(send, send_bytes, send_at, recv, recv_bytes, recv_at, deadline);
        }
        counts[k * n + r] = static_cast<int>(values[k]);
      }
    }
    return Run("MPI alltoallv", deadline, [&](MPI_Request* request) {
      return MPI_Ialltoallv(send, &counts[0], &counts[n], MPI_BYTE, recv, &counts[2 * n],
                            &counts[3 * n], MPI_BYTE, comm_, request);
    });
  }

  Status Barrier(Deadline deadline) override {
    return Run("MPI barrier", deadline,
               [&](MPI_Request* request) { return MPI_Ibarrier(comm_, request); });
  }

 private:
  template <typename Start>
  Status Run(std::string_view what, Deadline deadline, Start start) {
    std::vector<MPI_Request> requests(1, MPI_REQUEST_NULL);
    {
      std::lock_guard lock(calls_->mutex);
      NPUMESH_RETURN_IF_ERROR(MpiStatus(start(&requests[0]), what));
    }
    Status status = calls_->Wait(MpiCalls::Kind::kCollective, requests, ranks_, deadline, what);
    healthy_ = healthy_ && status.ok();
    return status;
  }

  template <typename Body>
  Status InChunks(uint64_t count, Body body) {
    for (uint64_t at = 0; at < count; at += kMaxCount) {
      NPUMESH_RETURN_IF_ERROR(body(at, static_cast<int>(std::min(kMaxCount, count - at))));
    }
    return Status();
  }

  template <typename Body>
  Status WithType(DataType dtype, ReduceOp op, CombineFn combine, Body body) {
    if (!NeedsCombine(dtype, op)) return body(NativeType(dtype), NativeOp(op));
    std::unique_lock lock(calls_->mutex);
    CombineType ours(combine, static_cast<int>(*BytesOf(dtype, 1)));
    lock.unlock();
    Status status = body(ours.type(), ours.op());
    lock.lock();  // until `ours` is gone
    return status;
  }

  template <typename Body>
  Status WithBytes(uint64_t bytes, Body body) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    {
      std::lock_guard lock(calls_->mutex);
      NPUMESH_RETURN_IF_ERROR(MpiStatus(MakeBytesType(bytes, &type), "MPI datatype"));
    }
    Status status = body(type);
    std::lock_guard lock(calls_->mutex);
    MPI_Type_free(&type);
    return status;
  }

  Status PairwiseAllToAll(const void* send, std::span<const uint64_t> send_bytes,
                          std::span<const uint64_t> send_at, void* recv,
                          std::span<const uint64_t> recv_bytes, std::span<const uint64_t> recv_at,
                          Deadline deadline) {
    constexpr int kTag = 0;
    std::vector<MPI_Request> requests;
    std::vector<MPI_Datatype> types;
    const auto type_of = [&](uint64_t bytes) {
      MakeBytesType(bytes, &types.emplace_back());
      return types.back();
    };
    {
      std::lock_guard lock(calls_->mutex);
      for (size_t r = 0; r < ranks_.size(); ++r) {
        MPI_Irecv(static_cast<std::byte*>(recv) + recv_at[r], 1, type_of(recv_bytes[r]),
                  static_cast<int>(r), kTag, comm_, &requests.emplace_back());
        MPI_Isend(static_cast<const std::byte*>(send) + send_at[r], 1, type_of(send_bytes[r]),
                  static_cast<int>(r), kTag, comm_, &requests.emplace_back());
      }
    }
    Status status =
        calls_->Wait(MpiCalls::Kind::kMessages, requests, ranks_, deadline, "MPI alltoallv");
    std::lock_guard lock(calls_->mutex);
    for (MPI_Datatype& type : types) MPI_Type_free(&type);
    healthy_ = healthy_ && status.ok();
    return status;
  }

  std::shared_ptr<MpiCalls> calls_;
  MPI_Comm comm_;
  std::vector<int> ranks_;
  int rank_ = 0;
  bool healthy_ = true;
};

}  // namespace

std::unique_ptr<PlainGroup> MakeMpiGroup(std::shared_ptr<MpiCalls> calls, MPI_Comm comm,
                                         std::vector<int> world_ranks) {
  return std::make_unique<MpiGroup>(std::move(calls), comm, std::move(world_ranks));
}

}  // namespace npumesh
