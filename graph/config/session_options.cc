// Rows of SystemOptions.
#include "graph/config/option_tables.h"
#include "graph/config/value_checks.h"

namespace npumesh {
namespace {

using OptionEffect::kHere;
using OptionEffect::kNone;

constexpr std::string_view kNotSupported = "Not supported, as in the vendor's current version";

}  // namespace

OptionTable OptionsOf(SystemOptions& options) {
  const OptionRule name = {.objection = ObjectionToNoText, .accepted = "the name of an operator"};
  OptionTable table;
  table.rows = {
      {"session.profiling_mode",
       &options.profiling_mode,
       {},
       kHere,
       "Profiles from initialize_system to shutdown_system (docs/profile.md), below the folder "
       "profiling of ASCEND_WORK_PATH or of the working folder"},
      {"session.profiling_options",
       &options.profiling_options,
       {.objection = ObjectionToProfiling,
        .accepted = "training_trace, task_trace or both joined by a colon; op_trace alone; or a "
                    "JSON object"},
       kHere,
       "What the vendor's files have: training_trace the steps, task_trace the steps and all "
       "operators, op_trace the operators; the JSON's output names another folder"},
      {"session.fp_point", &options.fp_point, name, kHere,
       "With its first start the forward pass of a step begins"},
      {"session.bp_point", &options.bp_point, name, kHere,
       "With its last end the backward pass of a step ends"},
      {"session.enable_dump",
       &options.enable_dump,
       {},
       kHere,
       "Dumps operators while graphs of the session run"},
      {"session.dump_path",
       &options.dump_path,
       {.objection = ObjectionToFolder, .accepted = "an existing folder, readable and writable"},
       kHere,
       "Receives the dump"},
      {"session.dump_step",
       &options.dump_step,
       {.objection = ObjectionToSteps,
        .accepted = "steps and upward ranges joined by bars, at most 100, as 0|3-5|10"},
       kHere,
       "Which steps are dumped"},
      {"session.dump_mode",
       &options.dump_mode,
       {.words = {"input", "output", "all"}},
       kHere,
       "What of an operator is dumped"},
      {"session.enable_dump_debug", &options.enable_dump_debug, {}, kNone, kNotSupported},
      {"session.dump_debug_mode",
       &options.dump_debug_mode,
       {.words = {"aicore_overflow", "atomic_overflow", "all"}},
       kNone,
       kNotSupported},
      {"session.precision_mode",
       &options.precision_mode,
       {.words = {"allow_fp32_to_fp16", "force_fp16", "force_fp32", "cube_fp16in_fp32out",
                  "must_keep_origin_dtype", "allow_mix_precision", "allow_mix_precision_fp16",
                  "allow_mix_precision_bf16", "allow_fp32_to_bf16"}},
       kHere,
       "In which float types operators compute (precision.md); null: as the graph says, because "
       "every operator here takes float32"},
      {"session.modify_mixlist",
       &options.modify_mixlist,
       {.objection = ObjectionToMixList,
        .accepted = "an existing .json file with \"black-list\" and \"white-list\""},
       kHere,
       "Which operators allow_mix_precision lowers: each list has \"to-add\" and \"to-remove\" "
       "with operator types (precision.md)"},
      {"session.auto_tune_mode",
       &options.auto_tune_mode,
       {.objection = ObjectionToTuneModes, .accepted = "RL, GA or RL,GA"},
       kHere,
       "Tunes as aoe_config.aoe_mode does, in every mode, with records in aoe_config.work_path "
       "(tuning.md); the words make no difference"},
      {"session.graph_run_mode",
       &options.graph_run_mode,
       {.min = 0, .max = 1},
       kHere,
       "0, inference: parameters are frozen as frozen_parameter does; 1, training: they are not"},
      {"session.op_debug_level",
       &options.op_debug_level,
       {.min = 0, .max = 4},
       kHere,
       "Keeps in kernel_meta what static kernels are made from, and with 2 compiles them for a "
       "debugger"},
      {"session.enable_exception_dump",
       &options.enable_exception_dump,
       {.min = 0, .max = 1},
       kHere,
       "Dumps the inputs and outputs of an operator that fails"},
      {"session.op_select_implmode",
       &options.op_select_implmode,
       {.words = {"high_precision", "high_performance"}},
       kHere,
       "How pooling and sums over axes add: in double, or in float16 and float32 as the NPU does "
       "(precision.md)"},
      {"session.optypelist_for_implmode",
       &options.optypelist_for_implmode,
       {.objection = ObjectionToImplTypes, .accepted = "Pooling"},
       kHere,
       "Limits op_select_implmode to these operators; null: to all that have two implementations"},
  };
  return table;
}

}  // namespace npumesh
