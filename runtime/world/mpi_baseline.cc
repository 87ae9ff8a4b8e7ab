#include "runtime/world/mpi_baseline.h"

#include <limits>
#include <optional>

#include "runtime/world/mpi_calls.h"

namespace npumesh {
namespace {

// Data that are only moved travel as unsigned integers of their width.
MPI_Datatype Moved(DataType dtype) {
  switch (BitsOf(dtype)) {
    case 8:
      return MPI_UINT8_T;
    case 16:
      return MPI_UINT16_T;
    case 32:
      return MPI_UINT32_T;
    case 64:
      return MPI_UINT64_T;
    default:
      return MPI_DATATYPE_NULL;
  }
}

}  // namespace

struct MpiBaseline::Impl {
  MPI_Comm comm = MPI_COMM_NULL;
  int size = 1;
  std::optional<CombineType> combine;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;

  // `call` gets the count as MPI wants it.
  template <typename Call>
  static Status Run(std::string_view what, uint64_t count, Call call) {
    if (count > std::numeric_limits<int>::max()) {
      return Error(Code::kUnsupported, "{}: {} elements are more than an int counts", what, count);
    }
    return MpiStatus(call(static_cast<int>(count)), what);
  }
};

Result<std::unique_ptr<MpiBaseline>> MpiBaseline::Create() {
  int initialized = 0;
  int finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (!initialized || finalized) {
    return Error(Code::kUnsupported, "MPI is not running: start the ranks by mpirun");
  }
  auto impl = std::make_unique<Impl>();
  NPUMESH_RETURN_IF_ERROR(
      MpiStatus(MPI_Comm_dup(MPI_COMM_WORLD, &impl->comm), "MPI_Comm_dup of the baseline"));
  MPI_Comm_set_errhandler(impl->comm, MPI_ERRORS_RETURN);
  MPI_Comm_size(impl->comm, &impl->size);
  return std::unique_ptr<MpiBaseline>(new MpiBaseline(std::move(impl)));
}

MpiBaseline::MpiBaseline(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

// The communicator is left to MPI_Finalize: freeing it is collective, and a peer may be lost.
MpiBaseline::~MpiBaseline() = default;

int MpiBaseline::size() const {
  return impl_->size;
}

void MpiBaseline::SetReduction(DataType dtype, ReduceOp op, CombineFn combine) {
  impl_->combine.reset();
  if (NeedsCombine(dtype, op)) {
    impl_->combine.emplace(combine, BitsOf(dtype) / 8);
    impl_->type = impl_->combine->type();
    impl_->op = impl_->combine->op();
  } else {
    impl_->type = NativeType(dtype);
    impl_->op = NativeOp(op);
  }
}

Status MpiBaseline::AllReduce(const void* send, void* recv, uint64_t count) {
  return Impl::Run("MPI_Allreduce", count, [&](int n) {
    return MPI_Allreduce(send, recv, n, impl_->type, impl_->op, impl_->comm);
  });
}

Status MpiBaseline::Reduce(const void* send, void* recv, uint64_t count, int root) {
  return Impl::Run("MPI_Reduce", count, [&](int n) {
    return MPI_Reduce(send, recv, n, impl_->type, impl_->op, root, impl_->comm);
  });
}

Status MpiBaseline::ReduceScatter(const void* send, void* recv, uint64_t recv_count) {
  return Impl::Run("MPI_Reduce_scatter_block", recv_count, [&](int n) {
    return MPI_Reduce_scatter_block(send, recv, n, impl_->type, impl_->op, impl_->comm);
  });
}

Status MpiBaseline::AllGather(const void* send, void* recv, uint64_t send_count, DataType dtype) {
  MPI_Datatype type = Moved(dtype);
  return Impl::Run("MPI_Allgather", send_count,
                   [&](int n) { return MPI_Allgather(send, n, type, recv, n, type, impl_->comm); });
}

Status MpiBaseline::Broadcast(void* buffer, uint64_t count, DataType dtype, int root) {
  MPI_Datatype type = Moved(dtype);
  return Impl::Run("MPI_Bcast", count,
                   [&](int n) { return MPI_Bcast(buffer, n, type, root, impl_->comm); });
}

Status MpiBaseline::Scatter(const void* send, void* recv, uint64_t recv_count, DataType dtype,
                            int root) {
  MPI_Datatype type = Moved(dtype);
  return Impl::Run("MPI_Scatter", recv_count, [&](int n) {
    return MPI_Scatter(send, n, type, recv, n, type, root, impl_->comm);
  });
}

Status MpiBaseline::AllToAll(const void* send, void* recv, uint64_t count, DataType dtype) {
  MPI_Datatype type = Moved(dtype);
  return Impl::Run("MPI_Alltoall", count,
                   [&](int n) { return MPI_Alltoall(send, n, type, recv, n, type, impl_->comm); });
}

Status MpiBaseline::AllToAllV(const void* send, void* recv, std::span<const int> counts,
                              std::span<const int> displacements, DataType dtype) {
  MPI_Datatype type = Moved(dtype);
  return MpiStatus(MPI_Alltoallv(send, counts.data(), displacements.data(), type, recv,
                                 counts.data(), displacements.data(), type, impl_->comm),
                   "MPI_Alltoallv");
}

Status MpiBaseline::Barrier() {
  return MpiStatus(MPI_Barrier(impl_->comm), "MPI_Barrier");
}

}  // namespace npumesh
