/* Single operators: what programs say before they run some. npumesh runs operators in models
 * (acl_mdl.h); the functions that run single ones are absent (docs/acl.md). */
#ifndef NPUMESH_ACL_ACL_OP_H_
#define NPUMESH_ACL_ACL_OP_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Without effect: operators have no files of kernels, and no compiled ones are kept. */
ACL_FUNC_VISIBILITY aclError aclopSetModelDir(const char* modelDir);
ACL_FUNC_VISIBILITY aclError aclopSetMaxOpQueueNum(uint64_t maxOpNum);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_OP_H_ */
