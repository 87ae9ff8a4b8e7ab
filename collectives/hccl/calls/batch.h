// A checked list of sends and receives, made ready to run.
#ifndef NPUMESH_COLLECTIVES_HCCL_CALLS_BATCH_H_
#define NPUMESH_COLLECTIVES_HCCL_CALLS_BATCH_H_

#include <span>
#include <vector>

#include "collectives/hccl/comm/argument_check.h"
#include "collectives/hccl/comm/verdict.h"

namespace npumesh {

// Each item by itself: type, pointer, count, dtype, peer, memory. REQUIRES: check.Live was called.
void CheckItem(ArgumentCheck& check, const HcclSendRecvItem& item);

// The items together: one for each direction and peer, and every send to oneself has its receive.
Verdict CheckItems(std::span<const HcclSendRecvItem> items, uint32_t rank);

// Exchanges them; items of count 0 are left out.
Status RunBatch(Communicator& group, std::span<const HcclSendRecvItem> items);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CALLS_BATCH_H_
