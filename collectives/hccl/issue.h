// Issue: from checked arguments to work on a stream.
//
// Thread-safety: may be called from any thread.
#ifndef NPUMESH_COLLECTIVES_HCCL_ISSUE_H_
#define NPUMESH_COLLECTIVES_HCCL_ISSUE_H_

#include <memory>
#include <span>
#include <vector>

#include "collectives/hccl/argument_check.h"
#include "collectives/hccl/comm.h"

namespace npumesh {

// Ends an operator call: refuses what `check` refuses and what a suspended communicator gets, else
// appends `work` to the stream (or to the thread's open group). A rank whose only fault is a buffer
// outside of its HBM still comes, so that its peers read the reason instead of waiting.
HcclResult Issue(const ArgumentCheck& check, aclrtStream stream, Comm::Work work);

// Appends `work` to the stream; E_PARA for a handle that is no stream.
Verdict Enqueue(std::shared_ptr<Comm> comm, aclrtStream stream, std::string_view call,
                Comm::Work work);

// Appends checked sends and receives that do not block each other.
Verdict EnqueueBatch(std::shared_ptr<Comm> comm, aclrtStream stream,
                     std::vector<HcclSendRecvItem> items);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_ISSUE_H_
