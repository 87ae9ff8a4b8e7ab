#include "collectives/hccl/calls/issue.h"

#include "collectives/hccl/calls/group_calls.h"
#include "runtime/acl/limits/collective_cores.h"
#include "runtime/base/log.h"

namespace npumesh {

Verdict Enqueue(std::string_view call, aclrtStream stream, Task&& task) {
  Stream* const queue = FindStream(stream);
  if (queue == nullptr) {
    return Refuse(HCCL_E_PARA, "EI0003: stream: {}", StreamOf(stream).status().message());
  }
  const Status ready = queue->Ready();
  if (!ready.ok()) return VerdictOf(ready);
  if (queue->records()) {
    queue->Enqueue(std::move(task), NoteOfCollective(call, stream));
  } else {
    queue->Enqueue(std::move(task));
  }
  return {};
}

void WriteEntry(const ArgumentCheck& check, const Comm* comm, aclrtStream stream) {
  constexpr std::string_view kPrefix = "Hccl";
  const std::string name = comm ? comm->name() : "";
  int32_t id = -1;  // of no stream
  if (FindStream(stream) != nullptr) aclrtStreamGetId(stream, &id);
  // Written whatever the level is: the program has asked for it.
  WriteLog(LogLevel::kInfo, {__FILE__, __LINE__},
           fmt::format("Entry-{}: tag[{}_{}], {}{}localRank[{}], streamId[{}], comm[{}]",
                       check.call(), check.call().substr(kPrefix.size()), name, *check.entry(),
                       check.entry()->empty() ? "" : ", ", comm ? comm->rank() : 0, id, name));
}

HcclResult IssueTask(const ArgumentCheck& check, const Comm* comm, aclrtStream stream,
                     Task&& task) {
  LogEntry(check, comm, stream);
  if (!check.ok()) {
    const bool told = check.outside_hbm() && comm->size() > 1;
    const Verdict told_peers = told ? Enqueue(check.call(), stream, std::move(task)) : Verdict();
    return Answer(check.call(), told_peers.ok() ? check.verdict() : told_peers);
  }
  if (comm->suspended()) {
    return Answer(check.call(),
                  Refuse(HCCL_E_SUSPENDING, "communicator \"{}\" is suspended; call HcclCommResume",
                         comm->name()));
  }
  GroupCalls& group = GroupCalls::OfThread();
  return Answer(check.call(), group.open()
                                  ? group.AddCollective(check.call(), stream, std::move(task))
                                  : Enqueue(check.call(), stream, std::move(task)));
}

}  // namespace npumesh
