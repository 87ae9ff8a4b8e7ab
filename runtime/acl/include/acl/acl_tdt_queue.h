/* Queues of buffers between the threads of a process. A handle or queue that is not live is
 * ACL_ERROR_INVALID_PARAM or ACL_ERROR_INVALID_QUEUE_ID in all functions. */
#ifndef NPUMESH_ACL_ACL_TDT_QUEUE_H_
#define NPUMESH_ACL_ACL_TDT_QUEUE_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_TDT_QUEUE_PERMISSION_MANAGE 1
#define ACL_TDT_QUEUE_PERMISSION_DEQUEUE 2
#define ACL_TDT_QUEUE_PERMISSION_ENQUEUE 4

#define ACL_TDT_QUEUE_ROUTE_UNBIND 0
#define ACL_TDT_QUEUE_ROUTE_BIND 1
#define ACL_TDT_QUEUE_ROUTE_BIND_ABNORMAL 2

typedef void* acltdtBuf;
typedef struct tagMemQueueAttr acltdtQueueAttr;
typedef struct acltdtQueueRouteList acltdtQueueRouteList;
typedef struct acltdtQueueRouteQueryInfo acltdtQueueRouteQueryInfo;
typedef struct acltdtQueueRoute acltdtQueueRoute;

typedef enum { ACL_TDT_QUEUE_NAME_PTR = 0, ACL_TDT_QUEUE_DEPTH_UINT32 = 1 } acltdtQueueAttrType;

typedef enum {
  ACL_TDT_QUEUE_ROUTE_SRC_UINT32 = 0,
  ACL_TDT_QUEUE_ROUTE_DST_UINT32 = 1,
  ACL_TDT_QUEUE_ROUTE_STATUS_INT32 = 2
} acltdtQueueRouteParamType;

typedef enum {
  ACL_TDT_QUEUE_ROUTE_QUERY_SRC = 0,
  ACL_TDT_QUEUE_ROUTE_QUERY_DST = 1,
  ACL_TDT_QUEUE_ROUTE_QUERY_SRC_AND_DST = 2,
  ACL_TDT_QUEUE_ROUTE_QUERY_ABNORMAL = 100
} acltdtQueueRouteQueryMode;

typedef enum {
  ACL_TDT_QUEUE_ROUTE_QUERY_MODE_ENUM = 0,
  ACL_TDT_QUEUE_ROUTE_QUERY_SRC_ID_UINT32 = 1,
  ACL_TDT_QUEUE_ROUTE_QUERY_DST_ID_UINT32 = 2
} acltdtQueueRouteQueryInfoParamType;

typedef enum { ACL_TDT_NORMAL_MEM = 0, ACL_TDT_DVPP_MEM = 1 } acltdtAllocBufType;

/* ---- Queues -------------------------------------------------------------------------------- */

/* A name of at most 127 characters that no other queue has, and a depth of 2 to 8192; without
 * `attr`, or without one of them: a name that is made up, and 2. */
acltdtQueueAttr* acltdtCreateQueueAttr(void);
aclError acltdtDestroyQueueAttr(const acltdtQueueAttr* attr);

/* `param` of a name: the address of a pointer to it. The name that Get returns is valid until the
 * next Set. */
aclError acltdtSetQueueAttr(acltdtQueueAttr* attr, acltdtQueueAttrType type, size_t len,
                            const void* param);
aclError acltdtGetQueueAttr(const acltdtQueueAttr* attr, acltdtQueueAttrType type, size_t len,
                            size_t* paramRetSize, void* param);

aclError acltdtCreateQueue(const acltdtQueueAttr* attr, uint32_t* qid);

/* Those that wait for it return. ACL_ERROR_INVALID_PARAM while a route is bound to it. */
aclError acltdtDestroyQueue(uint32_t qid);

/* `timeout` in milliseconds, -1: without limit, with a line in the log once it takes long.
 * ACL_ERROR_RT_QUEUE_FULL, ACL_ERROR_RT_QUEUE_EMPTY. A buffer in a queue belongs to the queue: its
 * handle, and those of its chain, are dead until it is taken out. */
aclError acltdtEnqueue(uint32_t qid, acltdtBuf buf, int32_t timeout);
aclError acltdtDequeue(uint32_t qid, acltdtBuf* buf, int32_t timeout);

/* The same with a copy of memory of the host or of a device; at most 96 bytes of user data, which
 * may be null. Dequeue takes the data of the first buffer of a chain; one that is larger than
 * `dataSize` stays in the queue (ACL_ERROR_INVALID_PARAM, with its size in `retDataSize`). */
aclError acltdtEnqueueData(uint32_t qid, const void* data, size_t dataSize, const void* userData,
                           size_t userDataSize, int32_t timeout, uint32_t rsv);
aclError acltdtDequeueData(uint32_t qid, void* data, size_t dataSize, size_t* retDataSize,
                           void* userData, size_t userDataSize, int32_t timeout);

/* Queues are those of the process, which may do everything: granting to another one is
 * ACL_ERROR_RT_FEATURE_NOT_SUPPORT. */
aclError acltdtGrantQueue(uint32_t qid, int32_t pid, uint32_t permission, int32_t timeout);
aclError acltdtAttachQueue(uint32_t qid, int32_t timeout, uint32_t* permission);

/* ---- Routes -------------------------------------------------------------------------------- */

/* What is put into the source of a route goes to all queues that its routes lead to, as soon as
 * each has room; they share the bytes. */
acltdtQueueRoute* acltdtCreateQueueRoute(uint32_t srcId, uint32_t dstId);
aclError acltdtDestroyQueueRoute(const acltdtQueueRoute* route);
aclError acltdtGetQueueRouteParam(const acltdtQueueRoute* route, acltdtQueueRouteParamType type,
                                  size_t len, size_t* paramRetSize, void* param);

/* A list has copies of the routes that are added. */
acltdtQueueRouteList* acltdtCreateQueueRouteList(void);
aclError acltdtDestroyQueueRouteList(const acltdtQueueRouteList* routeList);
aclError acltdtAddQueueRoute(acltdtQueueRouteList* routeList, const acltdtQueueRoute* route);
aclError acltdtGetQueueRoute(const acltdtQueueRouteList* routeList, size_t index,
                             acltdtQueueRoute* route);
size_t acltdtGetQueueRouteNum(const acltdtQueueRouteList* routeList);

/* Each route of the list that can be; the first that cannot is the error, and the state of each is
 * in the list. No route leads back to its source, over others either. */
aclError acltdtBindQueueRoutes(acltdtQueueRouteList* qRouteList);
aclError acltdtUnbindQueueRoutes(acltdtQueueRouteList* qRouteList);

/* The bound routes of a source, a destination or both; `qRouteList` becomes the answer. */
acltdtQueueRouteQueryInfo* acltdtCreateQueueRouteQueryInfo(void);
aclError acltdtDestroyQueueRouteQueryInfo(const acltdtQueueRouteQueryInfo* info);
aclError acltdtSetQueueRouteQueryInfo(acltdtQueueRouteQueryInfo* param,
                                      acltdtQueueRouteQueryInfoParamType type, size_t len,
                                      const void* value);
aclError acltdtQueryQueueRoutes(const acltdtQueueRouteQueryInfo* queryInfo,
                                acltdtQueueRouteList* qRouteList);

/* ---- Buffers ------------------------------------------------------------------------------- */

/* Memory of the host, 1 byte to 4 GiB; `type`: 0. No byte of it is data at first. */
aclError acltdtAllocBuf(size_t size, uint32_t type, acltdtBuf* buf);

/* A chain is freed, and put into a queue, by its head. */
aclError acltdtFreeBuf(acltdtBuf buf);
aclError acltdtGetBufData(const acltdtBuf buf, void** dataPtr, size_t* size);
aclError acltdtSetBufDataLen(acltdtBuf buf, size_t len);
aclError acltdtGetBufDataLen(acltdtBuf buf, size_t* len);

/* Within 96 bytes. */
aclError acltdtSetBufUserData(acltdtBuf buf, const void* dataPtr, size_t size, size_t offset);
aclError acltdtGetBufUserData(const acltdtBuf buf, void* dataPtr, size_t size, size_t offset);

/* Another buffer with the same bytes. */
aclError acltdtCopyBufRef(const acltdtBuf buf, acltdtBuf* newBuf);

/* Chains of at most 128 buffers, the head included. */
aclError acltdtAppendBufChain(acltdtBuf headBuf, acltdtBuf buf);
aclError acltdtGetBufChainNum(acltdtBuf headBuf, uint32_t* num);
aclError acltdtGetBufFromChain(acltdtBuf headBuf, uint32_t index, acltdtBuf* buf);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_TDT_QUEUE_H_ */
