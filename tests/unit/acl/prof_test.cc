#include "acl/acl_prof.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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
  EXPECT_EQ(aclprofInit(nullptr, 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofInit("/somewhere", 0), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofCreateConfig(nullptr, 1, ACL_AICORE_NONE, nullptr, 0), nullptr);
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_INVALID_PROFILING_CONFIG);
  EXPECT_EQ(aclprofStart(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofStop(nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclprofDestroyConfig(nullptr), ACL_ERROR_INVALID_PARAM);
}

// hccl_test profiles into a folder that exists nowhere at first.
TEST(AclProf, MakesItsFolderWhenItStarts) {
  const std::string above = testing::TempDir() + "acl_prof_folder";
  const std::string folder = above + "/a/b";
  std::filesystem::remove_all(above);
  uint32_t device = 0;
  aclprofConfig* config = aclprofCreateConfig(&device, 1, ACL_AICORE_NONE, nullptr, 0);
  ASSERT_EQ(aclprofInit(folder.c_str(), folder.size()), ACL_SUCCESS);
  EXPECT_FALSE(std::filesystem::exists(above));
  EXPECT_EQ(aclprofStart(config), ACL_SUCCESS);
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  EXPECT_EQ(aclprofFinalize(), ACL_SUCCESS);

  std::ofstream(above + "/file") << "no folder";
  const std::string file = above + "/file";
  ASSERT_EQ(aclprofInit(file.c_str(), file.size()), ACL_SUCCESS);
  EXPECT_EQ(aclprofStart(config), ACL_ERROR_INVALID_FILE);
  EXPECT_THAT(aclGetRecentErrMsg(), testing::HasSubstr(file));
  EXPECT_EQ(aclprofStop(config), ACL_ERROR_PROF_NOT_RUN);
  EXPECT_EQ(aclprofFinalize(), ACL_SUCCESS);
  EXPECT_EQ(aclprofDestroyConfig(config), ACL_SUCCESS);
  std::filesystem::remove_all(above);
}

}  // namespace
