/* Numbers and inline functions of the vendor's interface as C99; CMakeLists.txt adds a file for each
 * header, which has to be complete alone. */
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
#include "acl/acl_op_compiler.h"
#include "acl/acl_prof.h"
#include "hccl/hccl.h"
#include "hccl/hccl_comm.h"
#include "hccl/hccl_sym_win.h"
#include "hccl/hccl_types.h"

static int failures = 0;

static void Expect(int holds, const char* what) {
  if (holds) return;
  printf("does not hold: %s\n", what);
  ++failures;
}

#define EXPECT(what) Expect(what, #what)

int main(void) {
  HcclCommConfig config;
  HcclRootInfo root;
  uint32_t magic = 0;
  EXPECT(sizeof(root.internal) == 4108);
  memset(&config, 0x5a, sizeof(config));
  HcclCommConfigInit(&config);
  memcpy(&magic, config.reserved + sizeof(size_t), sizeof(magic));
  EXPECT(magic == HCCL_COMM_CONFIG_MAGIC_WORD);
  EXPECT(sizeof(config.reserved) == 24);
  EXPECT(config.hcclBufferSize == HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET);
  EXPECT(config.hcclExecTimeOut == -1);
  EXPECT(config.hcclCommName[0] == '\0');
  HcclCommConfigInit(NULL);
  EXPECT(strlen(HcclGetErrorString(HCCL_E_PARA)) > 0);
  EXPECT(ACL_STRING == 13 && ACL_COMPLEX64 == 16 && ACL_COMPLEX128 == 17 && ACL_INT4 == 29);
  EXPECT(ACL_UINT1 == 30 && ACL_COMPLEX32 == 33 && ACL_FLOAT4_E1M2 == 41);
  EXPECT(aclDataTypeSize(ACL_COMPLEX64) == 8 && aclDataTypeSize(ACL_COMPLEX128) == 16);
  EXPECT(aclDataTypeSize(ACL_COMPLEX32) == 4 && aclDataTypeSize(ACL_STRING) == 0);
  EXPECT(ACL_FORMAT_UNDEFINED == -1 && ACL_FORMAT_ND == 2 && ACL_FORMAT_FRACTAL_NZ == 29);
  EXPECT(ACL_FRACTAL_Z_3D == 33 && ACL_FORMAT_NCL == 47 && ACL_FORMAT_FRACTAL_NZ_C0_8 == 54);
  EXPECT(ACL_OP_DEBUG_OPTION == 16 && ACL_COMPILE_UNREGISTERED == 1);
  EXPECT(HcclGetCommConfigCapability() == HCCL_COMM_CONFIG_RESERVED);
  return failures == 0 ? 0 : 1;
}
