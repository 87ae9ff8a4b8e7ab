/* The headers are C. */
#include "acl/acl.h"
#include "acl/acl_dump.h"
#include "acl/acl_prof.h"
#include "acl/acl_rt_memory_soma.h"
#include "acl/acl_tdt_queue.h"
#include "acl/ops/acl_dvpp.h"
#include "mstx/ms_tools_ext.h"

int HeadersAreC(void);
int HeadersAreC(void) {
  aclrtMemLocation location = {1, ACL_MEM_LOCATION_TYPE_DEVICE};
  aclrtPhysicalMemProp prop = {ACL_MEM_HANDLE_TYPE_NONE, ACL_MEM_ALLOCATION_TYPE_PINNED,
                               ACL_HBM_MEM_HUGE, location, 0};
  return prop.location.id == 1 && ACL_SUCCESS == 0;
}
