// Issue: from checked arguments to work on a stream.
//
// Thread-safety: may be called from any thread.
#ifndef NPUMESH_COLLECTIVES_HCCL_CALLS_ISSUE_H_
#define NPUMESH_COLLECTIVES_HCCL_CALLS_ISSUE_H_

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "collectives/hccl/comm/argument_check.h"
#include "collectives/hccl/comm/comm.h"
#include "runtime/device/task.h"

namespace npumesh {

// `work`, which takes the Communicator, as a stream does it. `call`: the operator's name, a
// literal.
template <typename Work>
Task OnComm(std::shared_ptr<Comm> comm, std::string_view call, Work work) {
  return [comm = std::move(comm), call, work = std::move(work)] { return comm->Run(call, work); };
}

// Ends an operator call: refuses what `check` refuses and what a suspended communicator gets, else
// appends `task` to the stream (or to the thread's open group). A rank whose only fault is a buffer
// outside of its HBM still comes, so that its peers read the reason instead of waiting.
// `comm` is the task's; null when the check has found none.
HcclResult IssueTask(const ArgumentCheck& check, const Comm* comm, aclrtStream stream, Task&& task);

// The same for work on the communicator that was checked.
template <typename Work>
HcclResult Issue(ArgumentCheck& check, aclrtStream stream, Work work) {
  const Comm* const comm = check.comm().get();
  return IssueTask(check, comm, stream, OnComm(check.TakeComm(), check.call(), std::move(work)));
}

// Appends `task` of `call` to the stream; E_PARA for a handle that is no stream, E_SYSCALL where
// the system gives the stream no thread.
Verdict Enqueue(std::string_view call, aclrtStream stream, Task&& task);

// Writes the line of HCCL_ENTRY_LOG_ENABLE for a call. REQUIRES: check.entry(). `comm` may be null.
[[gnu::cold]] void WriteEntry(const ArgumentCheck& check, const Comm* comm, aclrtStream stream);
// The same; nothing when that is off.
inline void LogEntry(const ArgumentCheck& check, const Comm* comm, aclrtStream stream) {
  if (check.entry() != nullptr) WriteEntry(check, comm, stream);
}

// Appends checked sends and receives that do not block each other.
Verdict EnqueueBatch(std::shared_ptr<Comm> comm, aclrtStream stream,
                     std::vector<HcclSendRecvItem> items);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CALLS_ISSUE_H_
