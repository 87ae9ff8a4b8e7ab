/* Marks and ranges of a program in its profile (mstx): they appear where aclprofStart records
 * ACL_PROF_MSPROFTX or ACL_PROF_TASK_TIME, and cost next to nothing otherwise. The message is not
 * null; what is wrong does nothing, and aclGetRecentErrMsg says why. Thread-safety: any thread.
 * Names, parameters: the public header of the vendor's mstx. */
#ifndef NPUMESH_MSTX_MS_TOOLS_EXT_H_
#define NPUMESH_MSTX_MS_TOOLS_EXT_H_

#include <stdint.h>

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t mstxRangeId;
typedef struct mstxDomainRegistration_st* mstxDomainHandle_t;

/* An event now; with a stream also one when the stream comes there. */
ACL_FUNC_VISIBILITY void mstxMarkA(const char* message, aclrtStream stream);
/* A range from here to mstxRangeEnd, in any thread; with a stream also one from where the stream is
 * at the first call to where it is at the last. 0: nothing was begun. */
ACL_FUNC_VISIBILITY mstxRangeId mstxRangeStartA(const char* message, aclrtStream stream);
ACL_FUNC_VISIBILITY void mstxRangeEnd(mstxRangeId id);

/* Events with the name of their domain before the message. A name gives one domain. Null: nothing
 * was made. */
ACL_FUNC_VISIBILITY mstxDomainHandle_t mstxDomainCreateA(const char* name);
ACL_FUNC_VISIBILITY void mstxDomainDestroy(mstxDomainHandle_t domain);
ACL_FUNC_VISIBILITY void mstxDomainMarkA(mstxDomainHandle_t domain, const char* message,
                                         aclrtStream stream);
ACL_FUNC_VISIBILITY mstxRangeId mstxDomainRangeStartA(mstxDomainHandle_t domain,
                                                      const char* message, aclrtStream stream);
ACL_FUNC_VISIBILITY void mstxDomainRangeEnd(mstxDomainHandle_t domain, mstxRangeId id);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_MSTX_MS_TOOLS_EXT_H_ */
