/* Offline models are not part of npumesh's C interface; graphs run through `npumesh run`. The
 * header exists because acl.h names it. */
#ifndef NPUMESH_ACL_ACL_MDL_H_
#define NPUMESH_ACL_ACL_MDL_H_

#include "acl_base.h"

#endif /* NPUMESH_ACL_ACL_MDL_H_ */
