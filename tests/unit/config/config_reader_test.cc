#include "graph/config/config_reader.h"

#include <gmock/gmock.h>

#include "graph/config/option_tables.h"
#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

class ConfigReader : public testing::Test {
 protected:
  Status Read(std::string_view text) { return ReadConfig(text, "c.json", table_); }
  Status Set(std::string_view assignment) { return ApplyAssignment(assignment, table_); }

  CompilerConfig config_;
  SystemOptions session_;
  OptionTable table_ = OptionsOf(config_, session_);
};

TEST_F(ConfigReader, ATreeReachesItsFields) {
  ASSERT_TRUE(Read(R"({
    "mode": "reduce-overhead",
    "debug": {"graph_dump": {"type": "py", "path": "dumps"}, "run_eagerly": true,
              "aclgraph": {"static_capture_size_limit": 3}},
    "export": {"export_name": "m", "experimental": {"enable_record_nn_module_stack": true}},
    "ge_config.oo_level": "O1",
    "ge_config": {"oo_constant_folding": false},
    "experimental_config": {"static_model_ops_lower_limit": -1,
      "aclgraph": {"_aclnn_static_shape_kernel_sym_value_range": [1, 2],
                   "_super_kernel_optimize_options": {"stream-fusion": "1"}}},
    "session": {"precision_mode": "force_fp32", "graph_run_mode": 0}
  })")
                  .ok());
  EXPECT_EQ(config_.mode, "reduce-overhead");
  EXPECT_EQ(config_.debug.graph_dump.type, "py");
  EXPECT_EQ(config_.debug.graph_dump.path, "dumps");
  EXPECT_TRUE(config_.debug.run_eagerly);
  EXPECT_EQ(config_.debug.aclgraph.static_capture_size_limit, 3);
  EXPECT_EQ(config_.export_config.export_name, "m");
  EXPECT_TRUE(config_.export_config.experimental.enable_record_nn_module_stack);
  EXPECT_EQ(config_.ge_config.oo_level, "O1");
  EXPECT_EQ(config_.ge_config.oo_constant_folding, false);
  EXPECT_EQ(config_.experimental_config.static_model_ops_lower_limit, -1);
  const AclGraphConfig& graph = config_.experimental_config.aclgraph;
  EXPECT_EQ(graph.aclnn_static_shape_kernel_sym_value_range, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(graph.super_kernel_optimize_options, (TextMap{{"stream-fusion", "1"}}));
  EXPECT_EQ(session_.precision_mode, "force_fp32");
  EXPECT_EQ(session_.graph_run_mode, 0);
}

TEST_F(ConfigReader, AssignmentsReachTheirFields) {
  for (const char* assignment :
       {"debug.graph_dump.type=txt", "debug.run_eagerly=on", "ge_config.aicore_num=24|48",
        "ge_config.optimization_switch=A:on;B:off", "session.dump_step=0|3-5",
        "experimental_config.aclgraph._aclnn_static_shape_kernel_sym_value_range=4,8",
        "experimental_config.aclgraph._super_kernel_debug_options=a=b:c=d"}) {
    ASSERT_TRUE(Set(assignment).ok()) << assignment;
  }
  EXPECT_EQ(config_.debug.graph_dump.type, "txt");
  EXPECT_TRUE(config_.debug.run_eagerly);
  EXPECT_EQ(config_.ge_config.aicore_num, "24|48");
  EXPECT_EQ(config_.ge_config.optimization_switch, "A:on;B:off");
  EXPECT_EQ(session_.dump_step, "0|3-5");
  const AclGraphConfig& graph = config_.experimental_config.aclgraph;
  EXPECT_EQ(graph.aclnn_static_shape_kernel_sym_value_range, (std::vector<int64_t>{4, 8}));
  EXPECT_EQ(graph.super_kernel_debug_options, (TextMap{{"a", "b"}, {"c", "d"}}));
  ASSERT_TRUE(Set("debug.graph_dump.type=None").ok());
  EXPECT_EQ(config_.debug.graph_dump.type, std::nullopt);
}

TEST_F(ConfigReader, ErrorsNameFieldValueAndWhatIsAccepted) {
  const struct {
    const char* assignment;
    const char* answer;
  } cases[] = {
      {"dump_config.dump_mode=both",
       "dump_config.dump_mode: \"both\" is refused: not in the list; accepted: one of \"input\", "
       "\"output\", \"all\""},
      {"debug.graph_dump.type=svg", "accepted: one of \"txt\", \"pbtxt\", \"py\", or null"},
      {"debug.run_eagerly=maybe",
       "debug.run_eagerly: \"maybe\" is refused: not a truth value; accepted: true or false"},
      {"debug.run_eagerly=none", "accepted: true or false"},
      {"debug.aclgraph.static_capture_size_limit=0", "accepted: an integer in [1, "},
      {"session.op_debug_level=5", "accepted: an integer in [0, 4]"},
      {"session.graph_run_mode=2", "accepted: an integer in [0, 1]"},
      {"experimental_config.static_model_ops_lower_limit=1", "would leave nothing static"},
      {"experimental_config.static_model_ops_lower_limit=9223372036854775807", "accepted: -1, or"},
      {"ge_config.aicore_num=0|48", "no count of cube cores"},
      {"ge_config.aicore_num=24|x", "no count of vector cores"},
      {"ge_config.optimization_switch=A:maybe", "\"A:maybe\" is no Pass:on or Pass:off"},
      {"dump_config.dump_step=5-3", "range \"5-3\" does not go upwards"},
      {"dump_config.dump_step=3-3", "does not go upwards"},
      {"dump_config.dump_step=1||2", "\"\" is neither a step nor a range"},
      {"dump_config.dump_layer=Add-1", "'-' is in no operator name"},
      {"dump_config.dump_path=absent/folder", "No such file or directory; make it with mkdir -p"},
      {"dump_config.dump_config_path=/dev/null", "not a .json file"},
      {"aoe_config.aoe_mode=1", "accepted: \"2\", or null"},
      {"fusion_config.fusion_switch_file=absent", "No such file"},
      {"session.auto_tune_mode=RL,AG", "\"AG\" is neither RL nor GA"},
      {"session.profiling_options=traing_trace", "\"traing_trace\" is none of training_trace"},
      {"session.profiling_options=op_trace:task_trace", "op_trace stands alone"},
      {"session.optypelist_for_implmode=Conv", "\"Conv\" is not Pooling"},
      {"experimental_config.aclgraph._super_kernel_debug_options=a", "\"a\" is no key=value"},
      {"debug.graph_dump.path=a;b", "letters, digits, blanks"},
      {"no_equals", "write a.b.c=value"},
      {"=x", "write a.b.c=value"},
  };
  const CompilerConfig before = config_;
  for (const auto& [assignment, answer] : cases) {
    const Status status = Set(assignment);
    ASSERT_FALSE(status.ok()) << assignment;
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(answer));
  }
  EXPECT_EQ(config_.dump_config.dump_mode, before.dump_config.dump_mode);
}

TEST_F(ConfigReader, WrongJsonIsOneError) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "c.json: expected a JSON object of options, found text that is no JSON"},
      {"[1]", "found [1]"},
      {"{\"mode\": 3}", "c.json: mode: 3 is refused: of another type; accepted: one of"},
      {"{\"mode\": null}", "mode: null is refused: a value is needed"},
      {"{\"mode\": {\"x\": 1}}", "mode: {\"x\":1} is refused: of another type"},
      {"{\"debug\": true}", "debug is a section; it holds debug.graph_dump.type"},
      {"{\"debug\": {\"run_eagerly\": \"true\"}}", "debug.run_eagerly: \"true\" is refused"},
      {"{\"debug\": {\"run_eagerly\": 1}}", "debug.run_eagerly: 1 is refused: of another type"},
      {"{\"debug\": {\"graph_dump\": {\"typ\": \"txt\"}}}", "did you mean debug.graph_dump.type?"},
      {"{\"session\": {\"op_debug_level\": 1.5}}", "session.op_debug_level: 1.5 is refused"},
      {"{\"session\": {\"op_debug_level\": 18446744073709551615}}", "is refused"},
      {"{\"aoe_config\": {\"aoe_mode\": 2}}", "aoe_config.aoe_mode: 2 is refused: of another type"},
  };
  for (const auto& [text, answer] : cases) {
    const Status status = Read(text);
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(answer));
  }
}

// Any bytes are either a config or one error.
TEST_F(ConfigReader, SurvivesDamagedText) {
  const std::string whole =
      R"({"mode":"reduce-overhead","debug":{"aclgraph":{"static_capture_size_limit":3}}})";
  ASSERT_TRUE(Read(whole).ok());
  for (size_t at = 0; at < whole.size(); ++at) {
    EXPECT_FALSE(Read(whole.substr(0, at)).ok());
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << bit));
      const Status status = Read(flipped);
      EXPECT_EQ(status.ok(), status.message().empty());
    }
  }
  EXPECT_FALSE(Read(std::string(100'000, '[')).ok());
}

TEST(LoadConfiguration, AssignmentsBeatTheFile) {
  const TemporaryFolder folder;
  const std::string file = folder.Path("c.json");
  ASSERT_TRUE(WriteFile(file, R"({"ge_config": {"oo_level": "O1"}, "mode": "npugraph_ex"})",
                        FileKind::kConfig)
                  .ok());
  const auto read = LoadConfiguration({file, {"mode=max-autotune"}});
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->compiler.ge_config.oo_level, "O1");
  EXPECT_EQ(read->compiler.mode, "max-autotune");
}

TEST(LoadConfiguration, TheResultIsValidated) {
  const auto read = LoadConfiguration({"", {"session.enable_dump=true"}});
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("session.dump_path: needed"));
  EXPECT_EQ(LoadConfiguration({"absent.json", {}}).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace npumesh
