/* For C++ the vendor overloads some functions of acl_rt.h here. */
#ifndef NPUMESH_ACL_ACL_RT_API_H_
#define NPUMESH_ACL_ACL_RT_API_H_

#include "acl_rt.h"

#endif /* NPUMESH_ACL_ACL_RT_API_H_ */
