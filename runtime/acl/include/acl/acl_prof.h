/* The profiler's interface (libmsprofiler). What a program calls, what its streams do and how its
 * ranks meet are written to a file for each device, rank_<R>.npprof (docs/formats/profile.md).
 * Times are those of the simulated device: they say nothing about an NPU. */
#ifndef NPUMESH_ACL_ACL_PROF_H_
#define NPUMESH_ACL_ACL_PROF_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is recorded, a union of these. The others are accepted and have no effect:
 *   ACL_PROF_ACL_API         calls of acl and hccl, and the device memory in use
 *   ACL_PROF_TASK_TIME       operators, copies, fills and host functions; _L0, _L2 and _L3 the same
 *   ACL_PROF_HCCL_TRACE      collectives, sends and receives
 *   ACL_PROF_MSPROFTX        the program's marks and ranges, with the tasks
 *   ACL_PROF_TRAINING_TRACE  the file asks its readers for a step trace */
#define ACL_PROF_ACL_API 0x0001ULL
#define ACL_PROF_TASK_TIME 0x0002ULL
#define ACL_PROF_AICORE_METRICS 0x0004ULL
#define ACL_PROF_AICPU 0x0008ULL
#define ACL_PROF_L2CACHE 0x0010ULL
#define ACL_PROF_HCCL_TRACE 0x0020ULL
#define ACL_PROF_TRAINING_TRACE 0x0040ULL
#define ACL_PROF_MSPROFTX 0x0080ULL
#define ACL_PROF_RUNTIME_API 0x0100ULL
#define ACL_PROF_GE_API_L0 0x0200ULL
#define ACL_PROF_TASK_TIME_L0 0x0800ULL
#define ACL_PROF_TASK_MEMORY 0x1000ULL
#define ACL_PROF_TASK_TIME_L2 0x2000ULL
#define ACL_PROF_OP_ATTR 0x4000ULL
#define ACL_PROF_TASK_TIME_L3 0x8000ULL
#define ACL_PROF_GE_API_L1 0x01000000ULL
#define ACL_PROF_API_STATS 0x400000000ULL
#define ACL_PROF_AICORE_SHAPE 0x800000000ULL

typedef enum {
  ACL_AICORE_ARITHMETIC_UTILIZATION = 0,
  ACL_AICORE_PIPE_UTILIZATION = 1,
  ACL_AICORE_MEMORY_BANDWIDTH = 2,
  ACL_AICORE_L0B_AND_WIDTH = 3,
  ACL_AICORE_RESOURCE_CONFLICT_RATIO = 4,
  ACL_AICORE_MEMORY_UB = 5,
  ACL_AICORE_L2_CACHE = 6,
  ACL_AICORE_PIPE_EXECUTE_UTILIZATION = 7,
  ACL_AICORE_MEMORY_ACCESS = 8,
  ACL_AICORE_NONE = 0xFF
} aclprofAicoreMetrics;

typedef struct aclprofConfig aclprofConfig;
typedef struct aclprofAicoreEvents aclprofAicoreEvents;

/* `profilerResultPath`: a folder, `length` characters; kept for aclprofStart, which makes it. Null
 * or empty: ACL_ERROR_INVALID_PARAM. A second call without aclprofFinalize between them:
 * ACL_ERROR_PROF_ALREADY_RUN. */
aclError aclprofInit(const char* profilerResultPath, size_t length);

/* Stops what still runs. Without aclprofInit: ACL_ERROR_PROF_NOT_RUN. */
aclError aclprofFinalize(void);

/* Begins the files of the configuration's devices. The first call after aclprofInit makes the
 * folder given there and those above it, and the files in it; the n-th one the folder "start_<n>"
 * in that folder, so that the files of an earlier call stay. Files of an earlier process are
 * replaced. Before the first call that needs a device the files begin with that call.
 *
 * A folder that cannot be made: ACL_ERROR_INVALID_FILE. A device that this process does not have:
 * ACL_ERROR_RT_INVALID_DEVICEID; a launched rank whose devices have not started yet is told of it
 * by a warning in the log when they start. A file that cannot be written:
 * ACL_ERROR_PROFILING_FAILURE. While running: ACL_ERROR_PROF_ALREADY_RUN; before aclprofInit:
 * ACL_ERROR_PROF_NOT_RUN. */
aclError aclprofStart(const aclprofConfig* profilerConfig);

/* Ends the files of all devices, whatever devices `profilerConfig` names. A call or a task that has
 * not returned yet is not in them. aclFinalize ends the files as well; aclprofStop after it does
 * nothing. A file that could not be written: ACL_ERROR_PROFILING_FAILURE. While not running:
 * ACL_ERROR_PROF_NOT_RUN. */
aclError aclprofStop(const aclprofConfig* profilerConfig);

/* Null for a list without devices. To be given to aclprofDestroyConfig. */
aclprofConfig* aclprofCreateConfig(uint32_t* deviceIdList, uint32_t deviceNums,
                                   aclprofAicoreMetrics aicoreMetrics,
                                   const aclprofAicoreEvents* aicoreEvents,
                                   uint64_t dataTypeConfig);

aclError aclprofDestroyConfig(const aclprofConfig* profilerConfig);

typedef enum {
  ACL_PROF_ARGS_MIN = 0,
  ACL_PROF_STORAGE_LIMIT = 1,
  ACL_PROF_SYS_HARDWARE_MEM_FREQ = 3,
  ACL_PROF_LLC_MODE = 4,
  ACL_PROF_SYS_IO_FREQ = 5,
  ACL_PROF_SYS_INTERCONNECTION_FREQ = 6,
  ACL_PROF_DVPP_FREQ = 7,
  ACL_PROF_HOST_SYS = 8,
  ACL_PROF_HOST_SYS_USAGE = 9,
  ACL_PROF_HOST_SYS_USAGE_FREQ = 10,
  ACL_PROF_LOW_POWER_FREQ = 11,
  ACL_PROF_SYS_MEM_SERVICEFLOW = 12,
  ACL_PROF_SYS_CPU_FREQ = 13,
  ACL_PROF_OPTYPE = 14,
  ACL_PROF_NTS_METRICS = 15,
  ACL_PROF_PATH = 16,
  ACL_PROF_ARGS_MAX = 17
} aclprofConfigType;

/* Settings of samplers of hardware, which have no effect here (said once by the log). A type that
 * is not listed, null and an empty text: ACL_ERROR_INVALID_PARAM. */
aclError aclprofSetConfig(aclprofConfigType configType, const char* config, size_t configLength);

/* ---- Marks and ranges of the program, with ACL_PROF_TASK_TIME or ACL_PROF_MSPROFTX -------- */

/* A stamp has a message, at most 127 characters. Null without memory; a stamp that was destroyed is
 * ACL_ERROR_INVALID_PARAM. */
void* aclprofCreateStamp(void);
void aclprofDestroyStamp(void* stamp);
aclError aclprofSetStampTraceMessage(void* stamp, const char* msg, uint32_t msgLen);

/* A point in time of the calling thread. */
aclError aclprofMark(void* stamp);

/* Ranges that lie in each other, of one thread. ACL_ERROR_INVALID_PARAM without a range to end. */
aclError aclprofPush(void* stamp);
aclError aclprofPop(void);

/* Ranges that any thread ends. */
aclError aclprofRangeStart(void* stamp, uint32_t* rangeId);
aclError aclprofRangeStop(uint32_t rangeId);

/* A point in the order of a stream. */
aclError aclprofMarkEx(const char* msg, size_t msgLen, aclrtStream stream);

typedef enum { ACL_STEP_START = 0, ACL_STEP_END = 1 } aclprofStepTag;
typedef struct aclprofStepInfo aclprofStepInfo;

/* Marks of a step in the order of a stream. */
aclprofStepInfo* aclprofCreateStepInfo(void);
void aclprofDestroyStepInfo(aclprofStepInfo* stepinfo);
aclError aclprofGetStepTimestamp(aclprofStepInfo* stepInfo, aclprofStepTag tag, aclrtStream stream);

/* ---- Ranges with tensors ------------------------------------------------------------------ */

#ifndef ACL_PROF_TENSOR_INFO_DEFINED
#define ACL_PROF_TENSOR_INFO_DEFINED

#define ACL_PROF_TENSOR_DATA_SHAPE_LEN 8
#define ACL_PROF_EVENT_ATTR_VERSION 1

typedef enum { ACL_PROF_MESSAGE_TYPE_TENSOR_INFO = 0 } aclprofMessageType;

typedef struct aclprofTensor {
  uint32_t type;
  uint32_t format;
  uint32_t dataType;
  uint32_t shapeDim;
  uint32_t shape[ACL_PROF_TENSOR_DATA_SHAPE_LEN];
} aclprofTensor;

typedef struct aclprofTensorInfo {
  uint64_t opNameId;
  uint64_t opTypeId;
  uint32_t resv;
  uint32_t tensorNum;
  uint32_t kernelType;
  uint32_t blockNums;
  void* stream;
  aclprofTensor* tensors;
} aclprofTensorInfo;

typedef struct aclprofEventAttributes {
  uint16_t version;
  uint16_t size;
  uint32_t messageType;
  union Message {
    aclprofTensorInfo* tensorInfo;
  } message;
} aclprofEventAttributes;

#endif

/* A number for a text, the same for the same text; 0 for null and for an empty one. */
uint64_t aclprofStr2Id(const char* message);

/* A range of the thread, as aclprofPush, with the name and type of the operator in `attr`. */
aclError aclprofRangePushEx(aclprofEventAttributes* attr);
aclError aclprofRangePop(void);

/* ---- Subscriptions: the operators of a model as they run ----------------------------------- */

typedef enum {
  ACL_SUBSCRIBE_OP = 0,
  ACL_SUBSCRIBE_SUBGRAPH = 1,
  ACL_SUBSCRIBE_OP_THREAD = 2,
  ACL_SUBSCRIBE_NONE = 0xFF
} aclprofSubscribeOpFlag;

typedef enum {
  ACL_SUBSCRIBE_ATTRI_THREADID = 0,
  ACL_SUBSCRIBE_ATTRI_NONE = 1
} aclprofSubscribeOpAttri;

typedef struct aclprofSubscribeConfig aclprofSubscribeConfig;

/* `fd`: the write end of a pipe. With `timeInfoSwitch` 0 the times are 0. Null for null. */
aclprofSubscribeConfig* aclprofCreateSubscribeConfig(int8_t timeInfoSwitch,
                                                     aclprofAicoreMetrics aicoreMetrics, void* fd);
aclError aclprofDestroySubscribeConfig(const aclprofSubscribeConfig* profSubscribeConfig);

/* From now on each operator of the model that has run is a record in the pipe; a thread writes
 * them, so that a reader who is late does not hold the model. At most 65536 records wait; more are
 * lost, which the log says. A model that is not loaded: ACL_ERROR_GE_EXEC_MODEL_ID_INVALID; a
 * second subscription: ACL_ERROR_INVALID_PARAM.
 *
 * Unsubscribing writes what waits, for at most 10 s, and closes the pipe's end, so that its reader
 * ends. So does aclFinalize. */
aclError aclprofModelSubscribe(uint32_t modelId, const aclprofSubscribeConfig* profSubscribeConfig);
aclError aclprofModelUnSubscribe(uint32_t modelId);

/* What was read from the pipe: whole records. ACL_ERROR_INVALID_PARAM, 0, null or
 * ACL_SUBSCRIBE_NONE for bytes that are not, and for an index that is not one of them. Lengths
 * count the terminating 0; times are microseconds since the epoch. */
aclError aclprofGetOpDescSize(size_t* opDescSize);
aclError aclprofGetOpNum(const void* opInfo, size_t opInfoLen, uint32_t* opNumber);
aclError aclprofGetOpTypeLen(const void* opInfo, size_t opInfoLen, uint32_t index,
                             size_t* opTypeLen);
aclError aclprofGetOpType(const void* opInfo, size_t opInfoLen, uint32_t index, char* opType,
                          size_t opTypeLen);
aclError aclprofGetOpNameLen(const void* opInfo, size_t opInfoLen, uint32_t index,
                             size_t* opNameLen);
aclError aclprofGetOpName(const void* opInfo, size_t opInfoLen, uint32_t index, char* opName,
                          size_t opNameLen);
uint64_t aclprofGetOpStart(const void* opInfo, size_t opInfoLen, uint32_t index);
uint64_t aclprofGetOpEnd(const void* opInfo, size_t opInfoLen, uint32_t index);
uint64_t aclprofGetOpDuration(const void* opInfo, size_t opInfoLen, uint32_t index);
size_t aclprofGetModelId(const void* opInfo, size_t opInfoLen, uint32_t index);
aclprofSubscribeOpFlag aclprofGetOpFlag(const void* opInfo, size_t opInfoLen, uint32_t index);
const char* aclprofGetOpAttriValue(const void* opInfo, size_t opInfoLen, uint32_t index,
                                   aclprofSubscribeOpAttri attri);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_PROF_H_ */
