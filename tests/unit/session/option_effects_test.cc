// Every option that docs/config.md says to have an effect has one for a C++ program, and every
// other that is set answers with one warning that says why.
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <set>

#include "graph/config/config_reader.h"
#include "graph/config/option_tables.h"
#include "graph/config/validation.h"
#include "graph/export/export_config.h"
#include "graph/passes/fusion/fusion.h"
#include "graph/session/profiling.h"
#include "graph/session/session_config.h"
#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

std::string TextOf(const std::optional<DumpSettings>& settings) {
  if (!settings) return "none";
  std::string text =
      fmt::format("{} mode {} content {} stats {} exception {}", settings->path,
                  static_cast<int>(settings->mode), static_cast<int>(settings->content),
                  settings->statistics.size(), static_cast<int>(settings->exception));
  for (uint64_t step = 0; step < 4; ++step) text += settings->steps.Contains(step) ? "+" : "-";
  for (const OperatorChoice& choice : settings->choices) {
    text += fmt::format(" {}:{}", choice.model_name, fmt::join(choice.layers, ","));
  }
  return text;
}

// What a session of this configuration would do differently from another shows here.
std::string FusionsOf(const CompileOptions& compile) {
  std::string names;
  for (const std::string_view pass : kFusionPasses) {
    if (compile.fuses != nullptr && compile.fuses(pass)) names += fmt::format("{} ", pass);
  }
  return names;
}

std::string TextOf(const std::optional<StaticKernelOptions>& statics) {
  if (!statics) return "-";
  return fmt::format("{} [{}] {}", statics->build_dir, fmt::join(statics->open_sizes, ","),
                     statics->open_index);
}

std::string TextOf(const std::optional<TuningOptions>& tuning) {
  if (!tuning) return "-";
  return fmt::format("{} [{}] [{}] {}", tuning->work_path, fmt::join(tuning->selection.names, ","),
                     fmt::join(tuning->selection.types, ","), tuning->selection.quick);
}

std::string ProfilingText(const SystemOptions& options) {
  const Result<std::optional<ProfilingOptions>> profiling = ProfilingOf(options, "");
  if (!profiling.ok()) return std::string(profiling.status().message());
  if (!*profiling) return "-";
  return fmt::format("{} {} {} {} {}", (*profiling)->folder, (*profiling)->training_trace,
                     (*profiling)->task_trace, (*profiling)->fp_point, (*profiling)->bp_point);
}

std::string TextOf(const PrecisionOptions& precision) {
  return fmt::format("{} {} {} [{}] {}", precision.mode, precision.lists.black.add.size(),
                     precision.implementation, fmt::join(precision.implementation_types, ","),
                     precision.inference);
}

std::string SessionText(const Configuration& config) {
  Result<SessionOptions> options = SessionOptionsFor(config.compiler);
  const Result<TensorDumpOptions> system = TensorDumpOf(config.session);
  if (!options.ok()) return std::string(options.status().message());
  if (!system.ok()) return std::string(system.status().message());
  const Status applied = ApplySystemOptions(config.session, *options);
  if (!applied.ok()) return std::string(applied.message());
  const CompileOptions& compile = options->compile;
  const GraphDumpConfig& graphs = options->graph_dump;
  const TensorDumpOptions& dump = options->tensor_dump;
  return fmt::format(
      "fold {} drop {} fuse {} order {} overlap {} static {} spare {} plans {} ref {} frozen {} "
      "graphs {} {} "
      "summary {} operators {} npy {} system {} kernels {} tuning {} {} debug {} profile {} "
      "precision {} card {}",
      compile.fold_constants, compile.drop_dead_nodes, FusionsOf(compile),
      static_cast<int>(compile.order), compile.overlap_collectives, compile.static_ops_limit,
      compile.spare_memory, options->max_plans, options->ref_data, options->freeze_parameters,
      graphs.type.value_or("-"), graphs.path, options->fx_summary.type.value_or("-"),
      TextOf(dump.operators), dump.npy ? dump.npy->path : "-", TextOf(system->operators),
      TextOf(options->static_kernels), TextOf(options->tuning), TextOf(TuningOf(config.session)),
      options->op_debug_level, ProfilingText(config.session), TextOf(options->precision),
      options->card != nullptr);
}

std::string ExportText(const Configuration& config) {
  const Result<ExportOptions> options = ExportOptionsFor(config.compiler);
  if (!options.ok()) return std::string(options.status().message());
  return fmt::format("{} {} {} {}", options->export_path, options->export_name,
                     options->enable_record_nn_module_stack, options->auto_atc_config_generated);
}

struct Effect {
  std::string path;
  std::string value;
  std::vector<std::string> beside;  // assignments without which it means nothing
};

TEST(OptionEffects, EachReachesASessionOrAnExport) {
  TemporaryFolder folder;
  const std::string json = folder.Path("dump.json");
  const std::string dump = R"({"dump":{"dump_list":[{}],"dump_path":")" + folder.path() + "\"}}";
  ASSERT_TRUE(WriteFile(json, dump, FileKind::kConfig).ok());
  const std::string switches = folder.Path("fusion.json");
  ASSERT_TRUE(
      WriteFile(switches, R"({"Switch":{"GraphFusion":{"ALL":"off"}}})", FileKind::kConfig).ok());
  const std::string mix_list = folder.Path("mix.json");
  ASSERT_TRUE(
      WriteFile(mix_list, R"({"black-list": {"to-add": ["Sqrt"]}})", FileKind::kConfig).ok());
  const std::vector<std::string> profiled = {"session.profiling_mode=true",
                                             "session.profiling_options=task_trace"};
  const std::string enable = "dump_config.enable_dump=true";
  const std::vector<std::string> system = {"session.enable_dump=true",
                                           "session.dump_path=" + folder.path()};
  const std::string kStatic = "experimental_config.aclgraph._aclnn_static_shape_kernel";
  const std::vector<std::string> statics = {"mode=reduce-overhead", kStatic + "=true"};
  const std::string tuned = folder.Path("tune.json");
  ASSERT_TRUE(WriteFile(tuned, R"({"tune_ops_type":["MatMul"]})", FileKind::kConfig).ok());
  const std::vector<Effect> effects = {
      {"aoe_config.aoe_mode", "2", {}},
      {"aoe_config.work_path", folder.path(), {"aoe_config.aoe_mode=2"}},
      {"aoe_config.aoe_config_file", tuned, {"aoe_config.aoe_mode=2"}},
      {"session.auto_tune_mode", "RL,GA", {}},
      {"mode", "reduce-overhead", {}},
      {"debug.graph_dump.type", "txt", {}},
      {"debug.graph_dump.path", "graphs", {"debug.graph_dump.type=txt"}},
      {"debug.data_dump.type", "npy", {}},
      {"debug.data_dump.path", "tensors", {"debug.data_dump.type=npy"}},
      {"debug.fx_summary.type", "csv", {}},
      {"debug.fx_summary.skip_compile", "false", {"debug.fx_summary.type=csv"}},
      {"debug.run_eagerly", "true", {}},
      {"debug.deadlock_check", "true", {}},
      {"dump_config.enable_dump", "true", {}},
      {"dump_config.dump_path", folder.path(), {enable}},
      {"dump_config.dump_mode", "input", {enable}},
      {"dump_config.dump_step", "1|3", {enable}},
      {"dump_config.dump_layer", "a b", {enable}},
      {"dump_config.dump_data", "stats", {enable}},
      {"dump_config.dump_config_path", json, {}},
      {"export.export_mode", "true", {}},  // refused
      {"export.export_path_dir", "mp", {}},
      {"export.export_name", "m", {}},
      {"export.experimental.enable_record_nn_module_stack", "true", {}},
      {"export.experimental.auto_atc_config_generated", "true", {}},
      {"fusion_config.fusion_switch_file", switches, {}},
      {"ge_config.oo_level", "O1", {}},
      {"ge_config.oo_constant_folding", "false", {}},
      {"ge_config.oo_dead_code_elimination", "false", {}},
      {"ge_config.optimization_switch", "ConstantFoldingPass:off", {}},
      {"ge_config.enable_single_stream", "true", {"experimental_config.cc_parallel_enable=true"}},
      {"experimental_config.cc_parallel_enable", "true", {}},
      {"experimental_config.memory_efficiency", "true", {}},
      {"experimental_config.frozen_parameter", "true", {}},
      {"experimental_config.static_model_ops_lower_limit", "2", {}},
      {"experimental_config.topology_sorting_strategy", "BFS", {}},
      {"experimental_config.enable_ref_data", "true", {}},
      {"debug.aclgraph.static_capture_size_limit", "3", {"mode=reduce-overhead"}},
      {std::string(kStatic), "true", {"mode=reduce-overhead"}},
      {kStatic + "_build_dir", folder.path(), statics},
      {kStatic + "_sym_value_range", "4,8", statics},
      {kStatic + "_sym_index", "1", statics},
      {"profiler.experimental_config.record_op_args", "true", statics},  // refused
      {"profiler.schedule.skip_first",
       "2",
       {"mode=reduce-overhead", kStatic + "=true",
        "profiler.experimental_config.record_op_args=true"}},
      {"session.enable_dump", "true", {"session.dump_path=" + folder.path()}},
      {"session.dump_path", ".", system},
      {"session.dump_step", "1", system},
      {"session.dump_mode", "all", system},
      {"session.profiling_mode", "true", {"session.profiling_options=task_trace"}},
      {"session.profiling_options", "op_trace", profiled},
      {"session.fp_point", "forward", profiled},
      {"session.bp_point", "backward", profiled},
      {"session.precision_mode", "force_fp16", {}},
      {"session.modify_mixlist", mix_list, {"session.precision_mode=allow_mix_precision"}},
      {"session.graph_run_mode", "0", {}},
      {"session.op_select_implmode", "high_performance", {}},
      {"session.optypelist_for_implmode",
       "Pooling",
       {"session.op_select_implmode=high_performance"}},
      {"session.op_debug_level", "2", {}},
      {"session.enable_exception_dump", "1", {}},
  };
  std::set<std::string> tested;
  for (const Effect& effect : effects) {
    tested.insert(effect.path);
    Configuration config;
    const OptionTable table = OptionsOf(config.compiler, config.session);
    for (const std::string& assignment : effect.beside) {
      ASSERT_TRUE(ApplyAssignment(assignment, table).ok()) << assignment;
    }
    const std::string session = SessionText(config);
    const std::string exported = ExportText(config);
    const Status set = ApplyAssignment(effect.path + "=" + effect.value, table);
    ASSERT_TRUE(set.ok()) << set.ToString();
    EXPECT_TRUE(SessionText(config) != session || ExportText(config) != exported)
        << effect.path << " changes nothing: " << session;
  }
  Configuration config;
  std::set<std::string> claimed;
  for (const Option& row : OptionsOf(config.compiler, config.session).rows) {
    if (row.effect == OptionEffect::kHere) claimed.emplace(row.path);
  }
  EXPECT_EQ(tested, claimed) << "an option with an effect needs a row above";
}

// A value that is not the default's.
OptionValue OtherValue(const Option& option) {
  const OptionValue value = Get(option);
  if (const bool* flag = std::get_if<bool>(&value)) return !*flag;
  for (const std::string_view word : option.rule.words) {
    if (OptionValue(std::string(word)) != value) return std::string(word);
  }
  for (const OptionValue& candidate :
       {OptionValue(int64_t{0}), OptionValue(int64_t{1}), OptionValue(int64_t{2}),
        OptionValue(std::string("RL")), OptionValue(std::string("Pooling")),
        OptionValue(std::string("task_trace")), OptionValue(std::string("24|48")),
        OptionValue(std::string("/proc")), OptionValue(std::string("/dev/shm")),
        OptionValue(std::string("/proc/version")), OptionValue(std::vector<int64_t>{1}),
        OptionValue(TextMap{{"a", "b"}})}) {
    if (candidate != value && Check(option, candidate).ok()) return candidate;
  }
  return value;
}

TEST(OptionEffects, TheOthersSayWhyNot) {
  Configuration fresh;
  const OptionTable plain = OptionsOf(fresh.compiler, fresh.session);
  for (size_t i = 0; i < plain.rows.size(); ++i) {
    const Option& row = plain.rows[i];
    if (row.effect == OptionEffect::kHere || row.path == "experimental_config.jit_compile")
      continue;
    Configuration config;
    const OptionTable table = OptionsOf(config.compiler, config.session);
    const OptionValue other = OtherValue(row);
    ASSERT_NE(ToText(other), ToText(Get(row))) << row.path;
    ASSERT_TRUE(Set(table.rows[i], other).ok()) << row.path;
    std::vector<std::string> notices = NoticesOf(config.compiler);
    for (const std::string& notice : NoticesOf(config.session)) notices.push_back(notice);
    ASSERT_THAT(notices, SizeIs(1)) << row.path;
    EXPECT_THAT(notices[0], HasSubstr(row.path));
    EXPECT_THAT(notices[0], HasSubstr(row.does));
  }
}

}  // namespace
}  // namespace npumesh
