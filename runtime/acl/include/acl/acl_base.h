/* Basic types, error codes and helpers. */
#ifndef NPUMESH_ACL_ACL_BASE_H_
#define NPUMESH_ACL_ACL_BASE_H_

#include "acl_base_mdl.h"
#include "acl_base_rt.h"
#include "error_codes/ge_error_codes.h"
#include "error_codes/rt_error_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

float aclFloat16ToFloat(aclFloat16 value);

/* Rounds to nearest, ties to even. */
aclFloat16 aclFloatToFloat16(float value);

/* Bytes of one element; 0 for a type that is not listed. */
size_t aclDataTypeSize(aclDataType dataType);

#ifdef __cplusplus
}
#endif

#endif /* NPUMESH_ACL_ACL_BASE_H_ */
