// HCCL communicators: how a program makes, asks, pauses and destroys them.
//
// Every function returns HCCL_SUCCESS or the code the vendor's library returns in the same
// situation; the whole explanation is then in aclGetRecentErrMsg() of the calling thread.
// Compiles as C++11 and C99.
#ifndef HCCL_HCCL_COMM_H_
#define HCCL_HCCL_COMM_H_

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "acl/acl.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

typedef enum {
  HCCL_OP_EXPANSION_MODE_INVALID = -1,
  HCCL_OP_EXPANSION_MODE_AI_CPU = 0,
  HCCL_OP_EXPANSION_MODE_AIV = 1,
  HCCL_OP_EXPANSION_MODE_HOST = 2,
  HCCL_OP_EXPANSION_MODE_HOST_TS = 3,
  HCCL_OP_EXPANSION_MODE_CCU_MS = 4,
  HCCL_OP_EXPANSION_MODE_CCU_SCHED = 5,
  HCCL_OP_EXPANSION_AIV_ONLY = 6
} HcclOpExpansionMode;

typedef enum {
  HCCL_CONFIG_TYPE_INVALID = -1,
  HCCL_CONFIG_TYPE_OP_EXPANSION_MODE = 0,
  HCCL_CONFIG_TYPE_HCCL_ALGO = 1
} HcclConfigType;
typedef HcclOpExpansionMode HcclConfigTypeOpExpansionMode;

// --- Creation. All but HcclGetRootInfo are collective over the ranks they name and block until
// --- these have come, or HCCL_CONNECT_TIMEOUT is over.

// The communicator of a rank table file; `rank` is this rank's number in it.
HcclResult HcclCommInitClusterInfo(const char* clusterInfo, uint32_t rank, HcclComm* comm);
HcclResult HcclCommInitClusterInfoConfig(const char* clusterInfo, uint32_t rank,
                                         HcclCommConfig* config, HcclComm* comm);
// A part of `*comm`, which is a communicator made otherwise. Non-members pass rankIds null and
// subCommId 0xFFFFFFFF and get nothing.
HcclResult HcclCreateSubCommConfig(HcclComm* comm, uint32_t rankNum, uint32_t* rankIds,
                                   uint64_t subCommId, uint32_t subCommRankId,
                                   HcclCommConfig* config, HcclComm* subComm);
// Called by one rank, which has selected a device.
HcclResult HcclGetRootInfo(HcclRootInfo* rootInfo);
HcclResult HcclCommInitRootInfo(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                HcclComm* comm);
HcclResult HcclCommInitRootInfoConfig(uint32_t nRanks, const HcclRootInfo* rootInfo, uint32_t rank,
                                      const HcclCommConfig* config, HcclComm* comm);
// All devices are of this process; comms[i] has rank i on devices[i].
HcclResult HcclCommInitAll(uint32_t ndev, int32_t* devices, HcclComm* comms);

// --- Process-wide settings.

HcclResult HcclSetConfig(HcclConfig config, union HcclConfigValue configValue);
HcclResult HcclGetConfig(HcclConfig config, union HcclConfigValue* configValue);

// --- Questions.

// `commName` has room for COMM_NAME_MAX_LENGTH bytes.
HcclResult HcclGetCommName(HcclComm comm, char* commName);
HcclResult HcclCommGetHandleWithName(const char* commName, HcclComm* comm);
HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize);
HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank);
HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError);
// A static text, never null.
const char* HcclGetErrorString(HcclResult code);
uint32_t HcclGetCommConfigCapability();
HcclResult HcclCommGetStatus(const char* commId, HcclCommStatus* status);
HcclResult HcclConfigGetInfo(HcclComm comm, HcclConfigType cfgType, uint32_t infoLen, void* info);

// --- Barrier, pause, end.

// The stream waits there until every rank's stream has come.
HcclResult HcclBarrier(HcclComm comm, aclrtStream stream);
HcclResult HcclCommDestroy(HcclComm comm);
HcclResult HcclCommSuspend(HcclComm comm);
HcclResult HcclCommResume(HcclComm comm);
typedef HcclResult (*HcclCommStateCallback)(HcclComm comm, HcclCommStatePhase state, void* args);
HcclResult HcclCommRegCommStateCallback(const char* regName, HcclCommStateCallback cb, void* args);
HcclResult HcclCommWorkingDevNicSet(HcclComm comm, uint32_t* ranks, bool* useBackup,
                                    uint32_t nRanks);

// --- Zero-copy memory.

HcclResult HcclCommSetMemoryRange(HcclComm comm, void* baseVirPtr, size_t size, size_t alignment,
                                  uint64_t flags);
HcclResult HcclCommUnsetMemoryRange(HcclComm comm, void* baseVirPtr);
HcclResult HcclCommActivateCommMemory(HcclComm comm, void* virPtr, size_t size, size_t offset,
                                      aclrtDrvMemHandle handle, uint64_t flags);
HcclResult HcclCommDeactivateCommMemory(HcclComm comm, void* virPtr);

// --- Group calls: what is called between Start and End is done at End.

HcclResult HcclGroupStart();
HcclResult HcclGroupEnd();
HcclResult HcclGroupStatusGet(bool* isGroupEnabled);

// --- Registered memory: all memory of a device can be used by operators, so this only checks.

// `flag`: 0. E_PARA for memory that is not all in one block of the device.
HcclResult HcclCommRegister(HcclComm comm, void* addr, uint64_t size, void** handle, uint32_t flag);
// E_NOT_FOUND, of both, for a handle that is not one of `comm`.
HcclResult HcclCommDeregister(HcclComm comm, void* handle);
HcclResult HcclCommExchangeMem(HcclComm comm, void* windowHandle, uint32_t* peerRanks,
                               uint32_t peerRankNum);

// --- Symmetric windows; see also hccl_sym_win.h.

HcclResult HcclCommSymWinRegister(HcclComm comm, void* addr, uint64_t size,
                                  HcclCommSymWindow* winHandle, uint32_t flag);
HcclResult HcclCommSymWinDeregister(HcclCommSymWindow winHandle);
HcclResult HcclCommSymWinGet(HcclComm comm, void* ptr, size_t size, HcclCommSymWindow* winHandle,
                             size_t* offset);

#pragma GCC visibility pop

// Fills the header of `config` and sets every field to its default. Null is left alone.
static inline void HcclCommConfigInit(HcclCommConfig* config) {
  if (!config) return;
  // `reserved` begins with the size, the magic word and the version.
  const size_t size = sizeof(HcclCommConfig);
  const uint32_t words[2] = {HCCL_COMM_CONFIG_MAGIC_WORD, HCCL_COMM_CONFIG_VERSION};
  memset(config->reserved, 0, sizeof(config->reserved));
  memcpy(config->reserved, &size, sizeof(size));
  memcpy(config->reserved + sizeof(size), words, sizeof(words));
  config->hcclBufferSize = HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET;
  config->hcclDeterministic = HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET;
  config->hcclCommName[0] = '\0';
  config->hcclUdi[0] = '\0';
  config->hcclOpExpansionMode = HCCL_COMM_DEFAULT_OP_EXPANSION_MODE;
  config->hcclRdmaTrafficClass = HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET;
  config->hcclRdmaServiceLevel = HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET;
  config->hcclWorldRankID = 0;
  config->hcclJobID = 0;
  config->aclGraphZeroCopyEnable = 0;
  config->hcclExecTimeOut = HCCL_COMM_EXECTIMEOUT_CONFIG_NOT_SET;
  config->hcclAlgo[0] = '\0';
  config->hcclRetryEnable[0] = '\0';
  config->hcclRetryParams[0] = '\0';
  config->hcclBufferName[0] = '\0';
  config->hcclQos = HCCL_COMM_QOS_CONFIG_NOT_SET;
  config->hcclSymWinMaxMemSizePerRank = HCCL_DEFAULT_SYMMETRIC_MEMORY_STRIDE;
  config->hcclChannelSqDepth = HCCL_COMM_SQ_DEPTH_CONFIG_NOT_SET;
}

#ifdef __cplusplus
}
#endif

#endif  // HCCL_HCCL_COMM_H_
