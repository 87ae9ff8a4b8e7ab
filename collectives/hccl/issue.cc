#include "collectives/hccl/issue.h"

#include "collectives/hccl/group_calls.h"

namespace npumesh {

Verdict Enqueue(aclrtStream stream, Task task) {
  const Result<Stream*> queue = StreamOf(stream);
  if (!queue.ok()) {
    return Refuse(HCCL_E_PARA, "EI0003: stream: {}", queue.status().message());
  }
  (*queue)->Enqueue(std::move(task));
  return {};
}

HcclResult IssueTask(const ArgumentCheck& check, const Comm* comm, aclrtStream stream, Task task) {
  if (!check.ok()) {
    const bool told = check.outside_hbm() && comm->size() > 1;
    const Verdict told_peers = told ? Enqueue(stream, std::move(task)) : Verdict();
    return Answer(check.call(), told_peers.ok() ? check.verdict() : told_peers);
  }
  if (comm->suspended()) {
    return Answer(check.call(),
                  Refuse(HCCL_E_SUSPENDING, "communicator \"{}\" is suspended; call HcclCommResume",
                         comm->name()));
  }
  GroupCalls& group = GroupCalls::OfThread();
  return Answer(check.call(), group.open() ? group.AddCollective(stream, std::move(task))
                                           : Enqueue(stream, std::move(task)));
}

}  // namespace npumesh
