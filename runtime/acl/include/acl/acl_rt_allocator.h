/* User-defined allocators: none in npumesh. The header exists because acl_rt.h names it. */
#ifndef NPUMESH_ACL_ACL_RT_ALLOCATOR_H_
#define NPUMESH_ACL_ACL_RT_ALLOCATOR_H_

#include "acl_base.h"

#endif /* NPUMESH_ACL_ACL_RT_ALLOCATOR_H_ */
