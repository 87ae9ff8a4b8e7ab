#include "collectives/hccl/issue.h"

#include "collectives/hccl/group_calls.h"

namespace npumesh {

Verdict Enqueue(std::shared_ptr<Comm> comm, aclrtStream stream, std::string_view call,
                Comm::Work work) {
  const Result<Stream*> queue = StreamOf(stream);
  if (!queue.ok()) {
    return Refuse(HCCL_E_PARA, "EI0003: stream: {}", queue.status().message());
  }
  (*queue)->Enqueue([comm = std::move(comm), work = std::move(work), name = std::string(call)] {
    return comm->Run(name, work);
  });
  return {};
}

HcclResult Issue(const ArgumentCheck& check, aclrtStream stream, Comm::Work work) {
  const std::shared_ptr<Comm>& comm = check.comm();
  if (!check.ok()) {
    const bool told = check.outside_hbm() && comm->size() > 1;
    const Verdict told_peers =
        told ? Enqueue(comm, stream, check.call(), std::move(work)) : Verdict();
    return Answer(check.call(), told_peers.ok() ? check.verdict() : told_peers);
  }
  if (comm->suspended()) {
    return Answer(check.call(),
                  Refuse(HCCL_E_SUSPENDING, "communicator \"{}\" is suspended; call HcclCommResume",
                         comm->name()));
  }
  const auto enqueue = [comm, stream, call = std::string(check.call()), work = std::move(work)] {
    return Enqueue(comm, stream, call, work);
  };
  GroupCalls& group = GroupCalls::OfThread();
  return Answer(check.call(), group.open() ? group.AddCollective(enqueue) : enqueue());
}

}  // namespace npumesh
