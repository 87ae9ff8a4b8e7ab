/* HCCL by names of groups in place of communicators: the older interface, which graph engines and
 * frameworks use.
 *
 * HcomInitByRankTable makes the world group of the calling thread's device; HcomCreateGroup makes
 * others of its ranks. `group` null or "hccl_world_group" is the world group. Every function
 * returns HCCL_SUCCESS, or what the function of hccl.h or hccl_comm.h returns that it stands for;
 * HCCL_E_NOT_FOUND for a group that was not made; the explanation is in aclGetRecentErrMsg() of the
 * calling thread. `tag` only tells calls apart on a card: here the order of calls does.
 * Names, parameters: the public headers of the vendor's TensorFlow adapter and of hcomm.
 * Compiles as C++11 and C99. */
#ifndef HCCL_HCOM_H_
#define HCCL_HCOM_H_

#include "acl/acl.h"
#include "hccl/hccl_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Collective over the ranks of the table; `rankId` is this rank's number in it. */
HcclResult HcomInitByRankTable(const char* rankTable, uint32_t rankId);
/* The same for a client that passes its number as text. */
HcclResult HcomInitByFile(const char* rankTable, const char* identify);
/* Ends all groups of the calling thread's device. */
HcclResult HcomDestroy(void);

/* Collective over the ranks in `rankIds`, numbers of the world group. HCCL_E_NOT_FOUND, and nothing
 * is made, for a caller that is not among them. */
HcclResult HcomCreateGroup(const char* group, uint32_t rankNum, uint32_t* rankIds);
HcclResult HcomDestroyGroup(const char* group);

HcclResult HcomGetRankSize(const char* group, uint32_t* rankSize);
HcclResult HcomGetRankId(const char* group, uint32_t* rankId);
/* Of the group's ranks those of this host: how many, and this rank's number among them. */
HcclResult HcomGetLocalRankSize(const char* group, uint32_t* localRankSize);
HcclResult HcomGetLocalRankId(const char* group, uint32_t* localRankId);
HcclResult HcomGetWorldRankFromGroupRank(const char* group, uint32_t groupRank,
                                         uint32_t* worldRank);
HcclResult HcomGetGroupRankFromWorldRank(uint32_t worldRank, const char* group,
                                         uint32_t* groupRank);
HcclResult HcomGetCommHandleByGroup(const char* group, HcclComm* commHandle);

/* Where gradients are cut into messages on a card: checked, without effect. */
HcclResult HcomSetGradFusionByIndex(const char* group, uint32_t segmentNum,
                                    const uint32_t* inputIdxList);
HcclResult HcomSetGradFusionBySize(const char* group, uint32_t segmentNum, const float* sizeList);

HcclResult HcomAllReduce(const char* tag, void* inputPtr, void* outputPtr, uint64_t count,
                         HcclDataType dataType, HcclReduceOp op, const char* group,
                         aclrtStream stream);
HcclResult HcomAllGather(const char* tag, void* inputPtr, void* outputPtr, uint64_t inputCount,
                         HcclDataType dataType, const char* group, aclrtStream stream);
HcclResult HcomAllGatherV(const char* tag, const void* sendBuf, uint64_t sendCount,
                          const void* recvBuf, const void* recvCounts, const void* rdispls,
                          HcclDataType dataType, const char* group, aclrtStream stream);
HcclResult HcomBroadcast(const char* tag, void* ptr, uint64_t count, HcclDataType dataType,
                         uint32_t root, const char* group, aclrtStream stream);
HcclResult HcomReduce(const char* tag, void* inputPtr, void* outputPtr, uint64_t count,
                      HcclDataType dataType, HcclReduceOp op, uint32_t root, const char* group,
                      aclrtStream stream);
HcclResult HcomReduceScatter(const char* tag, void* inputPtr, void* outputPtr, uint64_t count,
                             HcclDataType dataType, HcclReduceOp op, const char* group,
                             aclrtStream stream);
HcclResult HcomReduceScatterV(const char* tag, void* sendBuf, const void* sendCounts,
                              const void* sdispls, void* recvBuf, uint64_t recvCount,
                              HcclDataType dataType, HcclReduceOp op, const char* group,
                              aclrtStream stream);
HcclResult HcomSend(const char* tag, void* inputPtr, uint64_t count, HcclDataType dataType,
                    uint32_t destRank, uint32_t srTag, const char* group, aclrtStream stream);
HcclResult HcomReceive(const char* tag, void* outputPtr, uint64_t count, HcclDataType dataType,
                       uint32_t srcRank, uint32_t srTag, const char* group, aclrtStream stream);
HcclResult HcomAlltoAllV(const void* sendBuf, const void* sendCounts, const void* sdispls,
                         HcclDataType sendType, const void* recvBuf, const void* recvCounts,
                         const void* rdispls, HcclDataType recvType, const char* group,
                         aclrtStream stream, const char* tag);
HcclResult HcomAlltoAllVC(const void* sendBuf, const void* sendCountMatrix, HcclDataType sendType,
                          const void* recvBuf, HcclDataType recvType, const char* group,
                          aclrtStream stream, const char* tag);
HcclResult HcomAllToAll(const void* sendBuf, uint64_t sendCount, HcclDataType sendType,
                        const void* recvBuf, uint64_t recvCount, HcclDataType recvType,
                        const char* group, aclrtStream stream, const char* tag);

/* The names of releases before. */
HcclResult hcom_init(const char* rankTable, const char* identify);
HcclResult hcom_destroy(void);
HcclResult hcom_create_group(const char* group, uint32_t rankNum, uint32_t* rankIds);
HcclResult hcom_destroy_group(const char* group);
HcclResult hcom_get_rank_size(const char* group, uint32_t* rankSize);
HcclResult hcom_get_rank_id(const char* group, uint32_t* rankId);
HcclResult hcom_get_local_rank_size(const char* group, uint32_t* localRankSize);
HcclResult hcom_get_local_rank_id(const char* group, uint32_t* localRankId);
HcclResult hcom_get_world_rank_from_group_rank(const char* group, uint32_t groupRank,
                                               uint32_t* worldRank);
HcclResult hcom_get_group_rank_from_world_rank(uint32_t worldRank, const char* group,
                                               uint32_t* groupRank);
HcclResult hcom_set_split_strategy_by_index(const char* group, uint32_t segmentNum,
                                            const uint32_t* idxList);
HcclResult hcom_set_split_strategy_by_size(const char* group, uint32_t segmentNum,
                                           const float* sizeList);
HcclResult hcom_all_reduce(const char* tag, void* inputPtr, void* outputPtr, uint64_t count,
                           HcclDataType dataType, HcclReduceOp op, const char* group,
                           aclrtStream stream);
HcclResult hcom_all_gather(const char* tag, void* inputPtr, void* outputPtr, uint64_t inputCount,
                           HcclDataType dataType, const char* group, aclrtStream stream);
HcclResult hcom_broadcast(const char* tag, void* ptr, uint64_t count, HcclDataType dataType,
                          uint32_t root, const char* group, aclrtStream stream);
HcclResult hcom_reduce_scatter(const char* tag, void* inputPtr, void* outputPtr, uint64_t count,
                               HcclDataType dataType, HcclReduceOp op, const char* group,
                               aclrtStream stream);
HcclResult hcom_send(const char* tag, void* inputPtr, uint64_t count, HcclDataType dataType,
                     uint32_t destRank, uint32_t srTag, const char* group, aclrtStream stream);
HcclResult hcom_receive(const char* tag, void* outputPtr, uint64_t count, HcclDataType dataType,
                        uint32_t srcRank, uint32_t srTag, const char* group, aclrtStream stream);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* HCCL_HCOM_H_ */
