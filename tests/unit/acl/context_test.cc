#include <thread>

#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

class AclContextTest : public AclTest {
 protected:
  AclContextTest() : AclTest(2) {}
};

TEST_F(AclContextTest, TheMakerSwitchesToTheNewOne) {
  aclrtContext implicit = nullptr;
  aclrtContext made = nullptr;
  aclrtContext current = nullptr;
  int32_t id = -1;
  ASSERT_EQ(aclrtGetCurrentContext(&implicit), ACL_SUCCESS);
  ASSERT_EQ(aclrtCreateContext(&made, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetCurrentContext(&current), ACL_SUCCESS);
  EXPECT_EQ(current, made);
  EXPECT_EQ(aclrtGetDevice(&id), ACL_SUCCESS);
  EXPECT_EQ(id, 1);
  EXPECT_EQ(aclrtSetCurrentContext(implicit), ACL_SUCCESS);
  EXPECT_EQ(aclrtGetDevice(&id), ACL_SUCCESS);
  EXPECT_EQ(id, 0);
  EXPECT_EQ(aclrtDestroyContext(made), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetCurrentContext(made), ACL_ERROR_RT_INVALID_HANDLE);
}

TEST_F(AclContextTest, CarriesItsStreamsAway) {
  aclrtContext made = nullptr;
  ASSERT_EQ(aclrtCreateContext(&made, 0), ACL_SUCCESS);
  const aclrtStream stream = NewStream();
  EXPECT_EQ(aclrtDestroyContext(made), ACL_SUCCESS);
  EXPECT_EQ(aclrtSynchronizeStream(stream), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), ACL_ERROR_RT_CONTEXT_NULL);
}

TEST_F(AclContextTest, RefusesWhatIsNone) {
  aclrtContext implicit = nullptr;
  int other = 0;
  ASSERT_EQ(aclrtGetCurrentContext(&implicit), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyContext(implicit), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDestroyContext(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtDestroyContext(&other), ACL_ERROR_RT_INVALID_HANDLE);
  EXPECT_EQ(aclrtSetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtCreateContext(nullptr, 0), ACL_ERROR_INVALID_PARAM);
  aclrtContext made = nullptr;
  EXPECT_EQ(aclrtCreateContext(&made, 2), ACL_ERROR_RT_INVALID_DEVICEID);
  EXPECT_EQ(aclrtGetCurrentContext(nullptr), ACL_ERROR_INVALID_PARAM);
  std::thread([] {
    aclrtContext none = nullptr;
    EXPECT_EQ(aclrtGetCurrentContext(&none), ACL_ERROR_RT_CONTEXT_NULL);
  }).join();
}

}  // namespace
}  // namespace npumesh
