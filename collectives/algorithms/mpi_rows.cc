// The `mpi` rows: the collective of the MPI library itself, on the same buffers. What PlainGroup
// lacks is made of the collective that moves the same bytes.
#include <algorithm>
#include <cstring>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {

Status MpiAllReduce(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  return group->AllReduce(call.send, call.recv, call.count, call.dtype, call.op,
                          FindCombine(call.dtype, call.op), members.deadline());
}

Status MpiAllGather(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  return group->AllGather(call.send, call.recv, call.bytes(), members.deadline());
}

Status MpiReduceScatter(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  const std::byte* own = call.send + static_cast<uint64_t>(members.rank) * call.bytes();
  if (own != call.recv) {
    return group->ReduceScatter(call.send, call.recv, call.count, call.dtype, call.op,
                                FindCombine(call.dtype, call.op), members.deadline());
  }
  // In place by the custom of this API, which MPI does not share: the result goes through a buffer.
  std::vector<std::byte> result(call.bytes());
  NPUMESH_RETURN_IF_ERROR(group->ReduceScatter(call.send, result.data(), call.count, call.dtype,
                                               call.op, FindCombine(call.dtype, call.op),
                                               members.deadline()));
  std::copy(result.begin(), result.end(), call.recv);
  return Status();
}

Status MpiBroadcast(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  return group->Broadcast(call.recv, call.bytes(), call.root, members.deadline());
}

Status MpiAllToAll(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  std::vector<uint64_t> send_bytes, send_at, recv_bytes, recv_at;
  for (int r = 0; r < members.size; ++r) {
    send_bytes.push_back(call.send_block_bytes(r));
    send_at.push_back(call.send_block_at(r));
    recv_bytes.push_back(call.recv_block_bytes(r));
    recv_at.push_back(call.recv_block_at(r));
  }
  return group->AllToAllV(call.send, send_bytes, send_at, call.recv, recv_bytes, recv_at,
                          members.deadline());
}

// Through a buffer on every rank: MPI libraries choose an algorithm by whether a call is in place,
// which only the root can know here.
Status MpiReduce(const Call& call, Members& members) {
  std::vector<std::byte> result(call.bytes());
  Call mine = call;
  mine.recv = result.data();
  NPUMESH_RETURN_IF_ERROR(MpiAllReduce(mine, members));
  if (members.rank == call.root) std::copy(result.begin(), result.end(), call.recv);
  return Status();
}

// The root's own block does not travel. Where nothing arrives MPI gets a separate buffer, because
// it takes equal pointers for a call in place.
Status MpiScatter(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  const auto n = static_cast<size_t>(members.size);
  const auto root = static_cast<size_t>(call.root);
  const std::vector<uint64_t> nothing(n, 0);
  if (members.rank != call.root) {
    std::vector<uint64_t> recv_bytes(n, 0);
    recv_bytes[root] = call.bytes();
    std::byte unused{};
    return group->AllToAllV(&unused, nothing, nothing, call.recv, recv_bytes, nothing,
                            members.deadline());
  }
  std::vector<uint64_t> send_bytes(n, call.bytes());
  send_bytes[root] = 0;
  std::vector<uint64_t> send_at(n);
  for (size_t r = 0; r < n; ++r) send_at[r] = r * call.bytes();
  if (call.count != 0 && call.recv != call.send + send_at[root]) {
    std::memcpy(call.recv, call.send + send_at[root], call.bytes());
  }
  std::byte unused{};
  return group->AllToAllV(call.send, send_bytes, send_at, &unused, nothing, nothing,
                          members.deadline());
}

// MPI moves the operands; they are combined here, in rank order.
Status MpiReduceScatterV(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  const auto n = static_cast<size_t>(members.size);
  const uint64_t bytes = call.recv_bytes[0];
  std::vector<std::byte> operands(n * bytes);
  std::vector<uint64_t> at(n);
  std::vector<const void*> inputs(n);
  for (size_t r = 0; r < n; ++r) {
    at[r] = r * bytes;
    inputs[r] = operands.data() + at[r];
  }
  NPUMESH_RETURN_IF_ERROR(group->AllToAllV(call.send, call.send_bytes, call.send_at,
                                           operands.data(), call.recv_bytes, at,
                                           members.deadline()));
  void* output = call.recv;
  FindReduce(call.dtype, call.op)(inputs.data(), members.size, &output, 1,
                                  bytes / *BytesOf(call.dtype, 1), false);
  return Status();
}

Status MpiBarrier(const Call&, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  return group->Barrier(members.deadline());
}

}  // namespace npumesh
