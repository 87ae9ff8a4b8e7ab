/* Types of offline models: none in npumesh. The header exists because acl_base.h names it. */
#ifndef NPUMESH_ACL_ACL_BASE_MDL_H_
#define NPUMESH_ACL_ACL_BASE_MDL_H_

#include "acl_base_rt.h"

#endif /* NPUMESH_ACL_ACL_BASE_MDL_H_ */
