/* The name under which some programs include acl_meta.h. */
#ifndef NPUMESH_ACLNN_ACLNN_BASE_H_
#define NPUMESH_ACLNN_ACLNN_BASE_H_

#include "acl_meta.h"

#endif /* NPUMESH_ACLNN_ACLNN_BASE_H_ */
