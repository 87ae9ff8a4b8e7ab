/* Channels of tensors. A simulated device takes nothing out of a channel by itself: channels carry
 * tensors between the threads of a process. */
#ifndef NPUMESH_ACL_ACL_TDT_H_
#define NPUMESH_ACL_ACL_TDT_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum acltdtTensorType {
  ACL_TENSOR_DATA_UNDEFINED = -1,
  ACL_TENSOR_DATA_TENSOR = 0,
  ACL_TENSOR_DATA_END_OF_SEQUENCE = 1,
  ACL_TENSOR_DATA_ABNORMAL = 2,
  ACL_TENSOR_DATA_SLICE_TENSOR = 3,
  ACL_TENSOR_DATA_END_TENSOR = 4
} acltdtTensorType;

typedef struct acltdtDataItem acltdtDataItem;
typedef struct acltdtDataset acltdtDataset;
typedef struct acltdtChannelHandle acltdtChannelHandle;

/* A handle that is null, foreign or destroyed is ACL_ERROR_INVALID_PARAM in all functions; those
 * that return a value return UNDEFINED, null or 0. */

/* The data stay the client's and are copied when they are sent. Null for a type that is no tensor,
 * end of sequence or abnormal, and for more than 128 dims. */
acltdtDataItem* acltdtCreateDataItem(acltdtTensorType tdtType, const int64_t* dims, size_t dimNum,
                                     aclDataType dataType, void* data, size_t size);
aclError acltdtDestroyDataItem(acltdtDataItem* dataItem);
acltdtTensorType acltdtGetTensorTypeFromItem(const acltdtDataItem* dataItem);
aclDataType acltdtGetDataTypeFromItem(const acltdtDataItem* dataItem);
void* acltdtGetDataAddrFromItem(const acltdtDataItem* dataItem);
size_t acltdtGetDataSizeFromItem(const acltdtDataItem* dataItem);
size_t acltdtGetDimNumFromItem(const acltdtDataItem* dataItem);
aclError acltdtGetDimsFromItem(const acltdtDataItem* dataItem, int64_t* dims, size_t dimNum);

/* Tensors travel as a whole: slice 0 of 1. */
aclError acltdtGetSliceInfoFromItem(const acltdtDataItem* dataItem, size_t* sliceNum,
                                    size_t* sliceId);

/* A dataset ends with the items that it has received, not with those that were added. */
acltdtDataset* acltdtCreateDataset(void);
aclError acltdtDestroyDataset(acltdtDataset* dataset);
acltdtDataItem* acltdtGetDataItem(const acltdtDataset* dataset, size_t index);
aclError acltdtAddDataItem(acltdtDataset* dataset, acltdtDataItem* dataItem);
size_t acltdtGetDatasetSize(const acltdtDataset* dataset);

/* Of the channel that it was received from; else empty. Valid as long as the dataset. */
const char* acltdtGetDatasetName(const acltdtDataset* dataset);

/* `capacity`: 2 to 8192 datasets; 128 without it. Null for an empty name and for a device that the
 * node does not have. */
acltdtChannelHandle* acltdtCreateChannel(uint32_t deviceId, const char* name);
acltdtChannelHandle* acltdtCreateChannelWithCapacity(uint32_t deviceId, const char* name,
                                                     size_t capacity);

/* Threads that wait return with ACL_ERROR_FAILURE; later calls do not wait. */
aclError acltdtStopChannel(acltdtChannelHandle* handle);
aclError acltdtDestroyChannel(acltdtChannelHandle* handle);
aclError acltdtCleanChannel(acltdtChannelHandle* handle);

/* Milliseconds, -1: without limit, 0: does not wait. ACL_ERROR_RT_QUEUE_FULL,
 * ACL_ERROR_RT_QUEUE_EMPTY. A dataset that receives must be empty. */
aclError acltdtSendTensor(const acltdtChannelHandle* handle, const acltdtDataset* dataset,
                          int32_t timeout);
aclError acltdtReceiveTensor(const acltdtChannelHandle* handle, acltdtDataset* dataset,
                             int32_t timeout);
aclError acltdtQueryChannelSize(const acltdtChannelHandle* handle, size_t* size);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_TDT_H_ */
