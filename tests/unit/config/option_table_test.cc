#include <gmock/gmock.h>

#include <map>
#include <set>

#include "graph/config/config_reader.h"
#include "graph/config/option_tables.h"
#include "graph/config/validation.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(OptionTable, PathsAreUniqueAndEveryRowSaysWhatItDoes) {
  CompilerConfig config;
  SystemOptions session;
  std::set<std::string_view> paths;
  for (const Option& option : OptionsOf(config, session).rows) {
    EXPECT_TRUE(paths.insert(option.path).second) << option.path;
    EXPECT_FALSE(option.does.empty()) << option.path;
    EXPECT_NE(option.does.back(), '.') << option.path;
    EXPECT_FALSE(AcceptedText(option).empty()) << option.path;
  }
}

// TorchAir's README, "TORCHAIR.COMPILERCONFIG": each of its fields, with its default.
TEST(OptionTable, TheDocumentedDefaults) {
  const std::pair<const char*, const char*> defaults[] = {
      {"debug.graph_dump.type", "null"},
      {"debug.data_dump.type", "null"},
      {"debug.fx_summary.type", "null"},
      {"debug.fx_summary.skip_compile", "true"},
      {"aoe_config.aoe_mode", "null"},
      {"aoe_config.work_path", "\"./\""},
      {"aoe_config.aoe_config_file", "null"},
      {"dump_config.enable_dump", "false"},
      {"dump_config.dump_path", "\"./\""},
      {"dump_config.dump_mode", "\"all\""},
      {"dump_config.quant_dumpable", "false"},
      {"export.export_mode", "false"},
      {"export.export_path_dir", "null"},
      {"export.export_name", "null"},
      {"export.experimental.enable_record_nn_module_stack", "false"},
      {"export.experimental.auto_atc_config_generated", "false"},
      {"fusion_config.fusion_switch_file", "null"},
      {"ge_config.enable_single_stream", "false"},
      {"experimental_config.cc_parallel_enable", "false"},
      {"experimental_config.keep_inference_input_mutation", "true"},
      {"experimental_config.memory_efficiency", "false"},
      {"experimental_config.separate_atomic_clean", "true"},
      {"experimental_config.frozen_parameter", "false"},
      {"experimental_config.static_model_ops_lower_limit", "null"},
      {"experimental_config.jit_compile", "\"auto\""},
      {"experimental_config.topology_sorting_strategy", "\"DFS\""},
      {"experimental_config.enable_ref_data", "false"},
      {"experimental_config.tiling_schedule_optimize", "false"},
      {"experimental_config.aclgraph._aclnn_static_shape_kernel", "false"},
      {"experimental_config.aclgraph._aclnn_static_shape_kernel_build_dir", "null"},
      {"session.profiling_mode", "false"},
      {"session.enable_dump", "false"},
      {"session.dump_path", "null"},
      {"session.dump_step", "null"},
      {"session.dump_mode", "\"output\""},
      {"session.precision_mode", "null"},
      {"session.modify_mixlist", "null"},
      {"session.auto_tune_mode", "null"},
      {"session.graph_run_mode", "1"},
      {"session.op_debug_level", "0"},
      {"session.enable_exception_dump", "0"},
  };
  CompilerConfig config;
  SystemOptions session;
  const OptionTable table = OptionsOf(config, session);
  for (const auto& [path, fallback] : defaults) {
    const auto option = table.Find(path);
    ASSERT_TRUE(option.ok()) << path;
    EXPECT_EQ(ToText(Get(**option)), fallback) << path;
  }
}

TEST(OptionTable, DefaultsAreValidAndSilent) {
  EXPECT_TRUE(Validate(CompilerConfig()).ok());
  EXPECT_TRUE(Validate(SystemOptions()).ok());
  EXPECT_TRUE(NoticesOf(CompilerConfig()).empty());
  EXPECT_TRUE(NoticesOf(SystemOptions()).empty());
}

TEST(OptionTable, EveryAcceptedWordReachesItsField) {
  CompilerConfig config;
  SystemOptions session;
  for (const Option& option : OptionsOf(config, session).rows) {
    for (const std::string_view word : option.rule.words) {
      ASSERT_TRUE(SetFromText(option, word).ok()) << option.path << "=" << word;
      EXPECT_EQ(ToText(Get(option)), fmt::format("\"{}\"", word));
    }
    if (option.rule.words.empty()) continue;
    EXPECT_FALSE(SetFromText(option, "both").ok()) << option.path;
    EXPECT_EQ(ToText(Get(option)), fmt::format("\"{}\"", option.rule.words.back()));
  }
}

// Each option of initialize_system, with a value that it does not take. A new row needs one.
TEST(OptionTable, EveryOptionOfASessionRefusesWhatItDoesNotTake) {
  const std::map<std::string, std::string> wrong = {
      {"session.profiling_mode", "maybe"},
      {"session.profiling_options", "op_trace:task_trace"},
      {"session.fp_point", ""},
      {"session.bp_point", ""},
      {"session.enable_dump", "2"},
      {"session.dump_path", "/no/such/folder"},
      {"session.dump_step", "5-3"},
      {"session.dump_mode", "both"},
      {"session.enable_dump_debug", "perhaps"},
      {"session.dump_debug_mode", "overflow"},
      {"session.precision_mode", "fp16"},
      {"session.modify_mixlist", "/no/such/file.json"},
      {"session.auto_tune_mode", "RA"},
      {"session.graph_run_mode", "2"},
      {"session.op_debug_level", "5"},
      {"session.enable_exception_dump", "2"},
      {"session.op_select_implmode", "fast"},
      {"session.optypelist_for_implmode", "MatMul"},
  };
  SystemOptions options;
  std::set<std::string> rows;
  for (const Option& row : OptionsOf(options).rows) rows.emplace(row.path);
  for (const auto& [path, value] : wrong) {
    SystemOptions fresh;
    const OptionTable table = OptionsOf(fresh);
    Status refused = ApplyAssignment(path + "=" + value, table);
    if (refused.ok()) refused = Validate(fresh);
    EXPECT_EQ(refused.code(), Code::kInvalidArgument) << path << "=" << value;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(path));
    rows.erase(path);
  }
  EXPECT_THAT(rows, testing::IsEmpty());
}

TEST(OptionTable, AnUnknownNameIsAnsweredByTheNearest) {
  CompilerConfig config;
  const OptionTable table = OptionsOf(config);
  const std::pair<const char*, const char*> cases[] = {
      {"dump_config.dump_mod", "did you mean dump_config.dump_mode?"},
      {"dump_mode", "did you mean dump_config.dump_mode"},
      {"debug.graphdump.type", "debug.graph_dump.type"},
      {"experimental_config.topology_sorting_stragety",
       "did you mean experimental_config.topology_sorting_strategy?"},
      {"zzz", "there is no option zzz; see docs/config.md"},
      {"debug.graph_dump",
       "debug.graph_dump is a section; it holds debug.graph_dump.type, debug.graph_dump.path"},
  };
  for (const auto& [path, answer] : cases) {
    const auto option = table.Find(path);
    ASSERT_FALSE(option.ok()) << path;
    EXPECT_EQ(option.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(option.status().message()), HasSubstr(answer));
    EXPECT_THAT(std::string(option.status().message()), HasSubstr(path));
  }
}

TEST(OptionTable, TheLaterSpellingIsKnown) {
  CompilerConfig config;
  const OptionTable table = OptionsOf(config);
  const auto option = table.Find("experimental_config.keep_inference_input_mutations");
  ASSERT_TRUE(option.ok());
  ASSERT_TRUE(SetFromText(**option, "False").ok());
  EXPECT_FALSE(config.experimental_config.keep_inference_input_mutation);
}

}  // namespace
}  // namespace npumesh
