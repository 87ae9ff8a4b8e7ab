// The headers compile as the vendor's clients are compiled: C++11, warnings as errors.
#include "acl/acl.h"
#include "acl/acl_prof.h"
#include "acl/ops/acl_dvpp.h"
#include "mstx/ms_tools_ext.h"

int HeadersAreCpp11();
int HeadersAreCpp11() {
  const uint32_t id = 1;
  const aclrtMemLocation location = {id, aclrtMemLocationType::ACL_MEM_LOCATION_TYPE_DEVICE};
  const aclrtMemAttr attr = aclrtMemAttr::ACL_DDR_MEM_HUGE;
  return location.id == id && attr == ACL_DDR_MEM_HUGE &&
         ACL_ERROR_RT_MEMORY_ALLOCATION == 207001 && ACL_ERROR_NONE == ACL_SUCCESS;
}
