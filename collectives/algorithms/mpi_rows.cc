// The `mpi` rows: the collective of the MPI library itself, on the same buffers.
#include "collectives/algorithms/algorithm.h"

namespace npumesh {

Status MpiAllReduce(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  return group->AllReduce(call.send, call.recv, call.count, call.dtype, call.op,
                          FindCombine(call.dtype, call.op), members.deadline);
}

Status MpiAllGather(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  return group->AllGather(call.send, call.recv, call.bytes(), members.deadline);
}

Status MpiReduceScatter(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  const std::byte* own = call.send + static_cast<uint64_t>(members.rank) * call.bytes();
  if (own != call.recv) {
    return group->ReduceScatter(call.send, call.recv, call.count, call.dtype, call.op,
                                FindCombine(call.dtype, call.op), members.deadline);
  }
  // In place by the custom of this API, which MPI does not share: the result goes through a buffer.
  std::vector<std::byte> result(call.bytes());
  NPUMESH_RETURN_IF_ERROR(group->ReduceScatter(call.send, result.data(), call.count, call.dtype,
                                               call.op, FindCombine(call.dtype, call.op),
                                               members.deadline));
  std::copy(result.begin(), result.end(), call.recv);
  return Status();
}

Status MpiBroadcast(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  return group->Broadcast(call.recv, call.bytes(), call.root, members.deadline);
}

Status MpiAllToAll(const Call& call, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  return group->AllToAllV(call.send, call.send_bytes, call.send_at, call.recv, call.recv_bytes,
                          call.recv_at, members.deadline);
}

Status MpiBarrier(const Call&, Members& members) {
  NPUMESH_ASSIGN_OR_RETURN(PlainGroup * group, members.meeting.Plain());
  return group->Barrier(members.deadline);
}

}  // namespace npumesh
