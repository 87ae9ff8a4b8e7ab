#include "graph/session/session_config.h"

#include "graph/config/pass_switches.h"
#include "graph/config/validation.h"
#include "graph/session/core_budgets.h"

namespace npumesh {
namespace {

NodeOrder OrderOf(const CompilerConfig& config) {
  const std::string& strategy = config.experimental_config.topology_sorting_strategy;
  if (config.captures() || config.eager()) return NodeOrder::kStable;
  if (config.ge_config.oo_level == "O1" || strategy == "StableRDFS") return NodeOrder::kStableDepth;
  if (strategy == "BFS") return NodeOrder::kBreadth;
  return strategy == "RDFS" ? NodeOrder::kReverse : NodeOrder::kDepth;
}

bool Overlaps(const CompilerConfig& config) {
  return !config.captures() && !config.debug.run_eagerly &&
         config.experimental_config.cc_parallel_enable && !config.ge_config.enable_single_stream;
}

Status ApplyPasses(const CompilerConfig& config, CompileOptions& options) {
  if (config.eager()) {
    options.fold_constants = false;
    options.drop_dead_nodes = false;
    return Status();
  }
  if (config.captures()) return Status();
  NPUMESH_ASSIGN_OR_RETURN(const PassSwitches passes, PassSwitches::From(config));
  const GeConfig& ge = config.ge_config;
  options.fold_constants = ge.oo_constant_folding.value_or(passes.On(kConstantFoldingPass));
  // O1 drops dead nodes as well: a pass that may not be closed.
  const bool dropped = ge.oo_level == "O1" || passes.On(kDeadNodeEliminationPass);
  options.drop_dead_nodes = ge.oo_dead_code_elimination.value_or(dropped);
  options.fuses = [passes](std::string_view pass) { return passes.On(pass); };
  return Status();
}

// Eager mode and captured graphs share nothing between signatures.
int64_t StaticOpsLimit(const CompilerConfig& config) {
  if (config.captures() || config.eager()) return kNoStaticParts;
  return config.experimental_config.static_model_ops_lower_limit.value_or(kDefaultStaticOpsLimit);
}

// Kernels that are more than loops stay what they are in max-autotune.
void ApplyStaticKernels(const CompilerConfig& config, SessionOptions& options) {
  const AclGraphConfig& graph = config.experimental_config.aclgraph;
  if (!config.captures() || !graph.aclnn_static_shape_kernel) return;
  options.static_kernels.emplace();
  options.static_kernels->build_dir = graph.aclnn_static_shape_kernel_build_dir.value_or("");
  options.static_kernels->open_sizes = graph.aclnn_static_shape_kernel_sym_value_range;
  options.static_kernels->open_index = graph.aclnn_static_shape_kernel_sym_index;
  if (!config.eager()) options.compile.fuses = [](std::string_view) { return true; };
}

// A graph that is captured or runs operator by operator is not tuned by AOE.
Status ApplyAoe(const CompilerConfig& config, SessionOptions& options) {
  const AoeConfig& aoe = config.aoe_config;
  if (!aoe.aoe_mode || config.captures() || config.eager()) return Status();
  TuningOptions tuning;
  tuning.work_path = aoe.work_path;
  if (aoe.aoe_config_file) {
    NPUMESH_ASSIGN_OR_RETURN(tuning.selection, ReadTuneSelection(*aoe.aoe_config_file));
  }
  options.tuning = std::move(tuning);
  return Status();
}

}  // namespace

std::optional<TuningOptions> TuningOf(const SystemOptions& options, const std::string& work_path) {
  if (options.auto_tune_mode.value_or("").empty()) return std::nullopt;
  TuningOptions tuning;
  tuning.work_path = work_path;
  return tuning;
}

SessionOptions DefaultSessionOptions() {
  SessionOptions options;
  options.compile.fuses = [](std::string_view) { return true; };
  return options;
}

Status ApplySystemOptions(const SystemOptions& system, SessionOptions& options) {
  options.op_debug_level = system.op_debug_level;
  NPUMESH_ASSIGN_OR_RETURN(options.precision, PrecisionOf(system));
  return Status();
}

Result<SessionOptions> SessionOptionsFor(const CompilerConfig& config) {
  NPUMESH_RETURN_IF_ERROR(Validate(config));
  if (config.export_config.export_mode) {
    return Error(Code::kInvalidArgument,
                 "export.export_mode: true is for exports, not for sessions, which run a graph");
  }
  SayOnce(NoticesOf(config));
  SessionOptions options;
  NPUMESH_RETURN_IF_ERROR(ApplyPasses(config, options.compile));
  options.compile.order = OrderOf(config);
  options.compile.overlap_collectives = Overlaps(config);
  options.compile.static_ops_limit = StaticOpsLimit(config);
  options.compile.spare_memory = config.experimental_config.memory_efficiency;
  options.graph_dump = config.debug.graph_dump;
  if (!config.captures()) options.fx_summary = config.debug.fx_summary;
  NPUMESH_ASSIGN_OR_RETURN(options.tensor_dump, TensorDumpOf(config));
  options.freeze_parameters = config.experimental_config.frozen_parameter;
  options.ref_data = !config.captures() && config.experimental_config.enable_ref_data;
  ApplyStaticKernels(config, options);
  NPUMESH_RETURN_IF_ERROR(ApplyAoe(config, options));
  if (config.debug.deadlock_check) {
    NPUMESH_ASSIGN_OR_RETURN(options.card, DeadlockWatch(/*says=*/true));
  }
  if (config.captures()) {
    options.max_plans = static_cast<size_t>(config.debug.aclgraph.static_capture_size_limit);
  }
  return options;
}

}  // namespace npumesh
