// A client that does not use MPI: each process takes device 0, and what starts it decides how
// many devices there are.
#include "client.h"

int main() {
  uint32_t count = 0;
  CHECK(aclrtGetDeviceCount(&count));
  EXPECT(count == 2);
  EXPECT(aclrtGetSocName() != nullptr);
  CHECK(aclInit(nullptr));
  if (UseDevice(0) != 0) return 1;
  EXPECT(aclrtSetDevice(2) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtGetDeviceCount(&count));
  EXPECT(count == 2);
  CHECK(aclFinalize());
  EXPECT(aclFinalize() == ACL_ERROR_REPEAT_FINALIZE);
  return 0;
}
