#include "hccl/hccl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_sym_win.h"
#include "hccl/hccl_types.h"
#include "hccl/hcom.h"

// As clients write it: brace initialisation in the order of the fields.
HcclSendRecvItem MakeItem(void* buffer, uint64_t count, uint32_t peer);
HcclSendRecvItem MakeItem(void* buffer, uint64_t count, uint32_t peer) {
  return HcclSendRecvItem{HCCL_SEND, buffer, count, HCCL_DATA_TYPE_FP32, peer};
}

static_assert(sizeof(HcclRootInfo) == 4108, "carried byte for byte");
static_assert(HCCL_REDUCE_RESERVED == 255 && HCCL_DATA_TYPE_RESERVED == 255, "as published");
static_assert(HCCL_E_RESERVED == 1042 && HCCL_DATA_TYPE_HIF8 == 14, "as published");
