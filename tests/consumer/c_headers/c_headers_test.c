/* Every header of the vendor's interface, compiled as C99, and the little of it that is inline. */
#include <stdio.h>
#include <string.h>

#include "acl/acl.h"
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
  EXPECT(HcclGetCommConfigCapability() == HCCL_COMM_CONFIG_RESERVED);
  return failures == 0 ? 0 : 1;
}
