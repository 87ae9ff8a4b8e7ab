#include "runtime/base/env/env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace npumesh {
namespace {

using testing::HasSubstr;

Result<Env> Parse(const std::map<std::string, std::string>& variables) {
  return Env::From([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Env, NothingSetMeansTheDefaults) {
  const auto env = Parse({});
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->hbm_bytes, std::nullopt);
  EXPECT_EQ(env->num_threads, 0);
  EXPECT_EQ(env->topology, "");
  EXPECT_EQ(env->soft_timeout, std::chrono::seconds(10));
  EXPECT_FALSE(env->trace);
  EXPECT_EQ(env->record, "");
  EXPECT_EQ(env->hccl_algo, "");
  EXPECT_EQ(env->connect_timeout, std::chrono::seconds(120));
  EXPECT_EQ(env->exec_timeout, std::chrono::seconds(1836));
  EXPECT_EQ(env->log_level, 3);
  EXPECT_EQ(env->local_world_size, std::nullopt);
  EXPECT_EQ(env->rank, std::nullopt);
  EXPECT_EQ(env->world_size, std::nullopt);
  EXPECT_EQ(env->device_count, std::nullopt);
  EXPECT_EQ(env->launched_on_node, std::nullopt);
}

TEST(Env, EveryVariableReachesItsField) {
  const auto env = Parse({{"NPUMESH_HBM_SIZE", "2G"},
                          {"NPUMESH_NUM_THREADS", "3"},
                          {"NPUMESH_TOPOLOGY", "numa:2 core:4 pu:1"},
                          {"NPUMESH_SOFT_TIMEOUT", "1"},
                          {"NPUMESH_TRACE", "on"},
                          {"NPUMESH_DEVICE_COUNT", "256"},
                          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                          {"NPUMESH_RECORD", "records/"},
                          {"HCCL_ALGO", "level0:NA;level1:ring"},
                          {"HCCL_CONNECT_TIMEOUT", "7200"},
                          {"HCCL_EXEC_TIMEOUT", "2147483647"},
                          {"TNG_LOG_LEVEL", "0"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"RANK", "0"},
                          {"WORLD_SIZE", "8"}});
  ASSERT_TRUE(env.ok()) << env.status().ToString();
  EXPECT_EQ(env->hbm_bytes, uint64_t{2} << 30);
  EXPECT_EQ(env->num_threads, 3);
  EXPECT_EQ(env->topology, "numa:2 core:4 pu:1");
  EXPECT_EQ(env->soft_timeout, std::chrono::seconds(1));
  EXPECT_TRUE(env->trace);
  EXPECT_EQ(env->device_count, 256);
  EXPECT_EQ(env->launched_on_node, 4);
  EXPECT_EQ(Parse({{"MPI_LOCALNRANKS", "2"}})->launched_on_node, 2);
  EXPECT_EQ(env->record, "records/");
  EXPECT_EQ(env->hccl_algo, "level0:NA;level1:ring");
  EXPECT_EQ(env->connect_timeout, std::chrono::seconds(7200));
  EXPECT_EQ(env->exec_timeout, std::chrono::seconds(2147483647));
  EXPECT_EQ(env->log_level, 0);
  EXPECT_EQ(env->local_world_size, 4);
  EXPECT_EQ(env->rank, 0);
  EXPECT_EQ(env->world_size, 8);
}

TEST(Env, ZeroMeansNoExecTimeout) {
  EXPECT_EQ(Parse({{"HCCL_EXEC_TIMEOUT", "0"}})->exec_timeout, kNoTimeout);
}

TEST(Env, TypingErrorsNameVariableAndText) {
  struct {
    std::string name;
    std::string text;
  } const cases[] = {
      {"NPUMESH_HBM_SIZE", "2 G"},
      {"NPUMESH_HBM_SIZE", "1023K"},
      {"NPUMESH_HBM_SIZE", ""},
      {"NPUMESH_NUM_THREADS", "-1"},
      {"NPUMESH_NUM_THREADS", "1025"},
      {"NPUMESH_NUM_THREADS", "two"},
      {"NPUMESH_SOFT_TIMEOUT", "0"},
      {"NPUMESH_SOFT_TIMEOUT", "86401"},
      {"NPUMESH_DEVICE_COUNT", "0"},
      {"NPUMESH_DEVICE_COUNT", "257"},
      {"NPUMESH_TRACE", "maybe"},
      {"NPUMESH_TRACE", ""},
      {"HCCL_CONNECT_TIMEOUT", "0"},
      {"HCCL_CONNECT_TIMEOUT", "7201"},
      {"HCCL_CONNECT_TIMEOUT", "120s"},
      {"HCCL_EXEC_TIMEOUT", "-1"},
      {"HCCL_EXEC_TIMEOUT", "2147483648"},
      {"HCCL_EXEC_TIMEOUT", "1e3"},
      {"LOCAL_WORLD_SIZE", "0"},
      {"RANK", "-1"},
      {"WORLD_SIZE", "0"},
      {"WORLD_SIZE", "8 "},
  };
  for (const auto& [name, text] : cases) {
    const auto env = Parse({{name, text}});
    ASSERT_FALSE(env.ok()) << name << "=" << text;
    EXPECT_EQ(env.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(env.status().message()), HasSubstr(name));
    EXPECT_THAT(std::string(env.status().message()), HasSubstr("\"" + text + "\""));
  }
}

TEST(Env, AlgorithmNamesAreBounded) {
  EXPECT_TRUE(Parse({{"HCCL_ALGO", std::string(1600, 'a')}}).ok());
  const auto env = Parse({{"HCCL_ALGO", std::string(1601, 'a')}});
  ASSERT_FALSE(env.ok());
  EXPECT_THAT(std::string(env.status().message()), HasSubstr("at most 1600 characters, got 1601"));
}

TEST(Env, ADeadlockFailsUnlessToldOtherwise) {
  EXPECT_EQ(Env().deadlock, Env::Deadlock::kFail);
  EXPECT_EQ(Parse({{"NPUMESH_DEADLOCK", "fail"}})->deadlock, Env::Deadlock::kFail);
  EXPECT_EQ(Parse({{"NPUMESH_DEADLOCK", "wait"}})->deadlock, Env::Deadlock::kWait);
  EXPECT_EQ(Parse({{"NPUMESH_DEADLOCK", "Wait"}}).status().message(),
            "environment variable: NPUMESH_DEADLOCK: expected fail or wait, got \"Wait\"");
}

TEST(Env, AWrongLogLevelOnlyWarnsAndOnlyOnce) {
  testing::internal::CaptureStderr();
  const auto env = Parse({{"TNG_LOG_LEVEL", "verbose"}});
  const auto again = Parse({{"TNG_LOG_LEVEL", "verbose"}});
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(env.ok());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(env->log_level, 3);
  const std::string warning =
      "Value of TNG_LOG_LEVEL should be in {0, 1, 2, 3, 4}, but got verbose";
  EXPECT_THAT(log, HasSubstr("[WARNING]"));
  EXPECT_EQ(log.find(warning), log.rfind(warning));
  EXPECT_NE(log.find(warning), std::string::npos);
}

TEST(Env, TheManualIsWhatIsRead) {
  std::set<std::string> asked;
  ASSERT_TRUE(Env::From([&](const char* name) -> const char* {
                asked.insert(name);
                return nullptr;
              }).ok());
  std::set<std::string> written;
  for (const auto& table : {EnvTable(), LauncherEnvTable()}) {
    for (const EnvVariable& row : table) {
      EXPECT_TRUE(written.emplace(row.name).second) << row.name;
      EXPECT_FALSE(row.accepted.empty()) << row.name;
      EXPECT_FALSE(row.fallback.empty()) << row.name;
      EXPECT_FALSE(row.meaning.empty()) << row.name;
    }
  }
  EXPECT_EQ(asked, written);
}

TEST(Env, ReadsTheProcess) {
  ASSERT_EQ(setenv("NPUMESH_NUM_THREADS", "7", 1), 0);
  EXPECT_EQ(Env::FromProcess()->num_threads, 7);
  ASSERT_EQ(unsetenv("NPUMESH_NUM_THREADS"), 0);
}

}  // namespace
}  // namespace npumesh
