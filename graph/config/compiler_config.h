// CompilerConfig: everything a user can say about how a graph is compiled and run, under the names,
// values and defaults of TorchAir's class.
//
//   CompilerConfig config;
//   config.debug.graph_dump.type = "txt";
//   NPUMESH_RETURN_IF_ERROR(Validate(config));
//
// The structs are plain: assigning checks nothing, `Validate` (graph/config/validation.h) does.
// What a field accepts and does stands in one table (option_tables.h), from which docs/config.md
// is made. An optional without a value is Python's None.
#ifndef NPUMESH_GRAPH_CONFIG_COMPILER_CONFIG_H_
#define NPUMESH_GRAPH_CONFIG_COMPILER_CONFIG_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace npumesh {

struct Node;  // graph/ir/graph.h

struct GraphDumpConfig {
  std::optional<std::string> type;  // "txt", "pbtxt", "py"; none: no dump
  std::string path = "./";          // folder, made when it is missing
};

// Inputs and outputs of every operator; the graph runs eagerly then.
struct DataDumpConfig {
  std::optional<std::string> type;  // "npy"; none: no dump
  std::string path = "./";          // folder, made when it is missing
  // Nodes whose tensors are dumped; empty: all. A program's, no text can name it.
  std::function<bool(const Node& node)> filter;
};

struct FxSummaryConfig {
  std::optional<std::string> type;  // "csv"; none: no summary
  bool skip_compile = true;         // with a summary: run eagerly instead of compiling
};

struct AclGraphDebugConfig {
  bool disable_reinplace_inplaceable_ops_pass = false;
  bool disable_reinplace_input_mutated_ops_pass = false;
  bool disable_mempool_reuse_in_same_fx = false;
  bool enable_output_clone = false;
  int64_t static_capture_size_limit = 64;  // plans that are kept, in the aclgraph modes
  bool clone_input = true;
  bool remove_cat_ops = true;
};

struct DebugConfig {
  GraphDumpConfig graph_dump;
  DataDumpConfig data_dump;
  FxSummaryConfig fx_summary;
  bool run_eagerly = false;  // operator by operator as written: nothing is folded or left out
  bool deadlock_check = false;
  AclGraphDebugConfig aclgraph;
};

// AOE, the vendor's tuning engine.
struct AoeConfig {
  std::optional<std::string> aoe_mode;         // "2"
  std::string work_path = "./";                // existing folder
  std::optional<std::string> aoe_config_file;  // existing file
};

struct DumpConfig {
  bool enable_dump = false;
  std::string dump_path = "./";                 // existing folder, readable and writable
  std::string dump_mode = "all";                // "input", "output", "all"
  bool quant_dumpable = false;                  // also what a quantising operator got
  std::string dump_step;                        // "0|3-5|10"; empty: every step
  std::string dump_layer;                       // operator names with blanks between; empty: all
  std::string dump_data = "tensor";             // "tensor", "stats"
  std::optional<std::string> dump_config_path;  // existing .json file
  std::string data_dump_stage = "optimized";    // "original", "optimized"; aclgraph modes
};

struct ExportExperimentalConfig {
  bool enable_record_nn_module_stack = false;
  bool auto_atc_config_generated = false;
  bool enable_lite_export = false;
};

struct ExportConfig {
  bool export_mode = false;
  std::optional<std::string> export_path_dir;  // folder, made when it is missing
  std::optional<std::string> export_name;
  ExportExperimentalConfig experimental;
};

struct FusionConfig {
  std::optional<std::string> fusion_switch_file;  // existing file
};

struct InferenceConfig {
  std::string dynamic_gears_merge_policy = "zip";  // "zip", "product"
};

struct GeConfig {
  bool enable_single_stream = false;
  std::string oo_level = "O3";  // "O1": nothing is folded, nodes keep their order
  std::optional<bool> oo_constant_folding;
  std::optional<bool> oo_dead_code_elimination;
  std::string export_compile_stat = "2";           // "0", "1", "2"
  std::optional<std::string> aicore_num;           // "24|48": cube and vector cores
  std::optional<std::string> optimization_switch;  // "PassA:on;PassB:off"
};

struct AclGraphConfig {
  bool aclnn_static_shape_kernel = false;
  std::optional<std::string> aclnn_static_shape_kernel_build_dir;  // existing folder
  std::vector<int64_t> aclnn_static_shape_kernel_sym_value_range;
  int64_t aclnn_static_shape_kernel_sym_index = 0;
  bool super_kernel_optimize = false;
  std::map<std::string, std::string> super_kernel_optimize_options;
  std::map<std::string, std::string> super_kernel_debug_options;
};

struct ExperimentalConfig {
  bool cc_parallel_enable = false;
  bool keep_inference_input_mutation = true;
  bool memory_efficiency = false;
  bool separate_atomic_clean = true;
  bool frozen_parameter = false;
  std::optional<int64_t> static_model_ops_lower_limit;
  std::string jit_compile = "auto";
  bool npu_fx_pass = false;
  bool aot_config_enable_joint_graph = false;
  int64_t aot_config_output_loss_index = 0;
  std::string topology_sorting_strategy = "DFS";  // "BFS", "DFS", "RDFS", "StableRDFS"
  bool enable_ref_data = false;
  bool enable_view_optimize = true;
  bool remove_noop_ops = true;
  bool tiling_schedule_optimize = false;
  bool pattern_fusion_pass = true;
  AclGraphConfig aclgraph;
};

// The Ascend PyTorch Profiler that runs beside a session.
struct ProfilerConfig {
  bool record_op_args = false;
  int64_t skip_first = 0;
};

struct CompilerConfig {
  std::string mode = "max-autotune";  // or "reduce-overhead", "npugraph_ex"
  DebugConfig debug;
  AoeConfig aoe_config;
  DumpConfig dump_config;
  // `export` is a word of C++.
  ExportConfig export_config;
  FusionConfig fusion_config;
  InferenceConfig inference_config;
  GeConfig ge_config;
  ExperimentalConfig experimental_config;
  ProfilerConfig profiler;

  // "reduce-overhead" or "npugraph_ex": a graph is captured once and replayed.
  bool captures() const { return mode != "max-autotune"; }
  // Operator by operator as written, without the compiler's optimisations: asked for, or implied by
  // an eager dump or summary, which exist in max-autotune only.
  bool eager() const {
    const bool summary = debug.fx_summary.type && debug.fx_summary.skip_compile;
    return debug.run_eagerly || (!captures() && (debug.data_dump.type || summary));
  }
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_CONFIG_COMPILER_CONFIG_H_
