/* The headers are C, of the same layout as in C++. */
#include "hccl/hccl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_sym_win.h"
#include "hccl/hccl_types.h"

typedef char RootInfoIsCarriedByteForByte[sizeof(HcclRootInfo) == 4108 ? 1 : -1];

uint32_t DefaultBufferSize(void);
uint32_t DefaultBufferSize(void) {
  HcclCommConfig config;
  HcclSendRecvItem item = {HCCL_SEND, &config, 1, HCCL_DATA_TYPE_FP32, 0};
  HcclCommConfigInit(&config);
  return item.count == 1 ? config.hcclBufferSize : 0;
}
