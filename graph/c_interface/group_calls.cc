// The functions of npumesh.h about groups of ranks.
#include <cstring>
#include <numeric>

#include "graph/c_interface/call.h"
#include "graph/c_interface/handles.h"

namespace npumesh {
namespace {

Status MakeGroup(npumesh_world* world, const int32_t* ranks, size_t count, const char* name,
                 npumesh_group** group) {
  NPUMESH_RETURN_IF_ERROR(CheckPointer(world, "world"));
  NPUMESH_RETURN_IF_ERROR(CheckPointer(name, "name"));
  NPUMESH_RETURN_IF_ERROR(CheckPointer(group, "group"));
  if (count > 0) NPUMESH_RETURN_IF_ERROR(CheckPointer(ranks, "ranks"));
  SpeakAs(*world);
  std::vector<int> members(ranks, ranks + count);
  if (count == 0) {
    members.resize(static_cast<size_t>(world->world->size()));
    std::iota(members.begin(), members.end(), 0);
  }
  auto made = std::make_unique<npumesh_group>();
  made->world = world;
  NPUMESH_ASSIGN_OR_RETURN(made->communicator, Communicator::Create(*world->world, *world->memory,
                                                                    name, std::move(members)));
  ++world->groups;
  *group = made.release();
  return Status();
}

Status CloseGroup(npumesh_group* group) {
  if (group == nullptr) return Status();
  npumesh_world& world = *group->world;
  SpeakAs(world);
  const std::unique_ptr<npumesh_group> owned(group);
  const Status closed = owned->communicator->Close();
  owned->communicator.reset();
  --world.groups;
  for (const npumesh_group::Buffer& buffer : {owned->send, owned->recv}) {
    if (buffer.address == nullptr) continue;
    NPUMESH_RETURN_IF_ERROR(world.memory->Free(buffer.address));
  }
  return closed;
}

// ---- memory of the caller in device memory ----

Status Reserve(npumesh_group& group, uint64_t bytes, npumesh_group::Buffer& buffer) {
  if (buffer.address != nullptr && buffer.bytes >= bytes) return Status();
  DeviceMemory& memory = *group.world->memory;
  if (buffer.address != nullptr) NPUMESH_RETURN_IF_ERROR(memory.Free(buffer.address));
  buffer = npumesh_group::Buffer();
  const Result<void*> address = memory.Allocate(bytes);
  if (!address.ok()) {
    group.communicator->FailNext(address.status());  // the others would wait
    return address.status();
  }
  buffer = {*address, bytes};
  return Status();
}

// One tensor of a call: the caller's memory and where the communicator works on it.
class Operand {
 public:
  // `bytes` of memory that the call reads, writes or both.
  static Result<Operand> Of(npumesh_group& group, const void* memory, uint64_t bytes, bool reads,
                            npumesh_group::Buffer& buffer, const char* what) {
    Operand operand;
    operand.memory_ = const_cast<void*>(memory);
    operand.bytes_ = bytes;
    if (memory == nullptr && bytes > 0) {
      return Error(Code::kInvalidArgument, "{} is NULL, expected memory of {} bytes", what, bytes);
    }
    if (memory != nullptr && group.world->memory->Contains(memory, bytes)) {
      operand.address_ = operand.memory_;
      return operand;
    }
    NPUMESH_RETURN_IF_ERROR(Reserve(group, bytes, buffer));
    operand.address_ = buffer.address;
    if (reads && bytes > 0) std::memcpy(operand.address_, memory, bytes);
    return operand;
  }
  // What a rank has to have that neither reads nor writes.
  static Operand None() { return Operand(); }

  void* address() const { return address_; }
  // After a call that wrote it.
  void Return() const {
    if (bytes_ > 0 && address_ != memory_) std::memcpy(memory_, address_, bytes_);
  }

 private:
  void* memory_ = nullptr;
  void* address_ = nullptr;
  uint64_t bytes_ = 0;
};

// The dtype and what `count` elements take.
struct Elements {
  DataType dtype;
  uint64_t bytes;
};

Result<Elements> ElementsOf(uint64_t count, int32_t number) {
  const std::optional<DataType> dtype = DataTypeFromRuntime(number);
  if (!dtype || BitsOf(*dtype) == 0) {
    return Error(Code::kInvalidArgument, "expected a dtype with a width, seen {} ({})", number,
                 dtype ? Name(*dtype) : "unknown");
  }
  const std::optional<uint64_t> bytes = BytesOf(*dtype, count);
  if (bytes) return Elements{*dtype, *bytes};
  return Error(Code::kInvalidArgument, "{} elements of {} have more bytes than there can be", count,
               Name(*dtype));
}

// `count` elements for each rank of the group.
Result<Elements> BlocksOf(const npumesh_group& group, uint64_t count, int32_t number) {
  uint64_t all = 0;
  if (__builtin_mul_overflow(count, static_cast<uint64_t>(group.communicator->size()), &all)) {
    return Error(Code::kInvalidArgument,
                 "{} elements for each of {} ranks are more than there can "
                 "be",
                 count, group.communicator->size());
  }
  return ElementsOf(all, number);
}

Result<ReduceOp> OpOf(npumesh_reduce op) {
  if (op >= NPUMESH_SUM && op <= NPUMESH_MIN) return static_cast<ReduceOp>(op);
  return Error(Code::kInvalidArgument, "reduction {} is not known", static_cast<int>(op));
}

Status AllReduce(npumesh_group& group, const void* send, void* recv, uint64_t count, int32_t dtype,
                 npumesh_reduce reduction) {
  NPUMESH_ASSIGN_OR_RETURN(const ReduceOp op, OpOf(reduction));
  NPUMESH_ASSIGN_OR_RETURN(const Elements all, ElementsOf(count, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Operand in,
                           Operand::Of(group, send, all.bytes, true, group.send, "send"));
  NPUMESH_ASSIGN_OR_RETURN(const Operand out,
                           Operand::Of(group, recv, all.bytes, false, group.recv, "recv"));
  NPUMESH_RETURN_IF_ERROR(
      group.communicator->AllReduce(in.address(), out.address(), count, all.dtype, op));
  out.Return();
  return Status();
}

Status ReduceTo(npumesh_group& group, const void* send, void* recv, uint64_t count, int32_t dtype,
                npumesh_reduce reduction, int32_t root) {
  NPUMESH_ASSIGN_OR_RETURN(const ReduceOp op, OpOf(reduction));
  NPUMESH_ASSIGN_OR_RETURN(const Elements all, ElementsOf(count, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Operand in,
                           Operand::Of(group, send, all.bytes, true, group.send, "send"));
  Operand out = Operand::None();
  if (group.communicator->rank() == root) {
    NPUMESH_ASSIGN_OR_RETURN(out, Operand::Of(group, recv, all.bytes, false, group.recv, "recv"));
  }
  NPUMESH_RETURN_IF_ERROR(
      group.communicator->Reduce(in.address(), out.address(), count, all.dtype, op, root));
  out.Return();
  return Status();
}

Status AllGather(npumesh_group& group, const void* send, void* recv, uint64_t count,
                 int32_t dtype) {
  NPUMESH_ASSIGN_OR_RETURN(const Elements mine, ElementsOf(count, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Elements all, BlocksOf(group, count, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Operand in,
                           Operand::Of(group, send, mine.bytes, true, group.send, "send"));
  NPUMESH_ASSIGN_OR_RETURN(const Operand out,
                           Operand::Of(group, recv, all.bytes, false, group.recv, "recv"));
  NPUMESH_RETURN_IF_ERROR(
      group.communicator->AllGather(in.address(), out.address(), count, mine.dtype));
  out.Return();
  return Status();
}

Status ReduceScatter(npumesh_group& group, const void* send, void* recv, uint64_t count,
                     int32_t dtype, npumesh_reduce reduction) {
  NPUMESH_ASSIGN_OR_RETURN(const ReduceOp op, OpOf(reduction));
  NPUMESH_ASSIGN_OR_RETURN(const Elements mine, ElementsOf(count, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Elements all, BlocksOf(group, count, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Operand in,
                           Operand::Of(group, send, all.bytes, true, group.send, "send"));
  NPUMESH_ASSIGN_OR_RETURN(const Operand out,
                           Operand::Of(group, recv, mine.bytes, false, group.recv, "recv"));
  NPUMESH_RETURN_IF_ERROR(
      group.communicator->ReduceScatter(in.address(), out.address(), count, mine.dtype, op));
  out.Return();
  return Status();
}

Status BroadcastFrom(npumesh_group& group, void* data, uint64_t count, int32_t dtype,
                     int32_t root) {
  NPUMESH_ASSIGN_OR_RETURN(const Elements all, ElementsOf(count, dtype));
  const bool sends = group.communicator->rank() == root;
  NPUMESH_ASSIGN_OR_RETURN(const Operand both,
                           Operand::Of(group, data, all.bytes, sends, group.send, "data"));
  NPUMESH_RETURN_IF_ERROR(group.communicator->Broadcast(both.address(), count, all.dtype, root));
  if (!sends) both.Return();
  return Status();
}

Status AllToAll(npumesh_group& group, const void* send, void* recv, uint64_t count, int32_t dtype) {
  NPUMESH_ASSIGN_OR_RETURN(const Elements all, BlocksOf(group, count, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Operand in,
                           Operand::Of(group, send, all.bytes, true, group.send, "send"));
  NPUMESH_ASSIGN_OR_RETURN(const Operand out,
                           Operand::Of(group, recv, all.bytes, false, group.recv, "recv"));
  NPUMESH_RETURN_IF_ERROR(
      group.communicator->AllToAll(in.address(), out.address(), count, all.dtype));
  out.Return();
  return Status();
}

// Blocks of these sizes, one after the other.
struct PackedBlocks {
  std::span<const uint64_t> counts;
  std::vector<uint64_t> displacements;
  Elements all;
};

Result<PackedBlocks> PackedBlocksOf(const npumesh_group& group, const uint64_t* counts,
                                    int32_t dtype, const char* what) {
  NPUMESH_RETURN_IF_ERROR(CheckPointer(counts, what));
  PackedBlocks blocks;
  blocks.counts = {counts, static_cast<size_t>(group.communicator->size())};
  uint64_t sum = 0;
  for (const uint64_t count : blocks.counts) {
    blocks.displacements.push_back(sum);
    if (__builtin_add_overflow(sum, count, &sum)) {
      return Error(Code::kInvalidArgument, "{}: their sum is more than there can be", what);
    }
  }
  NPUMESH_ASSIGN_OR_RETURN(blocks.all, ElementsOf(sum, dtype));
  return blocks;
}

Status AllToAllV(npumesh_group& group, const void* send, const uint64_t* send_counts, void* recv,
                 const uint64_t* recv_counts, int32_t dtype) {
  NPUMESH_ASSIGN_OR_RETURN(const PackedBlocks from,
                           PackedBlocksOf(group, send_counts, dtype, "send_counts"));
  NPUMESH_ASSIGN_OR_RETURN(const PackedBlocks to,
                           PackedBlocksOf(group, recv_counts, dtype, "recv_counts"));
  NPUMESH_ASSIGN_OR_RETURN(const Operand in,
                           Operand::Of(group, send, from.all.bytes, true, group.send, "send"));
  NPUMESH_ASSIGN_OR_RETURN(const Operand out,
                           Operand::Of(group, recv, to.all.bytes, false, group.recv, "recv"));
  NPUMESH_RETURN_IF_ERROR(
      group.communicator->AllToAllV(in.address(), from.counts, from.displacements, out.address(),
                                    to.counts, to.displacements, from.all.dtype));
  out.Return();
  return Status();
}

Status Send(npumesh_group& group, const void* data, uint64_t count, int32_t dtype, int32_t peer) {
  NPUMESH_ASSIGN_OR_RETURN(const Elements all, ElementsOf(count, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Operand in,
                           Operand::Of(group, data, all.bytes, true, group.send, "data"));
  return group.communicator->Send(in.address(), count, all.dtype, peer);
}

Status Recv(npumesh_group& group, void* data, uint64_t count, int32_t dtype, int32_t peer) {
  NPUMESH_ASSIGN_OR_RETURN(const Elements all, ElementsOf(count, dtype));
  NPUMESH_ASSIGN_OR_RETURN(const Operand out,
                           Operand::Of(group, data, all.bytes, false, group.recv, "data"));
  NPUMESH_RETURN_IF_ERROR(group.communicator->Recv(out.address(), count, all.dtype, peer));
  out.Return();
  return Status();
}

template <typename Body>
npumesh_code CallGroup(const char* call, npumesh_group* group, Body body) {
  return Call(call, [&]() -> Status {
    NPUMESH_RETURN_IF_ERROR(CheckPointer(group, "group"));
    const std::lock_guard lock(group->turn);
    SpeakAs(*group->world);
    return body(*group);
  });
}

}  // namespace
}  // namespace npumesh

extern "C" npumesh_code npumesh_make_group(npumesh_world* world, const int32_t* ranks, size_t count,
                                           const char* name, npumesh_group** group) {
  return npumesh::Call(__func__,
                       [&] { return npumesh::MakeGroup(world, ranks, count, name, group); });
}

extern "C" npumesh_code npumesh_close_group(npumesh_group* group) {
  return npumesh::Call(__func__, [&] { return npumesh::CloseGroup(group); });
}

extern "C" npumesh_code npumesh_get_group(npumesh_group* group, int32_t* rank, int32_t* size) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) -> npumesh::Status {
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(rank, "rank"));
    NPUMESH_RETURN_IF_ERROR(npumesh::CheckPointer(size, "size"));
    *rank = of.communicator->rank();
    *size = of.communicator->size();
    return npumesh::Status();
  });
}

extern "C" npumesh_code npumesh_all_reduce(npumesh_group* group, const void* send, void* recv,
                                           uint64_t count, int32_t dtype, npumesh_reduce op) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) {
    return npumesh::AllReduce(of, send, recv, count, dtype, op);
  });
}

extern "C" npumesh_code npumesh_reduce_to(npumesh_group* group, const void* send, void* recv,
                                          uint64_t count, int32_t dtype, npumesh_reduce op,
                                          int32_t root) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) {
    return npumesh::ReduceTo(of, send, recv, count, dtype, op, root);
  });
}

extern "C" npumesh_code npumesh_all_gather(npumesh_group* group, const void* send, void* recv,
                                           uint64_t count, int32_t dtype) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) {
    return npumesh::AllGather(of, send, recv, count, dtype);
  });
}

extern "C" npumesh_code npumesh_reduce_scatter(npumesh_group* group, const void* send, void* recv,
                                               uint64_t count, int32_t dtype, npumesh_reduce op) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) {
    return npumesh::ReduceScatter(of, send, recv, count, dtype, op);
  });
}

extern "C" npumesh_code npumesh_broadcast(npumesh_group* group, void* data, uint64_t count,
                                          int32_t dtype, int32_t root) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) {
    return npumesh::BroadcastFrom(of, data, count, dtype, root);
  });
}

extern "C" npumesh_code npumesh_all_to_all(npumesh_group* group, const void* send, void* recv,
                                           uint64_t count, int32_t dtype) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) {
    return npumesh::AllToAll(of, send, recv, count, dtype);
  });
}

extern "C" npumesh_code npumesh_all_to_all_v(npumesh_group* group, const void* send,
                                             const uint64_t* send_counts, void* recv,
                                             const uint64_t* recv_counts, int32_t dtype) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) {
    return npumesh::AllToAllV(of, send, send_counts, recv, recv_counts, dtype);
  });
}

extern "C" npumesh_code npumesh_barrier(npumesh_group* group) {
  return npumesh::CallGroup(__func__, group,
                            [&](npumesh_group& of) { return of.communicator->Barrier(); });
}

extern "C" npumesh_code npumesh_send(npumesh_group* group, const void* data, uint64_t count,
                                     int32_t dtype, int32_t peer) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) {
    return npumesh::Send(of, data, count, dtype, peer);
  });
}

extern "C" npumesh_code npumesh_recv(npumesh_group* group, void* data, uint64_t count,
                                     int32_t dtype, int32_t peer) {
  return npumesh::CallGroup(__func__, group, [&](npumesh_group& of) {
    return npumesh::Recv(of, data, count, dtype, peer);
  });
}
