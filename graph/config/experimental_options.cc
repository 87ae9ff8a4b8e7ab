// Rows of experimental_config and of captured graphs.
#include "graph/config/option_tables.h"
#include "graph/config/value_checks.h"

namespace npumesh {
namespace {

using OptionEffect::kHere;
using OptionEffect::kNone;
using OptionMode::kCapture;
using OptionMode::kMaxAutotune;
constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

constexpr std::string_view kNoFx = "It steers the Python front end; npumesh starts from its graph";
constexpr std::string_view kCopies =
    "A run copies its inputs in and its outputs out, so neither can be overwritten";
constexpr std::string_view kNoSuperKernel =
    "A super kernel saves launches on the NPU; steps of a simulated one are plain calls";

}  // namespace

void AddExperimentalOptions(CompilerConfig& config, std::vector<Option>& rows) {
  ExperimentalConfig& options = config.experimental_config;
  rows.insert(
      rows.end(),
      {{"experimental_config.cc_parallel_enable",
        &options.cc_parallel_enable,
        {},
        kHere,
        "Collectives run on a stream of their own, beside operators that do not need them, and "
        "nodes are ordered so that there are such operators",
        kMaxAutotune},
       {"experimental_config.keep_inference_input_mutation",
        &options.keep_inference_input_mutation,
        {},
        kNone,
        "In-place operators of a graph always write in place"},
       {"experimental_config.memory_efficiency",
        &options.memory_efficiency,
        {},
        kHere,
        "Looks harder for a small arena, and moves no nodes for cc_parallel_enable"},
       {"experimental_config.separate_atomic_clean",
        &options.separate_atomic_clean,
        {},
        kNone,
        "No kernel of a simulated NPU needs cleared memory"},
       {"experimental_config.frozen_parameter",
        &options.frozen_parameter,
        {},
        kHere,
        "Inputs that the caller names as parameters become constants with the first run: packed "
        "once, folded, never copied again; another address is refused later"},
       {"experimental_config.static_model_ops_lower_limit",
        &options.static_model_ops_lower_limit,
        {.min = -1,
         .max = kMaxInt64 - 1,
         .int_objection = ObjectionToOpsLimit,
         .accepted = "-1, or an integer in [2, 9223372036854775806]"},
        kHere,
        "How many connected operators with known shapes a graph with open dimensions needs to have "
        "for them to be a static part, which is compiled once for all input shapes; -1: no "
        "part; null: 4. The option is a lower limit, as its name and the newer documents of the "
        "vendor say; an older one calls the number an upper limit",
        kMaxAutotune},
       {"experimental_config.jit_compile",
        &options.jit_compile,
        {.words = {"auto"}},
        kNone,
        "Kernels are part of npumesh"},
       {"experimental_config.npu_fx_pass", &options.npu_fx_pass, {}, kNone, kNoFx},
       {"experimental_config.aot_config_enable_joint_graph",
        &options.aot_config_enable_joint_graph,
        {},
        kNone,
        kNoFx},
       {"experimental_config.aot_config_output_loss_index",
        &options.aot_config_output_loss_index,
        {.min = 0},
        kNone,
        kNoFx},
       {"experimental_config.topology_sorting_strategy",
        &options.topology_sorting_strategy,
        {.words = {"BFS", "DFS", "RDFS", "StableRDFS"}},
        kHere,
        "In which order nodes run; collectives keep the order of the graph in each, so that ranks "
        "cannot wait for each other",
        kMaxAutotune},
       {"experimental_config.enable_ref_data",
        &options.enable_ref_data,
        {},
        kHere,
        "Inputs that an in-place operator writes become RefData, which keep what was written",
        kMaxAutotune},
       {"experimental_config.enable_view_optimize",
        &options.enable_view_optimize,
        {},
        kNone,
        "Views never cost a copy here",
        kMaxAutotune},
       {"experimental_config.remove_noop_ops", &options.remove_noop_ops, {}, kNone, kNoFx},
       {"experimental_config.tiling_schedule_optimize",
        &options.tiling_schedule_optimize,
        {},
        kNone,
        "There is no tiling to move to the device",
        kMaxAutotune},
       {"experimental_config.pattern_fusion_pass",
        &options.pattern_fusion_pass,
        {},
        kNone,
        kNoFx}});
}

void AddCaptureOptions(CompilerConfig& config, std::vector<Option>& rows) {
  AclGraphConfig& graph = config.experimental_config.aclgraph;
  AclGraphDebugConfig& debug = config.debug.aclgraph;
  const auto idle = [](std::string_view path, OptionField field, OptionRule rule,
                       std::string_view why) {
    return Option{path, field, rule, kNone, why, kCapture};
  };
  rows.insert(
      rows.end(),
      {{"experimental_config.aclgraph._aclnn_static_shape_kernel",
        &graph.aclnn_static_shape_kernel,
        {},
        kHere,
        "Operators become machine code for their shapes, compiled once on each node "
        "(static_kernels.md)",
        kCapture},
       {"experimental_config.aclgraph._aclnn_static_shape_kernel_build_dir",
        &graph.aclnn_static_shape_kernel_build_dir,
        {.objection = ObjectionToFolder, .accepted = "an existing folder, readable and writable"},
        kHere,
        "Where records of operators and packages of static kernels are written; null: the "
        "working folder",
        kCapture},
       {"experimental_config.aclgraph._aclnn_static_shape_kernel_sym_value_range",
        &graph.aclnn_static_shape_kernel_sym_value_range,
        {},
        kHere,
        "Sizes of one open dimension for which static kernels are made; empty: all",
        kCapture},
       {"experimental_config.aclgraph._aclnn_static_shape_kernel_sym_index",
        &graph.aclnn_static_shape_kernel_sym_index,
        {.min = 0, .max = kMaxInt64},
        kHere,
        "Which one: the open dimensions of the inputs are counted from 0, input by input",
        kCapture},
       {"profiler.experimental_config.record_op_args",
        &config.profiler.record_op_args,
        {},
        kHere,
        "What an Ascend PyTorch Profiler beside the session is told: true and skip_first 0 "
        "refuse static kernels, because both record operators",
        kCapture},
       {"profiler.schedule.skip_first",
        &config.profiler.skip_first,
        {.min = 0, .max = kMaxInt64},
        kHere,
        "The same profiler's steps that are not profiled at the start",
        kCapture},
       idle("experimental_config.aclgraph._super_kernel_optimize", &graph.super_kernel_optimize, {},
            kNoSuperKernel),
       idle("experimental_config.aclgraph._super_kernel_optimize_options",
            &graph.super_kernel_optimize_options, {}, kNoSuperKernel),
       idle("experimental_config.aclgraph._super_kernel_debug_options",
            &graph.super_kernel_debug_options, {}, kNoSuperKernel),
       idle("debug.aclgraph.disable_reinplace_inplaceable_ops_pass",
            &debug.disable_reinplace_inplaceable_ops_pass, {}, kNoFx),
       idle("debug.aclgraph.disable_reinplace_input_mutated_ops_pass",
            &debug.disable_reinplace_input_mutated_ops_pass, {}, kNoFx),
       idle("debug.aclgraph.disable_mempool_reuse_in_same_fx",
            &debug.disable_mempool_reuse_in_same_fx, {},
            "Activations of all plans of a session always share one arena"),
       idle("debug.aclgraph.enable_output_clone", &debug.enable_output_clone, {}, kCopies),
       {"debug.aclgraph.static_capture_size_limit",
        &debug.static_capture_size_limit,
        {.min = 1, .max = kMaxInt64},
        kHere,
        "How many compiled plans (sets of input shapes) a session keeps",
        kCapture},
       idle("debug.aclgraph.clone_input", &debug.clone_input, {}, kCopies),
       idle("debug.aclgraph.remove_cat_ops", &debug.remove_cat_ops, {}, kNoFx)});
}

}  // namespace npumesh
