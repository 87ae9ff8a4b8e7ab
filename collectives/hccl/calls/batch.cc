#include "collectives/hccl/calls/batch.h"

#include <algorithm>
#include <set>

namespace npumesh {
namespace {

// The item that takes from `rank` itself; null without one.
const HcclSendRecvItem* FindSelf(std::span<const HcclSendRecvItem> items, uint32_t rank,
                                 HcclSendRecvType type) {
  const auto found = std::find_if(items.begin(), items.end(), [&](const HcclSendRecvItem& item) {
    return item.sendRecvType == type && item.remoteRank == rank && item.count != 0;
  });
  return found == items.end() ? nullptr : &*found;
}

uint64_t BytesOfItem(const HcclSendRecvItem& item) {
  const ElementType* type = FindElementType(item.dataType);
  return type ? type->bytes * item.count : 0;
}

}  // namespace

void CheckItem(ArgumentCheck& check, const HcclSendRecvItem& item) {
  check.Holds(item.sendRecvType == HCCL_SEND || item.sendRecvType == HCCL_RECV, HCCL_E_PARA,
              "EI0003: sendRecvType is neither HCCL_SEND nor HCCL_RECV");
  if (item.count != 0) check.NotNull("buf", item.buf);
  check.Count("count", item.count).Moves(item.dataType).RankInComm("remoteRank", item.remoteRank);
  check.InHbm("buf", item.buf, BytesOfItem(item));
}

Verdict CheckItems(std::span<const HcclSendRecvItem> items, uint32_t rank) {
  std::set<std::pair<HcclSendRecvType, uint32_t>> seen;
  for (const HcclSendRecvItem& item : items) {
    if (!seen.insert({item.sendRecvType, item.remoteRank}).second) {
      return Refuse(HCCL_E_PARA,
                    "EI0003: two items {} rank {}; one is allowed for each direction and peer",
                    item.sendRecvType == HCCL_SEND ? "send to" : "receive from", item.remoteRank);
    }
  }
  const HcclSendRecvItem* sent = FindSelf(items, rank, HCCL_SEND);
  const HcclSendRecvItem* taken = FindSelf(items, rank, HCCL_RECV);
  if (sent == nullptr && taken == nullptr) return {};
  if (sent == nullptr || taken == nullptr) {
    return Refuse(HCCL_E_PARA, "EI0003: rank {} {} itself without the other side", rank,
                  sent ? "sends to" : "receives from");
  }
  if (sent->count != taken->count || sent->dataType != taken->dataType) {
    return Refuse(HCCL_E_PARA,
                  "EI0003: rank {} sends {} elements of type {} to itself and receives {} of type "
                  "{}",
                  rank, sent->count, static_cast<int>(sent->dataType), taken->count,
                  static_cast<int>(taken->dataType));
  }
  return {};
}

Status RunBatch(Communicator& group, std::span<const HcclSendRecvItem> items) {
  std::vector<SendRecvItem> messages;
  for (const HcclSendRecvItem& item : items) {
    if (item.count == 0) continue;
    messages.push_back({item.sendRecvType == HCCL_SEND, item.buf, item.count,
                        FindElementType(item.dataType)->dtype, static_cast<int>(item.remoteRank)});
  }
  return messages.empty() ? Status() : group.BatchSendRecv(messages);
}

}  // namespace npumesh
