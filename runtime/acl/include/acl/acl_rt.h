/* Devices, contexts, streams, events, memory and host callbacks. Each function names the errors
 * that are its own; besides these, a null pointer for a result is ACL_ERROR_INVALID_PARAM, and a
 * call that needs a current device without one is ACL_ERROR_RT_CONTEXT_NULL. */
#ifndef NPUMESH_ACL_ACL_RT_H_
#define NPUMESH_ACL_ACL_RT_H_

#include "acl_base.h"
#include "acl_rt_allocator.h"
#include "acl_rt_kernels.h"
#include "acl_rt_models.h"
#include "acl_rt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Devices ----------------------------------------------------------------------------- */

/* Makes a device current for the calling thread, with its implicit context, and takes one
 * reference to it. The first call of the process starts the world: collective over all ranks.
 * Under a launcher the process has its rank's device; it answers to the rank's local index and
 * to 0. Otherwise ids are 0 .. NPUMESH_DEVICE_COUNT - 1. ACL_ERROR_RT_INVALID_DEVICEID for others,
 * ACL_ERROR_RT_NO_DEVICE when the world does not start. */
aclError aclrtSetDevice(int32_t deviceId);

/* Gives one reference back; with the last one the device's contexts, streams and memory end.
 * ACL_ERROR_RT_INVALID_DEVICEID without one. After aclFinalize, which has ended the device
 * already, nothing happens. */
aclError aclrtResetDevice(int32_t deviceId);

/* The same whatever the number of references, none included. ACL_ERROR_RT_INVALID_DEVICEID for an
 * id that is no device of this process. */
aclError aclrtResetDeviceForce(int32_t deviceId);

/* The id that the thread has set. */
aclError aclrtGetDevice(int32_t* deviceId);

/* Legal before aclInit. Under a launcher: the ranks of this node. */
aclError aclrtGetDeviceCount(uint32_t* count);

/* The version of this interface, as the macros of acl.h say it. */
aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion);

aclError aclrtGetRunMode(aclrtRunMode* runMode);

/* Legal before aclInit; never null. */
const char* aclrtGetSocName(void);

/* Kept with the context and read back; npumesh computes as INFNAN does. */
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode);

/* Waits for all streams of the current context; the first failure, in the order of creation. */
aclError aclrtSynchronizeDevice(void);

/* `timeout` in milliseconds, -1: without limit; ACL_ERROR_RT_STREAM_SYNC_TIMEOUT. */
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus);

/* All devices of a node reach each other's memory; enabling and disabling is only checked. */
aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId);
aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);

/* Logical, physical and user ids of simulated devices are the same. */
aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId, int32_t* const phyDevId);
aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid, int32_t* const logicDevId);
aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId, int32_t* const userDevid);

/* ---- Contexts ---------------------------------------------------------------------------- */

/* The new context becomes the thread's current one. */
aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId);

/* Ends the context and its streams, after their work is done. ACL_ERROR_RT_INVALID_HANDLE for a
 * foreign handle, ACL_ERROR_INVALID_PARAM for null and for the implicit context of a device. */
aclError aclrtDestroyContext(aclrtContext context);
aclError aclrtSetCurrentContext(aclrtContext context);
aclError aclrtGetCurrentContext(aclrtContext* context);

/* ---- Streams: work in order, beside the host --------------------------------------------- */

/* Null stands for the default stream of the current context in every function that takes a
 * stream, unless it says otherwise. A foreign handle is ACL_ERROR_RT_INVALID_HANDLE. */
aclError aclrtCreateStream(aclrtStream* stream);

/* Priority and flags are accepted and change nothing. */
aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag);

/* Finishes what was queued. Not for null. */
aclError aclrtDestroyStream(aclrtStream stream);

/* Drops what was queued; the task that runs is waited for. */
aclError aclrtDestroyStreamForce(aclrtStream stream);

/* Runs what is queued to its end and returns the first failure of the stream, which stays. */
aclError aclrtSynchronizeStream(aclrtStream stream);

/* Milliseconds, -1: no limit, 0: ACL_ERROR_INVALID_PARAM. ACL_ERROR_RT_STREAM_SYNC_TIMEOUT leaves
 * the work going on. */
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);
aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status);

/* Later tasks of the stream wait for the event's last record. An event with ACL_EVENT_SYNC that was
 * never recorded, or was reset, holds the stream until its next record. */
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

/* What follows a failed task: run it (ACL_CONTINUE_ON_FAILURE, the state of a new stream) or drop
 * it (ACL_STOP_ON_FAILURE). Once for each stream; not for null. */
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode);

/* Drops what was queued; the task that runs is waited for. */
aclError aclrtStreamAbort(aclrtStream stream);
aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId);
aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream);

/* Seconds that a stream waits for an event, 0: without limit (the start value). A wait that ends so
 * fails its stream with ACL_ERROR_RT_TASK_TIMEOUT. */
aclError aclrtSetOpWaitTimeout(uint32_t timeout);

/* Accepted; HCCL_EXEC_TIMEOUT bounds collectives, nothing else here takes long. */
aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);
aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout);
aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout);

/* ---- Events: points in a stream ---------------------------------------------------------- */

/* For time and for waiting; cannot be reset. */
aclError aclrtCreateEvent(aclrtEvent* event);
aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag);
aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag);
aclError aclrtDestroyEvent(aclrtEvent event);
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);

/* ACL_ERROR_INVALID_PARAM unless it was created with flag ACL_EVENT_SYNC. */
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);

/* An event that was never recorded is not ready. */
aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status);
aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status);

/* Whether all waits for the event that were queued so far are over. */
aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status);

/* Returns at once for an event that was never recorded. */
aclError aclrtSynchronizeEvent(aclrtEvent event);

/* Milliseconds, -1: without limit, 0: ACL_ERROR_INVALID_PARAM; ACL_ERROR_RT_EVENT_SYNC_TIMEOUT. */
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);

/* Milliseconds between two completed records. ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID when one is not
 * completed or was created without ACL_EVENT_TIME_LINE, ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL when
 * the end came first. */
aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent);

/* Microseconds of a steady clock when the record completed. */
aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp);

/* ---- Memory ------------------------------------------------------------------------------ */

/* Device memory, 64-byte aligned and not cleared; policies are accepted and change nothing.
 * ACL_ERROR_RT_MEMORY_ALLOCATION when it does not fit. Device memory of this process can be read
 * and written by the host as well. */
aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy policy);

/* Does not wait for streams. ACL_ERROR_INVALID_PARAM for null and for what aclrtMalloc did not
 * return. */
aclError aclrtFree(void* devPtr);
aclError aclrtMallocHost(void** hostPtr, size_t size);
aclError aclrtFreeHost(void* hostPtr);

/* Copies now, without waiting for streams. ACL_ERROR_INVALID_PARAM for null, an unknown kind, for
 * count > destMax, and where kind says device memory and the address is another. Where it says host
 * memory, device memory is taken as well. */
aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind);

/* Host to host: ACL_ERROR_RT_FEATURE_NOT_SUPPORT. The memory must live until the copy is done. */
aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream);

/* Memory of a device or of aclrtMallocHost, told apart by the address; ACL_ERROR_INVALID_PARAM for
 * count > maxCount and for other memory. aclrtMemset also fills variables of the program, which is
 * undefined on an NPU, and says so once; with NPUMESH_GUARD it refuses them. */
aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count);
aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream);

/* A simulated device has one kind of memory; every attribute answers for it. */
aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total);

/* Address space that peers can map lies inside the HBM, so reserving takes the bytes and the
 * physical block that is mapped there later takes none: memory is counted once. `alignment` must be
 * 0 and `expectPtr` null. */
aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment, void* expectPtr,
                                uint64_t flags);

/* ACL_ERROR_INVALID_PARAM while something is mapped. */
aclError aclrtReleaseMemAddress(void* virPtr);

/* `size`: a multiple of the granularity. Only of a device: ACL_ERROR_RT_FEATURE_NOT_SUPPORT for
 * others. */
aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                             const aclrtPhysicalMemProp* prop, uint64_t flags);

/* Gives one reference back; a block without one ends, a mapped one when it is unmapped. */
aclError aclrtFreePhysical(aclrtDrvMemHandle handle);

/* `size`: all of the block; `offset` and `flags`: 0. A block is mapped at one place at a time, and
 * keeps its bytes from one to the next. Its device may read and write there, after
 * aclrtMemMapNoAccess not before aclrtMemSetAccess. */
aclError aclrtMapMem(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                     uint64_t flags);
aclError aclrtMemMapNoAccess(void* virPtr, size_t size, size_t offset, aclrtDrvMemHandle handle,
                             uint64_t flags);
aclError aclrtUnmapMem(void* virPtr);
aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                          aclrtMemGranularityOptions option, size_t* granularity);

/* The block that is mapped around an address, with one reference more, which aclrtFreePhysical
 * gives back. */
aclError aclrtMemRetainAllocationHandle(void* virPtr, aclrtDrvMemHandle* handle);
aclError aclrtMemGetAllocationPropertiesFromHandle(aclrtDrvMemHandle handle,
                                                   aclrtPhysicalMemProp* prop);

/* What devices and the host may do with one or several whole mappings, side by side. All devices of
 * a process use its pages, so each of them may do what one of them may. Copies, fills and tasks
 * that may not are ACL_ERROR_INVALID_PARAM; the host that touches such memory ends as it would with
 * any protected page. */
aclError aclrtMemSetAccess(void* virPtr, size_t size, aclrtMemAccessDesc* desc, size_t count);
aclError aclrtMemGetAccess(void* virPtr, aclrtMemLocation* location, uint64_t* flag);

/* Blocks over processes of one host and user. A number, or the text of a fabric handle, stands for
 * the block; other processes import it when it was exported with
 * ACL_RT_VMM_EXPORT_FLAG_DISABLE_PID_VALIDATION or they are listed (ACL_ERROR_RT_NO_PERMISSION).
 * ACL_ERROR_INVALID_PARAM for one that has ended, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR when its owner
 * has. The bytes last as long as one process has them mapped or imported, but the owner must not
 * map another block at the same addresses before. Collectives do not take memory of other
 * processes. */
aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle handle, aclrtMemHandleType handleType,
                                         uint64_t flags, uint64_t* shareableHandle);
aclError aclrtMemExportToShareableHandleV2(aclrtDrvMemHandle handle, uint64_t flags,
                                           aclrtMemSharedHandleType shareType,
                                           void* shareableHandle);
aclError aclrtMemImportFromShareableHandle(uint64_t shareableHandle, int32_t deviceId,
                                           aclrtDrvMemHandle* handle);
aclError aclrtMemImportFromShareableHandleV2(void* shareableHandle,
                                             aclrtMemSharedHandleType shareType, uint64_t flags,
                                             aclrtDrvMemHandle* handle);
aclError aclrtMemSetPidToShareableHandle(uint64_t shareableHandle, int32_t* pid, size_t pidNum);
aclError aclrtMemSetPidToShareableHandleV2(void* shareableHandle,
                                           aclrtMemSharedHandleType shareType, int32_t* pid,
                                           size_t pidNum);

/* Addresses cannot be chosen, and there is one way to a memory. */
aclError aclrtReserveMemAddressNoUCMemory(void** virPtr, size_t size, size_t alignment,
                                          void* expectPtr, uint64_t flags);
aclError aclrtMemMapSelectedLink(void* virPtrDst, size_t size, void* virPtrSrc, uint32_t linkIdx);
aclError aclrtMemMapSetLink(aclrtDrvMemHandle handle, aclrtMemLinkType adviceLink);
aclError aclrtMemP2PMap(void* devPtr, size_t size, int32_t dstDevId, uint64_t flags);

/* ---- Host callbacks in the order of a stream --------------------------------------------- */

/* Runs on the thread that is subscribed to the stream; with ACL_CALLBACK_BLOCK the stream waits
 * for it. ACL_ERROR_RT_STREAM_NO_CB_REG when no thread is. */
aclError aclrtLaunchCallback(aclrtCallback fn, void* userData, aclrtCallbackBlockType blockType,
                             aclrtStream stream);

/* `threadId`: of the thread that calls aclrtProcessReport, as pthread_self says it. A stream has
 * one subscriber: ACL_ERROR_RT_STREAM_SUBSCRIBE for a second. */
aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream);

/* Runs one callback that waits for the calling thread. Milliseconds, -1: without limit;
 * ACL_ERROR_WAIT_CALLBACK_TIMEOUT, ACL_ERROR_RT_THREAD_SUBSCRIBE when no stream is subscribed. */
aclError aclrtProcessReport(int32_t timeout);

/* Callbacks that still wait are dropped. ACL_ERROR_RT_THREAD_SUBSCRIBE when not subscribed. */
aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream);

/* Runs as a task of the stream; must not call functions of this interface on the same stream. */
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args);

/* ---- Limits of cores -------------------------------------------------------------------- */

/* How many cores of a kind work may take: of a stream before those of the device before what the
 * SoC has. npumesh keeps the numbers and returns them; its work takes the cores of the host.
 * `value`: 1 to what the SoC has. */
aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value);
aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t* value);
aclError aclrtResetDeviceResLimit(int32_t deviceId);
aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t value);
aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type, uint32_t* value);
aclError aclrtResetStreamResLimit(aclrtStream stream);

/* Which stream's limits aclrtGetResInCurrentThread answers with in the calling thread. */
aclError aclrtUseStreamResInCurrentThread(aclrtStream stream);
aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream);
aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value);

/* ---- What devices and packages are ------------------------------------------------------ */

/* Of the simulated SoC. What only hardware has: ACL_ERROR_RT_FEATURE_NOT_SUPPORT. The size of
 * the memory needs a current device. */
aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value);
aclError aclrtGetDeviceCapability(int32_t deviceId, aclrtDevFeatureType devFeatureType,
                                  int32_t* value);

/* Cores: 100 while a stream of the device has work, else 0; memory in per cent.
 * utilizationExtend: null. Only of a device of this process. */
aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo);

/* One entry, "npumesh": device memory in use now and at most so far. */
aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum,
                              size_t* outputNum);

/* A smaller number goes first. The range is checked; all streams are served alike. */
aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority);

/* 1 for names of the simulated family (Ascend910B), else 0. */
aclError aclrtCheckArchCompatibility(const char* socVersion, int32_t* canCompatible);

/* The number of this process, for lists of processes that may import something. */
aclError aclrtDeviceGetBareTgid(int32_t* pid);

aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid);
aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len);
aclError aclrtDeviceGetByPCIBusId(const char* pciBusId, int32_t* deviceId);

/* All devices of a node are HCCS neighbours that reach each other. */
aclError aclrtGetDevicesTopo(uint32_t deviceId, uint32_t otherDeviceId, uint64_t* value);
aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId, int32_t* status);

/* Whether aclrtSetDevice has made the device's implicit context; `flags` may be null. */
aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active);

aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId, int32_t* const logicDevId);
aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId, int32_t* const userDevId);
aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId, int32_t* const phyDevId);

/* The release whose interface this is, for the packages cann, runtime, compiler, hccl, toolkit,
 * opp, opp_kernel and driver; ACL_ERROR_INVALID_FILE for others. `versionStr`: room for
 * ACL_PKG_VERSION_MAX_SIZE. */
aclError aclsysGetVersionStr(char* pkgName, char* versionStr);
aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum);
aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version);

/* ---- Options of streams ----------------------------------------------------------------- */

/* Null without memory. Destroyed or foreign handles: ACL_ERROR_INVALID_PARAM. `valueSize` is
 * that of the attribute: 8 bytes, 4 for the priority, either for the flags. */
aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle(void);
aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle);
aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, aclrtStreamConfigAttr attr,
                                 const void* attrValue, size_t valueSize);
aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle);

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags);
aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority);

/* Attributes of failure and overflow are those of the functions with these names; the others are
 * kept and returned. */
aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value);
aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value);

/* How many streams of the SoC's 2048 the current context leaves; npumesh itself has no limit. */
aclError aclrtGetStreamAvailableNum(uint32_t* streamCount);

/* Each function has a name; a null function takes the name away. Called by the thread that makes
 * or ends the stream or sets or resets the device, default streams included; they may call this
 * interface. */
aclError aclrtRegStreamStateCallback(const char* regName, aclrtStreamStateCallback callback,
                                     void* args);
aclError aclrtRegDeviceStateCallback(const char* regName, aclrtDeviceStateCallback callback,
                                     void* args);

/* ---- Overflow --------------------------------------------------------------------------- */

/* Kept with the stream and returned: 0 or 1. */
aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag);
aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag);

/* npumesh computes as INFNAN does: what overflows is an infinity in the result, and the status,
 * which a task of the stream writes, is zero. 64 bytes of device memory, else
 * ACL_ERROR_INVALID_PARAM. */
aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize, aclrtStream stream);
aclError aclrtResetOverflowStatus(aclrtStream stream);
aclError aclrtGetFloatOverflowStatus(void* outputAddr, uint64_t outputSize, aclrtStream stream);
aclError aclrtResetFloatOverflowStatus(aclrtStream stream);

/* ---- Without effect --------------------------------------------------------------------- */

/* Device memory is checked; a simulated device has neither caches beside its memory nor several
 * schedulers. Said once by the log. */
aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType, aclrtStream stream);
aclError aclrtMemFlush(void* devPtr, size_t size);
aclError aclrtMemInvalidate(void* devPtr, size_t size);
aclError aclrtSetTsDevice(aclrtTsId tsId);

/* ---- Tasks on device memory ------------------------------------------------------------- */

/* A word of 8 bytes at a multiple of 8. `flag` of a write: 0; of a wait ACL_STREAM_WAIT_VALUE_*:
 * until (int64_t)(*devAddr - value) >= 0, until they are equal, until they have a bit in common,
 * until one bit is in neither. aclrtSetOpWaitTimeout bounds it. */
aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream);
aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream);

/* dst = dst (kind) src, `count` bytes of whole elements: floats of 16 and 32 bits, integers of
 * 8, 16 and 32 bits. EQUAL writes 1 where both are equal, else 0. `reserve`: null. */
aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count, aclrtReduceKind kind,
                          aclDataType type, aclrtStream stream, void* reserve);

/* Numbers of Philox4x32-10 with the seed as key and the 16 bytes of the counter as first
 * counter, which is not written. Uniform: from min, below max; truncated normal: within two
 * standard deviations; the mask: a bit for each number, 1 where an element stays, the first in
 * the lowest bit. Parameters given by address are read when the task runs. */
aclError aclrtRandomNumAsync(const aclrtRandomNumTaskInfo* taskInfo, const aclrtStream stream,
                             void* reserve);

/* As aclrtStreamAbort. */
aclError aclrtStreamStop(aclrtStream stream);

/* As aclrtSubscribeReport, aclrtProcessReport and aclrtUnSubscribeReport, for aclrtLaunchHostFunc:
 * functions run on the thread that is subscribed to them, and the stream waits for each; without
 * one a thread of the stream runs them. A stream may have a subscriber of each kind. */
aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream);
aclError aclrtProcessHostFunc(int32_t timeout);
aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream);

/* Seconds, 0: without limit. EXTERNAL is for captured streams and events of
 * aclrtCreateEventExWithFlag with ACL_EVENT_SYNC: each run of the model waits for, or records,
 * the event as others see it. */
aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout);
aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
                                      uint32_t flag);
aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag);

/* ---- Notifies --------------------------------------------------------------------------- */

/* One record; a wait takes it, in any stream of any process. `timeout` in seconds, 0: without
 * limit. A wait fails its stream with ACL_ERROR_RT_TASK_TIMEOUT, or with
 * ACL_ERROR_RT_SUSPECT_REMOTE_ERROR when a process that shares the notify was killed. */
aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag);
aclError aclrtDestroyNotify(aclrtNotify notify);
aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream);
aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout);
aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num);
aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId);

/* Keys as of aclrtIpcMemGetExportKey; flag 2 exports to all processes. */
aclError aclrtNotifyGetExportKey(aclrtNotify notify, char* key, size_t len, uint64_t flags);
aclError aclrtNotifyImportByKey(aclrtNotify* notify, const char* key, uint64_t flags);
aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t* pid, size_t num);

/* A number of 32 bits, which records change and waits compare; `isClear`: a wait sets it to 0. */
aclError aclrtCntNotifyCreate(aclrtCntNotify* cntNotify, uint64_t flag);
aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify);
aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream,
                              aclrtCntNotifyRecordInfo* info);
aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify, aclrtStream stream,
                                       aclrtCntNotifyWaitInfo* info);
aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream);
aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t* notifyId);

/* ---- Other processes of the host -------------------------------------------------------- */

/* Bytes of one block of this process's device memory, for other processes of the same user;
 * `len`: at least 65. Without flag 1 only for processes that aclrtIpcMemSetImportPid lists, at
 * most 256: ACL_ERROR_RT_NO_PERMISSION for others. Nothing is left behind when a process is
 * killed: what it had exported cannot be imported any more (ACL_ERROR_RT_SUSPECT_REMOTE_ERROR),
 * and what was imported stays valid until it is closed. */
aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len, uint64_t flags);
aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num);
aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags);
aclError aclrtIpcMemClose(const char* key);

/* An event of aclrtCreateEventExWithFlag with ACL_EVENT_IPC, which other processes open: all
 * wait for the records of all. */
aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle);
aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event);

/* ---- Copies of rows and batches --------------------------------------------------------- */

/* `height` rows of `width` bytes, whose starts lie a pitch apart. The rules of each row are
 * those of aclrtMemcpy and aclrtMemcpyAsync. */
aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind);
aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream);

/* Copies of arrays, each by the rules of aclrtMemcpy; the kind follows from the locations in
 * attrs, of which attrs[k] is for the copies from attrsIndexes[k] on. `failIndex`: the first
 * copy that breaks a rule, SIZE_MAX when it is no single copy; then nothing is copied. */
aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                          size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                          size_t numAttrs, size_t* failIndex);
aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                            size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                            size_t numAttrs);
aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                               size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                               size_t numAttrs, size_t* failIndex, aclrtStream stream);
aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                 size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                 size_t* attrsIndexes, size_t numAttrs, aclrtStream stream);

/* As aclrtMemcpyAsync. */
aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream);

/* N words of 4 bytes, of a device or of aclrtMallocHost. */
aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N);
aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                             aclrtStream stream);

/* ---- Host memory for devices ------------------------------------------------------------ */

/* Registered memory is like that of aclrtMallocHost, and its device pointer is the host pointer.
 * ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, ACL_ERROR_HOST_MEMORY_NOT_REGISTERED. */
aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr);
aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag);
aclError aclrtHostUnregister(void* ptr);
aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag);
aclError aclrtHostMemMapCapabilities(uint32_t deviceId, aclrtHacType hacType,
                                     aclrtHostMemMapCapability* capabilities);

/* As aclrtMallocHost and aclrtMalloc: modules, and flags of addresses, are those of hardware. */
aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg);
aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                            aclrtMallocConfig* cfg);
aclError aclrtMallocForTaskScheduler(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                                     aclrtMallocConfig* cfg);

/* Device memory, which the host reads and writes as well; freed by aclrtFree. Advice and
 * prefetching have no effect. */
aclError aclrtMemAllocManaged(void** ptr, uint64_t size, uint32_t flag);
aclError aclrtMemManagedAdvise(const void* const ptr, uint64_t size,
                               aclrtMemManagedAdviseType advise, aclrtMemManagedLocation location);
aclError aclrtMemManagedPrefetchAsync(const void* ptr, size_t size,
                                      aclrtMemManagedLocation location, uint32_t flags,
                                      aclrtStream stream);

/* Where a pointer leads: to a device (its id; 0 for memory of another process), to memory of
 * aclrtMallocHost or aclrtHostRegister (HOST), or elsewhere (UNREGISTERED). Pages of 4096 bytes. */
aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes);

/* The block of device memory around a pointer; each result may be null. */
aclError aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize);

/* After aclrtSynchronizeDevice. */
aclError aclrtFreeWithDevSync(void* devPtr);
aclError aclrtFreeHostWithDevSync(void* hostPtr);

/* ---- Buffers of queues ------------------------------------------------------------------ */

/* The same as acltdtAllocBuf and its neighbours of acl_tdt_queue.h. */
aclError aclrtAllocBuf(aclrtMbuf* buf, size_t size);
aclError aclrtFreeBuf(aclrtMbuf buf);
aclError aclrtGetBufData(const aclrtMbuf buf, void** dataPtr, size_t* size);
aclError aclrtSetBufDataLen(aclrtMbuf buf, size_t len);
aclError aclrtGetBufDataLen(aclrtMbuf buf, size_t* len);
aclError aclrtSetBufUserData(aclrtMbuf buf, const void* dataPtr, size_t size, size_t offset);
aclError aclrtGetBufUserData(const aclrtMbuf buf, void* dataPtr, size_t size, size_t offset);
aclError aclrtCopyBufRef(const aclrtMbuf buf, aclrtMbuf* newBuf);
aclError aclrtAppendBufChain(aclrtMbuf headBuf, aclrtMbuf buf);
aclError aclrtGetBufChainNum(aclrtMbuf headBuf, uint32_t* num);
aclError aclrtGetBufFromChain(aclrtMbuf headBuf, uint32_t index, aclrtMbuf* buf);

/* ---- Copies whose places are learned late ------------------------------------------------ */

/* Within a device. A description of aclrtSetMemcpyDesc lies in device memory, of the size that is
 * asked for, and is read when the stream comes to the copy; `config`: null. WithOffset: `dst` and
 * `src` lie in device memory and point to where the offsets count from. What cannot be copied then
 * fails the stream. */
aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t* descSize);
aclError aclrtSetMemcpyDesc(void* desc, aclrtMemcpyKind kind, void* srcAddr, void* dstAddr,
                            size_t count, void* config);
aclError aclrtMemcpyAsyncWithDesc(void* desc, aclrtMemcpyKind kind, aclrtStream stream);
aclError aclrtMemcpyAsyncWithOffset(void** dst, size_t destMax, size_t dstDataOffset,
                                    const void** src, size_t count, size_t srcDataOffset,
                                    aclrtMemcpyKind kind, aclrtStream stream);

/* ---- The end of all tasks of a device ---------------------------------------------------- */

/* What is queued on its streams is dropped, what runs is waited for; the callbacks are called
 * before and after it, in the order of their names. A null callback removes a name. */
aclError aclrtDeviceTaskAbort(int32_t deviceId, uint32_t timeout);
aclError aclrtSetDeviceTaskAbortCallback(const char* regName, aclrtDeviceTaskAbortCallback callback,
                                         void* args);

/* ---- Small questions --------------------------------------------------------------------- */

/* Events have numbers of this process; a card has 65536 of them. */
aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId);
aclError aclrtGetEventAvailNum(uint32_t* eventCount);

/* What aclrtSetOpExecuteTimeOut and its neighbours have set, in milliseconds; 0 at first. */
aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs);
aclError aclrtGetOpTimeOutInterval(uint64_t* interval);

/* 1 in `checkResult` when all addresses are memory of a device and `memType` has
 * ACL_RT_MEM_TYPE_DEV. */
aclError aclrtCheckMemType(void** addrList, uint32_t size, uint32_t memType, uint32_t* checkResult,
                           uint32_t reserve);

/* There are no faults of memory. */
aclError aclrtGetMemUceInfo(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize,
                            size_t* retSize);

/* As aclrtGetFloatOverflowStatus and its neighbour; `checkMode`: 0. */
aclError aclrtNpuGetFloatOverFlowStatus(void* outputAddr, uint64_t outputSize, uint32_t checkMode,
                                        aclrtStream stream);
aclError aclrtNpuClearFloatOverFlowStatus(uint32_t checkMode, aclrtStream stream);

/* ---- Without effect, or refused (docs/acl.md says why) ------------------------------------ */

aclError aclrtCmoGetDescSize(size_t* size);
aclError aclrtCmoSetDesc(void* cmoDesc, void* src, size_t size);
aclError aclrtCmoAsyncWithDesc(void* cmoDesc, aclrtCmoType cmoType, aclrtStream stream,
                               const void* reserve);
aclError aclrtCmoAsyncWithBarrier(void* src, size_t size, aclrtCmoType cmoType, uint32_t barrierId,
                                  aclrtStream stream);
aclError aclrtCmoWaitBarrier(aclrtBarrierTaskInfo* taskInfo, aclrtStream stream, uint32_t flag);
aclError aclrtDeviceL2CacheFlush(void* rsv);
aclError aclrtMemManagedPrefetchBatchAsync(const void** ptrs, size_t* sizes, size_t count,
                                           aclrtMemManagedLocation* prefetchLocs,
                                           size_t* prefetchLocIdxs, size_t numPrefetchLocs,
                                           uint64_t flags, aclrtStream stream);
aclError aclrtIpcMemSetAttr(const char* key, aclrtIpcMemAttrType type, uint64_t attr);
aclError aclrtCacheLastTaskOpInfo(const void* const infoPtr, const size_t infoSize);
aclError aclrtCacheLastTaskExtendInfo(const char* const extendInfoPtr, const size_t infoSize);
aclError aclrtPersistentTaskClean(aclrtStream stream);
aclError aclrtRepairError(int32_t deviceId, const aclrtErrorInfo* errorInfo);
aclError aclrtMemUceRepair(int32_t deviceId, aclrtMemUceInfo* memUceInfoArray, size_t arraySize);

aclrtGroupInfo* aclrtCreateGroupInfo(void);
aclError aclrtDestroyGroupInfo(aclrtGroupInfo* groupInfo);
aclError aclrtGetGroupCount(uint32_t* count);
aclError aclrtGetAllGroupInfo(aclrtGroupInfo* groupInfo);
aclError aclrtGetGroupInfoDetail(const aclrtGroupInfo* groupInfo, int32_t groupIndex,
                                 aclrtGroupAttr attr, void* attrValue, size_t valueLen,
                                 size_t* paramRetSize);
aclError aclrtSetGroup(int32_t groupId);
aclError aclrtGetHardwareSyncAddr(void** addr);
aclError aclrtCtxGetFloatOverflowAddr(void** overflowAddr);
aclError aclrtDeviceGetHostAtomicCapabilities(uint32_t* capabilities,
                                              const aclrtAtomicOperation* operations,
                                              const uint32_t count, int32_t deviceId);
aclError aclrtDeviceGetP2PAtomicCapabilities(uint32_t* capabilities,
                                             const aclrtAtomicOperation* operations,
                                             const uint32_t count, int32_t srcDeviceId,
                                             int32_t dstDeviceId);
aclError aclrtDeviceGetLimit(aclrtDeviceLimit limit, size_t* value);
aclError aclrtDeviceSetLimit(aclrtDeviceLimit limit, size_t value);
aclError aclrtIpcMemImportPidInterServer(const char* key, aclrtServerPid* serverPids, size_t num);
aclError aclrtNotifySetImportPidInterServer(aclrtNotify notify, aclrtServerPid* serverPids,
                                            size_t num);
aclError aclrtMemManagedGetAttr(aclrtMemManagedRangeAttribute attribute, const void* ptr,
                                size_t size, void* data, size_t dataSize);
aclError aclrtMemManagedGetAttrs(aclrtMemManagedRangeAttribute* attributes, size_t numAttributes,
                                 const void* ptr, size_t size, void** data, size_t* dataSizes);

/* ---- Faults of hardware ----------------------------------------------------------------- */

/* A simulated device has no faults: always ACL_RT_NO_ERROR. What failed in a program is in
 * aclGetRecentErrMsg. */
aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo);

/* ---- Tasks that fail -------------------------------------------------------------------- */

/* Called for each task of a stream that fails from now on, by the thread that ran it, before the
 * stream goes on; it must not use that stream. Set replaces the one that was set, null removes it;
 * those that are registered come after it. */
aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback);
aclError aclrtExceptionInfoCallbackRegister(aclrtExceptionInfoCallback callback);
aclError aclrtExceptionInfoCallbackUnregister(aclrtExceptionInfoCallback callback);

/* In a callback: the number of the task in its stream, from 1, as aclrtGetThreadLastTaskId tells it
 * to the thread that queued it; the id of the stream (aclrtStreamGetId) and of that thread (gettid;
 * 0 when there was no callback yet); the device, and the code that synchronising the stream
 * returns. 0xFFFFFFFF for null. */
uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info);
uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info);
uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info);
uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info);
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info);

/* Of kernels of the cores, which do not run here: ACL_ERROR_RT_FEATURE_NOT_SUPPORT. */
aclError aclrtGetArgsFromExceptionInfo(const aclrtExceptionInfo* info, void** devArgsPtr,
                                       uint32_t* devArgsLen);
aclError aclrtGetFuncHandleFromExceptionInfo(const aclrtExceptionInfo* info, aclrtFuncHandle* func);

/* Of what the calling thread has queued last, on whichever stream; ACL_ERROR_FAILURE before that.
 */
aclError aclrtGetThreadLastTaskId(uint32_t* taskId);

/* ---- Errors ------------------------------------------------------------------------------ */

/* The code of the calling thread's last failed call; Get clears it, Peek does not. */
aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
aclError aclrtGetLastError(aclrtLastErrLevel level);

/* ---- Parameters of the system ----------------------------------------------------------- */

/* Kept and returned, 0 at first: results here are deterministic whatever they say. A context has
 * those of the process until its own are set. Others than the listed: ACL_ERROR_INVALID_PARAM. */
ACL_FUNC_VISIBILITY aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value);
ACL_FUNC_VISIBILITY aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_RT_H_ */
