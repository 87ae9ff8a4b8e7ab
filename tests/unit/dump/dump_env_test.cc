#include "graph/dump/options/dump_env.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

namespace npumesh {
namespace {

using testing::HasSubstr;

Result<DumpEnv> ParseDumps(const std::map<std::string, std::string>& variables) {
  return DumpEnv::From([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(DumpEnv, NothingSetMeansTheDefaults) {
  const auto env = ParseDumps({});
  ASSERT_TRUE(env.ok());
  EXPECT_EQ(env->dump_ge_graph, 0);
  EXPECT_EQ(env->dump_graph_level, "2");
  EXPECT_EQ(env->dump_graph_format, "ge_proto|onnx");
  EXPECT_EQ(env->npu_collect_path + env->dump_graph_path + env->ascend_work_path, "");
  EXPECT_EQ(env->ascend_dump_path + env->ascend_dump_scene, "");
}

TEST(DumpEnv, EveryVariableReachesItsField) {
  const auto env = ParseDumps({{"DUMP_GE_GRAPH", "3"},
                               {"DUMP_GRAPH_LEVEL", "Build|Infer"},
                               {"DUMP_GRAPH_FORMAT", "readable"},
                               {"NPU_COLLECT_PATH", "collect"},
                               {"DUMP_GRAPH_PATH", "graphs"},
                               {"ASCEND_DUMP_PATH", "dumps"},
                               {"ASCEND_WORK_PATH", "work"},
                               {"ASCEND_DUMP_SCENE", "aic_err_norm_dump"}});
  ASSERT_TRUE(env.ok()) << env.status().ToString();
  EXPECT_EQ(env->dump_ge_graph, 3);
  EXPECT_EQ(ParseDumps({{"DUMP_GE_GRAPH", "4"}})->dump_ge_graph, 0);
  EXPECT_EQ(env->dump_graph_level, "Build|Infer");
  EXPECT_EQ(env->dump_graph_format, "readable");
  EXPECT_EQ(env->npu_collect_path, "collect");
  EXPECT_EQ(env->dump_graph_path, "graphs");
  EXPECT_EQ(env->ascend_dump_path, "dumps");
  EXPECT_EQ(env->ascend_work_path, "work");
  EXPECT_EQ(env->ascend_dump_scene, "aic_err_norm_dump");
}

TEST(DumpEnv, TypingErrorsNameVariableAndText) {
  const std::pair<std::string, std::string> cases[] = {
      {"DUMP_GE_GRAPH", "-1"}, {"DUMP_GE_GRAPH", "all"}, {"ASCEND_DUMP_SCENE", "watcher"}};
  for (const auto& [name, text] : cases) {
    const auto env = ParseDumps({{name, text}});
    ASSERT_FALSE(env.ok()) << name << "=" << text;
    EXPECT_EQ(env.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(env.status().message()), HasSubstr(name));
    EXPECT_THAT(std::string(env.status().message()), HasSubstr("\"" + text + "\""));
  }
}

TEST(DumpEnv, TheManualIsWhatIsRead) {
  std::set<std::string> asked;
  ASSERT_TRUE(DumpEnv::From([&](const char* name) -> const char* {
                asked.insert(name);
                return nullptr;
              }).ok());
  std::set<std::string> written;
  for (const EnvVariable& row : DumpEnvTable()) written.emplace(row.name);
  EXPECT_EQ(asked, written);
}

}  // namespace
}  // namespace npumesh
