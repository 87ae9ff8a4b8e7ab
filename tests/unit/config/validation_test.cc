#include "graph/config/validation.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string Refusal(const CompilerConfig& config) {
  return std::string(Validate(config).message());
}

TEST(Validation, FieldsOfAStructAreCheckedAsThoseOfAFile) {
  CompilerConfig config;
  config.dump_config.dump_mode = "both";
  EXPECT_THAT(Refusal(config), HasSubstr("dump_config.dump_mode: \"both\" is refused"));
  config = {};
  config.debug.aclgraph.static_capture_size_limit = 0;
  EXPECT_THAT(Refusal(config), HasSubstr("0 is refused: out of range"));
}

TEST(Validation, FoldersMustBeThere) {
  const TemporaryFolder folder;
  CompilerConfig config;
  config.dump_config.dump_path = folder.path();
  EXPECT_EQ(Refusal(config), "");
  config.dump_config.dump_path = folder.Path("absent");
  EXPECT_THAT(Refusal(config), HasSubstr("accepted: an existing folder, readable and writable"));
  ASSERT_EQ(symlink(folder.path().c_str(), (folder.Path("link")).c_str()), 0);
  config.dump_config.dump_path = folder.Path("link");
  EXPECT_THAT(Refusal(config), HasSubstr("a symbolic link; name its target instead"));
  config.dump_config.dump_path = std::string(256, 'a');
  EXPECT_THAT(Refusal(config), HasSubstr("a part is longer than 255"));
}

TEST(Validation, ForbiddenCombinations) {
  CompilerConfig config;
  config.experimental_config.aclgraph.aclnn_static_shape_kernel = true;
  EXPECT_THAT(Refusal(config), HasSubstr("needs mode \"reduce-overhead\""));
  config.mode = "reduce-overhead";
  EXPECT_EQ(Refusal(config), "");
  config.debug.graph_dump.type = "txt";
  EXPECT_THAT(Refusal(config), HasSubstr("debug.graph_dump.type: \"txt\" does not go with mode"));
  config.debug.graph_dump.type = "py";
  EXPECT_EQ(Refusal(config), "");
  config.export_config.export_mode = true;
  EXPECT_THAT(Refusal(config), HasSubstr("export.export_mode: true does not go with mode"));
  config = {};
  config.export_config.export_mode = true;
  config.experimental_config.frozen_parameter = true;
  EXPECT_THAT(Refusal(config), HasSubstr("experimental_config.frozen_parameter: true"));
}

TEST(Notices, SayWhyAnOptionHasNoEffect) {
  CompilerConfig config;
  config.experimental_config.tiling_schedule_optimize = true;
  EXPECT_THAT(NoticesOf(config),
              ElementsAre("experimental_config.tiling_schedule_optimize=true has no effect on a "
                          "simulated NPU: There is no tiling to move to the device"));
}

TEST(Notices, NameOptionsOfAnotherMode) {
  CompilerConfig config;
  config.debug.aclgraph.static_capture_size_limit = 2;
  EXPECT_THAT(NoticesOf(config),
              ElementsAre("config.debug.aclgraph.static_capture_size_limit:2 has no effect in mode "
                          "\"max-autotune\", only in \"reduce-overhead\" and \"npugraph_ex\""));
  config.mode = "reduce-overhead";
  EXPECT_TRUE(NoticesOf(config).empty());
  config.dump_config.enable_dump = true;
  EXPECT_THAT(NoticesOf(config),
              ElementsAre("config.dump_config.enable_dump:true has no effect in mode "
                          "\"reduce-overhead\", only in \"max-autotune\""));
}

TEST(Notices, NameOptionsThatOthersBeat) {
  CompilerConfig config;
  config.dump_config.enable_dump = true;
  config.dump_config.dump_config_path = "dump.json";
  config.ge_config.oo_level = "O1";
  config.experimental_config.topology_sorting_strategy = "BFS";
  EXPECT_THAT(NoticesOf(config),
              ElementsAre(HasSubstr("dump_config.dump_config_path has no effect beside"),
                          HasSubstr("topology_sorting_strategy=\"BFS\" has no effect beside")));
}

TEST(Notices, AreSaidOnce) {
  CompilerConfig config;
  config.experimental_config.tiling_schedule_optimize = true;
  testing::internal::CaptureStderr();
  SetLogLevel(LogLevel::kWarning);
  SayOnce(NoticesOf(config));
  SayOnce(NoticesOf(config));
  SetLogLevel(LogLevel::kError);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("tiling_schedule_optimize"), std::string::npos);
  EXPECT_EQ(log.find("tiling_schedule_optimize"), log.rfind("tiling_schedule_optimize"));
}

}  // namespace
}  // namespace npumesh
