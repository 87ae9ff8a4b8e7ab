// What the mpi_*.cc files share: one communicator, one mutex, waiting that ends. The only header of
// npumesh with MPI types; no other folder includes it.
#ifndef NPUMESH_RUNTIME_WORLD_MPI_CALLS_H_
#define NPUMESH_RUNTIME_WORLD_MPI_CALLS_H_

#include <mpi.h>

#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/process/wait.h"
#include "runtime/base/status.h"
#include "runtime/world/notice_times.h"
#include "runtime/world/transport.h"

namespace npumesh {

// The text MPI has for `code`, as a Status; OK for MPI_SUCCESS.
Status MpiStatus(int code, std::string_view what);

// What one wait remembers of what it has said about ranks that are stopped.
struct LongWaitNotices {
  SteadyClock::time_point since = SteadyClock::now();
  std::optional<NoticeTimes> times;  // once it lasts
};

// Shared by the transport and its groups.
// Thread-safety: hold `mutex` around every MPI call.
struct MpiCalls {
  MPI_Comm comm = MPI_COMM_NULL;  // all ranks, ours alone
  std::mutex mutex;
  // How waits insist; set before the first of them, by how many ranks share this host's cores.
  WaitPolicy wait_policy;
  // Ends a wait for `world_ranks` with kPeerLost when one of them is known to be dead.
  std::function<Status(std::span<const int> world_ranks)> check;

  // Called while a wait lasts whose caller says nothing himself.
  std::function<void(LongWaitNotices& notices, std::span<const int> world_ranks,
                     std::string_view what)>
      remark;

  // Who may be the one that is waited for: "rank 2, 3 on host1"; for messages.
  std::function<std::string(std::span<const int> world_ranks)> suspects;

  // Waits until all requests are done. After an error messages are cancelled; a collective cannot
  // be, so its buffers are lost to MPI until the process ends (which is what follows a lost peer).
  enum class Kind { kMessages, kCollective };
  Status Wait(Kind kind, std::vector<MPI_Request>& requests, std::span<const int> world_ranks,
              Deadline deadline, std::string_view what);
};

// A datatype of `bytes` bytes, of any size: MPI counts are ints, this one's count is 1.
// Hold the mutex; free with MPI_Type_free.
int MakeBytesType(uint64_t bytes, MPI_Datatype* type);

// What MPI calls the type or operation; MPI_DATATYPE_NULL for a type it does not know.
MPI_Datatype NativeType(DataType dtype);
MPI_Op NativeOp(ReduceOp op);

// True when the reduction must be a CombineType: MPI's own maximum may lose a NaN, and it knows no
// 16-bit floats.
bool NeedsCombine(DataType dtype, ReduceOp op);

// A reduction by CombineFn, which travels as an attribute of the datatype. Hold the mutex while
// making and destroying one.
class CombineType {
 public:
  CombineType(CombineFn combine, int element_bytes);
  ~CombineType();
  CombineType(const CombineType&) = delete;
  CombineType& operator=(const CombineType&) = delete;
  MPI_Datatype type() const { return type_; }
  MPI_Op op() const { return op_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  MPI_Op op_ = MPI_OP_NULL;
};

// A PlainGroup over `comm`, which it frees.
std::unique_ptr<PlainGroup> MakeMpiGroup(std::shared_ptr<MpiCalls> calls, MPI_Comm comm,
                                         std::vector<int> world_ranks);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_MPI_CALLS_H_
