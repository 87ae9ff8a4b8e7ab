#include "runtime/world/mpi_calls.h"

#include <algorithm>

namespace npumesh {

Status MpiStatus(int code, std::string_view what) {
  if (code == MPI_SUCCESS) return Status();
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Error(Code::kPeerLost, "{}: {}", what,
               std::string_view(text, static_cast<size_t>(length)));
}

Status MpiCalls::Wait(Kind kind, std::vector<MPI_Request>& requests,
                      std::span<const int> world_ranks, Deadline deadline, std::string_view what) {
  int result = MPI_SUCCESS;
  const auto done = [&] {
    int flag = 0;
    std::lock_guard lock(mutex);
    result =
        MPI_Testall(static_cast<int>(requests.size()), requests.data(), &flag, MPI_STATUSES_IGNORE);
    return flag != 0 || result != MPI_SUCCESS;
  };
  std::optional<LongWaitNotices> notices;
  const auto watch = [&]() -> Status {
    NPUMESH_RETURN_IF_ERROR(check(world_ranks));
    if (deadline.meanwhile) {
      NPUMESH_RETURN_IF_ERROR((*deadline.meanwhile)());
    } else {
      if (!notices) notices.emplace();
      remark(*notices, world_ranks, what);
    }
    if (deadline.expired())
      return Error(Code::kTimeout, "no answer in time from {}", suspects(world_ranks));
    return Status();
  };
  Status status = WaitUntil(wait_policy, done, watch);
  if (status.ok()) return MpiStatus(result, what);
  if (kind == Kind::kCollective) return status.WithContext(what);
  std::lock_guard lock(mutex);
  for (MPI_Request& request : requests) {
    if (request == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }
  return status.WithContext(what);
}

int MakeBytesType(uint64_t bytes, MPI_Datatype* type) {
  constexpr uint64_t kBlock = uint64_t{1} << 24;
  MPI_Datatype block;
  if (int code = MPI_Type_contiguous(static_cast<int>(kBlock), MPI_BYTE, &block)) return code;
  int lengths[2] = {static_cast<int>(bytes / kBlock), static_cast<int>(bytes % kBlock)};
  MPI_Aint offsets[2] = {0, static_cast<MPI_Aint>(bytes - bytes % kBlock)};
  MPI_Datatype parts[2] = {block, MPI_BYTE};
  int code = MPI_Type_create_struct(2, lengths, offsets, parts, type);
  MPI_Type_free(&block);
  if (code == MPI_SUCCESS) code = MPI_Type_commit(type);
  return code;
}

}  // namespace npumesh
