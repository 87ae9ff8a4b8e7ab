#include "collectives/hccl/calls/group_calls.h"

#include <algorithm>

#include "collectives/hccl/calls/issue.h"
#include "collectives/hccl/creation/device_threads.h"

namespace npumesh {
namespace {

std::string_view Name(GroupCalls::Kind kind) {
  switch (kind) {
    case GroupCalls::Kind::kManagement:
      return "communicator management";
    case GroupCalls::Kind::kCollective:
      return "collectives";
    case GroupCalls::Kind::kPointToPoint:
      return "sends and receives";
    case GroupCalls::Kind::kNone:
      break;
  }
  return "nothing";
}

bool SameLane(const HcclSendRecvItem& a, const HcclSendRecvItem& b) {
  return a.sendRecvType == b.sendRecvType && a.remoteRank == b.remoteRank;
}

}  // namespace

GroupCalls& GroupCalls::OfThread() {
  thread_local GroupCalls group;
  return group;
}

Verdict GroupCalls::Become(Kind kind) {
  if (kind_ == Kind::kNone) kind_ = kind;
  if (kind_ == kind) return {};
  return Refuse(HCCL_E_PARA, "the group holds {}; {} cannot be mixed with it", Name(kind_),
                Name(kind));
}

Verdict GroupCalls::AddManagement(int32_t device, std::function<Verdict()> call) {
  NPUMESH_RETURN_IF_REFUSED(Become(Kind::kManagement));
  management_.push_back({device, std::move(call)});
  return {};
}

Verdict GroupCalls::AddCollective(std::string_view call, aclrtStream stream, Task&& task) {
  NPUMESH_RETURN_IF_REFUSED(Become(Kind::kCollective));
  collectives_.push_back({call, stream, std::move(task)});
  return {};
}

// The second send to one peer goes into a second batch, which follows the first on the stream: the
// peer's second receive does the same.
Verdict GroupCalls::AddPointToPoint(std::shared_ptr<Comm> comm, aclrtStream stream,
                                    HcclSendRecvItem item) {
  NPUMESH_RETURN_IF_REFUSED(Become(Kind::kPointToPoint));
  const auto takes = [&](const Batch& batch) {
    return batch.comm == comm && batch.stream == stream &&
           std::none_of(batch.items.begin(), batch.items.end(),
                        [&](const HcclSendRecvItem& other) { return SameLane(item, other); });
  };
  const auto batch = std::find_if(batches_.begin(), batches_.end(), takes);
  if (batch == batches_.end()) {
    batches_.push_back({std::move(comm), stream, {item}});
  } else {
    batch->items.push_back(item);
  }
  return {};
}

Verdict GroupCalls::RunManagement() {
  DeviceThreads threads;
  for (Management& each : management_) threads.Add(each.device, std::move(each.call));
  return threads.Run();
}

Verdict GroupCalls::End() {
  if (depth_ == 0) return Refuse(HCCL_E_PARA, "there is no HcclGroupStart to end");
  if (--depth_ > 0) return {};
  Verdict verdict = RunManagement();
  for (Collective& call : collectives_) {
    if (verdict.ok()) verdict = Enqueue(call.call, call.stream, std::move(call.task));
  }
  for (Batch& batch : batches_) {
    if (verdict.ok()) verdict = EnqueueBatch(batch.comm, batch.stream, std::move(batch.items));
  }
  kind_ = Kind::kNone;
  management_.clear();
  collectives_.clear();
  batches_.clear();
  return verdict;
}

}  // namespace npumesh
