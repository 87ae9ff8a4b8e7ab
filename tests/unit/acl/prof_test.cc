#include "acl/acl_prof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "acl/acl.h"

namespace {

TEST(AclProf, ChecksTheOrderOfTheCalls) {
  uint32_t devices[] = {0, 1};
  aclprofConfig* config = aclprofCreateConfig(devices, 2, ACL_AICORE_PIPE_UTILIZATION, nullptr,
                                              ACL_PROF_ACL_API | ACL_PROF_HCCL_TRACE);
  ASSERT_NE(config, nullptr);
  const std::string folder = testing::TempDir();
  EXPECT_EQ(aclprofStart(config), ACL_ERROR_PROF_NOT_RUN);
  EXPECT_EQ(aclprofFinalize(), ACL_ERROR_PROF_NOT_RUN);
  EXPECT_EQ(aclprofInit(folder.c_str(), folder.size()), ACL_SUCCESS);
  EXPECT_EQ(aclprofInit(folder.c_str(), folder.size()), ACL_ERROR_PROF_ALREADY_RUN);
  EXPECT_EQ(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN);
  EXPECT_EQ(aclprofStart(config), ACL_SUCCESS);
  EXPECT_EQ(aclprofStart(config), ACL_ERROR_PROF_ALREADY_RUN);
  EXPECT_EQ(aclprofStop(config), ACL_SUCCESS);
  EXPECT_EQ(aclprofFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
}

TEST(AclProf, ChecksArguments) {
  const std::string nowhere = "/no/such/folder";
  EXPECT_EQ(aclprofInit(nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofInit(nowhere.c_str(), 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofInit(nowhere.c_str(), nowhere.size()), ACL_ERROR_INVALID_FILE);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr(nowhere));
  EXPECT_EQ(aclprofCreateConfig(nullptr, 1, ACL_AICORE_NONE, nullptr, 0), nullptr);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PROFILING_CONFIG);
  EXPECT_EQ(aclprofStart(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofStop(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofDestroyConfig(nullptr), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
