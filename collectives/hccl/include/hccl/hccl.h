// The operators of HCCL, as its API documentation declares them.
//
// Every operator checks its arguments, appends its work to `stream` and returns; completion and
// errors of the execution show at aclrtSynchronizeStream. Counts are elements. A count of 0 is
// success without any effect. Buffers lie in device memory; arrays of counts and displacements are
// host arrays of uint64_t that may be freed when the call has returned. Compiles as C++11.
#ifndef HCCL_HCCL_H_
#define HCCL_HCCL_H_

#include "acl/acl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

// recvBuf[i] of every rank = `op` over the ranks of sendBuf[i]. sendBuf may equal recvBuf.
HcclResult HcclAllReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                         HcclReduceOp op, HcclComm comm, aclrtStream stream);
// buf of every rank = buf of `root`.
HcclResult HcclBroadcast(void* buf, uint64_t count, HcclDataType dataType, uint32_t root,
                         HcclComm comm, aclrtStream stream);
// recvBuf of rank r = `op` over the ranks of block r of sendBuf; blocks have recvCount elements.
HcclResult HcclReduceScatter(void* sendBuf, void* recvBuf, uint64_t recvCount,
                             HcclDataType dataType, HcclReduceOp op, HcclComm comm,
                             aclrtStream stream);
// The same with block r of sendCounts[r] elements at sendDispls[r]; arrays equal on all ranks.
HcclResult HcclReduceScatterV(void* sendBuf, const void* sendCounts, const void* sendDispls,
                              void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                              HcclReduceOp op, HcclComm comm, aclrtStream stream);
// recvBuf of rank r = block r of the root's sendBuf. Other ranks may pass null for sendBuf.
HcclResult HcclScatter(void* sendBuf, void* recvBuf, uint64_t recvCount, HcclDataType dataType,
                       uint32_t root, HcclComm comm, aclrtStream stream);
// recvBuf = the sendBufs of all ranks, in rank order.
HcclResult HcclAllGather(void* sendBuf, void* recvBuf, uint64_t sendCount, HcclDataType dataType,
                         HcclComm comm, aclrtStream stream);
// The same with recvCounts[r] elements of rank r at recvDispls[r]; arrays equal on all ranks.
HcclResult HcclAllGatherV(void* sendBuf, uint64_t sendCount, void* recvBuf, const void* recvCounts,
                          const void* recvDispls, HcclDataType dataType, HcclComm comm,
                          aclrtStream stream);
// Send and Recv of two ranks are paired in the order of their calls.
HcclResult HcclSend(void* sendBuf, uint64_t count, HcclDataType dataType, uint32_t destRank,
                    HcclComm comm, aclrtStream stream);
HcclResult HcclRecv(void* recvBuf, uint64_t count, HcclDataType dataType, uint32_t srcRank,
                    HcclComm comm, aclrtStream stream);
// Block i of recvBuf = block r of rank i's sendBuf, r being this rank.
HcclResult HcclAlltoAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType,
                        const void* recvBuf, uint64_t recvCount, HcclDataType recvType,
                        HcclComm comm, aclrtStream stream);
HcclResult HcclAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                         HcclDataType sendType, const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType, HcclComm comm,
                         aclrtStream stream);
// sendCountMatrix[i * n + j]: elements from rank i to rank j. Both sides are packed.
HcclResult HcclAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
                          const void* recvBuf, HcclDataType recvType, HcclComm comm,
                          aclrtStream stream);
// AllReduce whose result is the root's only; recvBuf of the others is scratch.
HcclResult HcclReduce(void* sendBuf, void* recvBuf, uint64_t count, HcclDataType dataType,
                      HcclReduceOp op, uint32_t root, HcclComm comm, aclrtStream stream);
// Sends and receives that do not block each other; one for each direction and peer.
HcclResult HcclBatchSendRecv(HcclSendRecvItem* sendRecvInfo, uint32_t itemNum, HcclComm comm,
                             aclrtStream stream);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif  // HCCL_HCCL_H_
