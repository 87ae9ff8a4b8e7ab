// Send, receive, batches of them, and groups of calls.
#include "collectives/hccl/calls/batch.h"
#include "collectives/hccl/calls/group_calls.h"
#include "collectives/hccl/calls/issue.h"
#include "hccl/hccl.h"

namespace npumesh {

Verdict EnqueueBatch(std::shared_ptr<Comm> comm, aclrtStream stream,
                     std::vector<HcclSendRecvItem> items) {
  constexpr std::string_view kCall = "HcclBatchSendRecv";
  return Enqueue(kCall, stream,
                 OnComm(std::move(comm), kCall, [items = std::move(items)](Communicator& group) {
                   return RunBatch(group, items);
                 }));
}

namespace {

// Sends and receives with oneself have no peer: refused, except alone, where they do nothing.
HcclResult SendOrReceive(std::string_view call, HcclSendRecvItem item, std::string_view peer,
                         HcclComm comm, aclrtStream stream) {
  if (item.count == 0) return HCCL_SUCCESS;
  const bool sends = item.sendRecvType == HCCL_SEND;
  const std::string_view buffer = sends ? "sendBuf" : "recvBuf";
  ArgumentCheck check(call);
  check.NotNull("comm", comm).NotNull("stream", stream).NotNull(buffer, item.buf);
  check.Count("count", item.count).Moves(item.dataType).Live(comm);
  check.RankInComm(peer, item.remoteRank);
  if (check.ok() && check.size() == 1) return HCCL_SUCCESS;
  if (check.ok() && item.remoteRank == check.rank()) {
    check.Holds(false, HCCL_E_NOT_SUPPORT, fmt::format("EI0003: {} is this rank itself", peer));
  }
  const ElementType* type = FindElementType(item.dataType);
  check.InHbm(buffer, item.buf, type ? type->bytes * item.count : 0);
  GroupCalls& group = GroupCalls::OfThread();
  if (check.ok() && !check.comm()->suspended() && group.open()) {
    LogEntry(check, check.comm().get(), stream);
    return Answer(call, group.AddPointToPoint(check.comm(), stream, item));
  }
  return Issue(check, stream, [=](Communicator& members) {
    const auto remote = static_cast<int>(item.remoteRank);
    return sends ? members.Send(item.buf, item.count, type->dtype, remote)
                 : members.Recv(item.buf, item.count, type->dtype, remote);
  });
}

}  // namespace
}  // namespace npumesh

using namespace npumesh;  // NOLINT: the rest of this file is the C interface

HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
                    HcclComm comm, aclrtStream stream) try {
  return SendOrReceive("HcclSend", {HCCL_SEND, sendBuf, count, dataType, destRank}, "destRank",
                       comm, stream);
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
                    HcclComm comm, aclrtStream stream) try {
  return SendOrReceive("HcclRecv", {HCCL_RECV, recvBuf, count, dataType, srcRank}, "srcRank", comm,
                       stream);
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm,
                             aclrtStream stream) try {
  if (itemNum == 0) return HCCL_SUCCESS;
  ArgumentCheck check("HcclBatchSendRecv");
  check.NotNull("comm", comm).NotNull("stream", stream).NotNull("sendRecvInfo", sendRecvInfo);
  check.Holds(!GroupCalls::OfThread().open(), HCCL_E_NOT_SUPPORT,
              "HcclBatchSendRecv is not allowed between HcclGroupStart and HcclGroupEnd");
  check.Live(comm);
  if (!check.ok()) return Answer(check.call(), check.verdict());
  const std::vector<HcclSendRecvItem> items(sendRecvInfo, sendRecvInfo + itemNum);
  for (const HcclSendRecvItem& item : items) CheckItem(check, item);
  if (check.ok()) {
    const Verdict together = CheckItems(items, check.rank());
    check.Holds(together.ok(), together.result, together.why);
  }
  return Issue(check, stream, [items](Communicator& group) { return RunBatch(group, items); });
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclGroupStart() try {
  GroupCalls::OfThread().Start();
  return HCCL_SUCCESS;
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclGroupEnd() try {
  return Answer("HcclGroupEnd", GroupCalls::OfThread().End());
} catch (...) {
  return AnswerThrown(__func__);
}

HcclResult HcclGroupStatusGet(bool* isGroupEnabled) try {
  if (isGroupEnabled == nullptr) {
    return Answer("HcclGroupStatusGet", Refuse(HCCL_E_PTR, "EI0003: isGroupEnabled is null"));
  }
  *isGroupEnabled = GroupCalls::OfThread().open();
  return HCCL_SUCCESS;
} catch (...) {
  return AnswerThrown(__func__);
}
