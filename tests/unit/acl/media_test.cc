// libacl_dvpp: memory works, everything else refuses by name.
#include <gmock/gmock.h>

#include "acl/ops/acl_dvpp.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(AclMedia, RefusesByName) {
  EXPECT_EQ(acldvppCreateChannel(nullptr), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_THAT(aclGetRecentErrMsg(),
              AllOf(HasSubstr("acldvppCreateChannel"), HasSubstr("images and video")));
  EXPECT_EQ(aclvdecSendFrame(nullptr, nullptr, nullptr, nullptr, nullptr),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  EXPECT_EQ(aclvencSendFrame(nullptr, nullptr, nullptr, nullptr, nullptr),
            ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
}

TEST(AclMedia, RefusesWithNothingWhereNoCodeIsReturned) {
  aclGetRecentErrMsg();
  EXPECT_EQ(acldvppCreatePicDesc(), nullptr);
  EXPECT_THAT(aclGetRecentErrMsg(), HasSubstr("acldvppCreatePicDesc"));
  EXPECT_EQ(acldvppGetPicDescSize(nullptr), 0u);
  EXPECT_EQ(acldvppGetResizeConfigInterpolation(nullptr), 0u);
}

TEST(AclMedia, GivesDeviceMemory) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  void* memory = nullptr;
  ASSERT_EQ(acldvppMalloc(&memory, 1000), ACL_SUCCESS);
  EXPECT_EQ(aclrtMemset(memory, 1000, 7, 1000), ACL_SUCCESS);
  EXPECT_EQ(acldvppFree(memory), ACL_SUCCESS);
  EXPECT_NE(acldvppFree(memory), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

}  // namespace
}  // namespace npumesh
