/* The AscendCL entry header: what programs for an NPU include. Source compatible with the vendor's
 * interface of version 1.17; npumesh implements the run-time part.
 *
 * All functions may be called from any thread. Streams, events and contexts are valid in every
 * thread of the process; which device a thread uses is the thread's own (aclrtSetDevice). */
#ifndef NPUMESH_ACL_ACL_H_
#define NPUMESH_ACL_ACL_H_

#include "acl_mdl.h"
#include "acl_op.h"
#include "acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 17
#define ACL_PATCH_VERSION 0

/* Starts the interface; once before anything else. `configPath`: null, or a file that exists; what
 * it says about dumping holds for models (docs/dump.md), the rest has no effect. A second call
 * raises the reference count and returns ACL_ERROR_REPEAT_INITIALIZE; a file that cannot be read is
 * ACL_ERROR_INVALID_FILE. */
aclError aclInit(const char* configPath);

/* Ends the interface, whatever the reference count: streams, events, contexts, device memory and
 * worlds of this process end. Collective over all ranks when a device was used (waits for them at
 * most 10 s). Without aclInit: ACL_SUCCESS; when ended already: ACL_ERROR_REPEAT_FINALIZE. */
aclError aclFinalize(void);

/* Lowers the reference count and ends the interface when it reaches zero. `refCount` may be null;
 * receives what is left. */
aclError aclFinalizeReference(uint64_t* refCount);

/* `cbFunc` is called by aclInit with the content of its file, or at once when the interface has
 * begun; by aclFinalize, before anything ends. A code that is not 0 is returned by the call that
 * called it. The type has no effect. A function that is not registered: ACL_ERROR_INVALID_PARAM. */
ACL_FUNC_VISIBILITY aclError aclInitCallbackRegister(aclRegisterCallbackType type,
                                                     aclInitCallbackFunc cbFunc, void* userData);
ACL_FUNC_VISIBILITY aclError aclInitCallbackUnRegister(aclRegisterCallbackType type,
                                                       aclInitCallbackFunc cbFunc);
ACL_FUNC_VISIBILITY aclError aclFinalizeCallbackRegister(aclRegisterCallbackType type,
                                                         aclFinalizeCallbackFunc cbFunc,
                                                         void* userData);
ACL_FUNC_VISIBILITY aclError aclFinalizeCallbackUnRegister(aclRegisterCallbackType type,
                                                           aclFinalizeCallbackFunc cbFunc);

/* The messages of the calling thread's failed calls since the last time, or null. Valid until the
 * next call of this function on this thread. */
const char* aclGetRecentErrMsg(void);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_H_ */
