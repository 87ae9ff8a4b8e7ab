/* Models that run on streams: tasks that streams take down once, to be run again and again. A part
 * of acl_rt.h. A handle that is not live is ACL_ERROR_RT_PARAM_INVALID, null
 * ACL_ERROR_INVALID_PARAM.
 */
#ifndef NPUMESH_ACL_ACL_RT_MODELS_H_
#define NPUMESH_ACL_ACL_RT_MODELS_H_

#include "acl_base.h"
#include "acl_rt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Capture: the tasks of a stream ------------------------------------------------------- */

/* Until aclmdlRICaptureEnd the stream takes its tasks down instead of running them. A stream that
 * waits for an event which was recorded in it joins, and must be waited for in the same way. Such
 * streams can be neither synchronised, queried nor destroyed (ACL_ERROR_RT_STREAM_CAPTURED), and
 * their events not be asked for (ACL_ERROR_RT_EVENT_CAPTURED). aclrtMemcpy, aclrtMemset and
 * asynchronous copies of pageable memory are ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT meanwhile: in
 * every thread (mode GLOBAL), in the calling one (THREAD_LOCAL), in none (RELAXED).
 * ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT for the default stream, ACL_ERROR_RT_STREAM_CAPTURED for one
 * that is captured. An event with ACL_EVENT_EXTERNAL is waited for and reset when the model runs.
 */
aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode);

/* `modelRI` may be null; it becomes null when the stream is not captured. */
aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI);

/* ACL_ERROR_RT_STREAM_NOT_CAPTURED; ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED for a stream that has
 * only joined; ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD unless the mode is RELAXED. The capture
 * ends also with ACL_ERROR_RT_STREAM_UNJOINED: a stream that has joined was not waited for. */
aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI);

/* Sets the thread's mode and returns the one before: what captures of this and of other threads
 * forbid it. */
aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode);

/* Tasks of a captured stream between Begin and End are one group, and its handle lives as long as
 * the model. Events are ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT there. */
aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream);
aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle);

/* The tasks of the stream, which is not captured, between Begin and End take the place of those of
 * the group, also in a run that has not come to them; they do not run now.
 * ACL_ERROR_RT_PARAM_INVALID, and nothing has changed, when their number differs. */
aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream, aclrtTaskGrp handle);
aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream);

/* ---- Conditional tasks -------------------------------------------------------------------- */

/* Eight bytes of device memory which end with the model, that is being captured. With
 * ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT each run of the model begins by setting them to
 * `defaultLaunchValue`; with 0 they keep what was written there. */
aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue,
                                  aclmdlRICondHandleFlag flag, aclmdlRICondHandle* handle);
aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t** ptr);

/* A task of a captured stream that runs one of its branches, by the condition at that moment. IF:
 * the first unless it is 0, else the second, if there is one. WHILE: the one again and again until
 * it is 0. SWITCH: the one of that number, if there is one. The empty branches are written into
 * modelRIArray; aclmdlRICaptureToModelRIBegin fills one, and it ends with the model. */
aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream, uint32_t flags);
aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI,
                                       aclmdlRICaptureMode mode);

/* ---- Models that are built of streams ----------------------------------------------------- */

/* A stream with ACL_STREAM_PERSISTENT that is bound takes its tasks down until aclmdlRIBuildEnd.
 * Streams of a run go beside each other: those with ACL_MODEL_STREAM_FLAG_HEAD from the start,
 * others when a task starts them. The run is complete when one comes to its aclmdlRIEndTask, which
 * a model has once; it fails when all have stopped before. */
aclError aclmdlRIBuildBegin(aclmdlRI* modelRI, uint32_t flag);
aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag);
aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream);
aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void* reserve);
aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream);

/* Starts a stream of the same model beside this one; one that runs goes on as it does. */
aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream);

/* When the comparison of two numbers in device memory holds, trueStream begins and this one
 * stops. */
aclError aclrtSwitchStream(void* leftValue, aclrtCondition cond, void* rightValue,
                           aclrtCompareDataType dataType, aclrtStream trueStream,
                           aclrtStream falseStream, aclrtStream stream);

/* A label is set once, in a stream that is bound. The switch goes on at the label that the index in
 * device memory names, the last one when it is too large; the stream stops when that is another's.
 */
aclError aclrtCreateLabel(aclrtLabel* label);
aclError aclrtDestroyLabel(aclrtLabel label);
aclError aclrtSetLabel(aclrtLabel label, aclrtStream stream);
aclError aclrtCreateLabelList(aclrtLabel* labels, size_t num, aclrtLabelList* labelList);
aclError aclrtDestroyLabelList(aclrtLabelList labelList);
aclError aclrtSwitchLabelByIndex(void* ptr, uint32_t maxValue, aclrtLabelList labelList,
                                 aclrtStream stream);

/* ---- Runs -------------------------------------------------------------------------------- */

/* The tasks of a captured model, those of all streams in the order of their calls, or the streams
 * of a built one, as one task of the stream (of the default stream, with a time-out in milliseconds
 * or -1). They use the addresses that they were given. A task that fails ends the run, and its
 * failure is the stream's. ACL_ERROR_RT_MODEL_CAPTURED while it is captured or built. */
aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout);
aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream);

/* Ends the run of a built model, which fails; ACL_ERROR_RT_FEATURE_NOT_SUPPORT for a captured
 * one. */
aclError aclmdlRIAbort(aclmdlRI modelRI);

/* What runs or is queued is finished all the same. Functions that were registered are called, each
 * once, when the model is dead. */
aclError aclmdlRIDestroy(aclmdlRI modelRI);
aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func, void* userData);
aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func);

/* ---- What was taken down ------------------------------------------------------------------ */

/* At most 512 bytes of a name are read back; it is empty until it is set. */
aclError aclmdlRISetName(aclmdlRI modelRI, const char* name);
aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char* name);
aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t* modelRIId);

/* With a null array only the number. Handles of streams and tasks live as long as the model; the
 * same task has the same handle again. ACL_ERROR_INVALID_PARAM for an array that is too short. */
aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream* streams, uint32_t* numStreams);
aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask* tasks, uint32_t* numTasks);

/* The sequence number is that of the task in the model. Operators, copies and host functions are
 * ACL_MODEL_RI_TASK_DEFAULT: they have no parameters. Those of values in memory and of events from
 * outside can be changed, or a task left out, which both holds from aclmdlRIUpdate on; others are
 * ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT. */
aclError aclmdlRITaskGetSeqId(aclmdlRITask task, uint32_t* id);
aclError aclmdlRITaskGetType(aclmdlRITask task, aclmdlRITaskType* type);
aclError aclmdlRITaskGetParams(aclmdlRITask task, aclmdlRITaskParams* params);
aclError aclmdlRITaskSetParams(aclmdlRITask task, aclmdlRITaskParams* params);
aclError aclmdlRITaskDisable(aclmdlRITask task);
/* ACL_ERROR_RT_PARAM_INVALID, and the changes wait on, while the model runs. */
aclError aclmdlRIUpdate(aclmdlRI modelRI);

/* Writes the tasks as a list of trace events: one of length 1 for each, by model and stream. */
aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t flags);
/* The same into the log, one line for each task. */
aclError aclmdlRIDebugPrint(aclmdlRI modelRI);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_RT_MODELS_H_ */
