// SystemOptions: what a session is told when the system is initialised (docs/backend.md). Names,
// values and defaults are those of the TensorFlow adapter's documentation.
#ifndef NPUMESH_GRAPH_CONFIG_SYSTEM_OPTIONS_H_
#define NPUMESH_GRAPH_CONFIG_SYSTEM_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

struct SystemOptions {
  bool profiling_mode = false;
  // "training_trace:task_trace" or "op_trace", or the JSON of newer releases; required with
  // profiling_mode.
  std::optional<std::string> profiling_options;
  std::optional<std::string> fp_point;  // name of the first forward operator
  std::optional<std::string> bp_point;  // name of the last backward operator

  bool enable_dump = false;
  std::optional<std::string> dump_path;  // existing folder; required with enable_dump
  std::optional<std::string> dump_step;  // "0|3-5|10"; none: every step
  std::string dump_mode = "output";      // "input", "output", "all"
  bool enable_dump_debug = false;
  std::string dump_debug_mode = "all";  // "aicore_overflow", "atomic_overflow", "all"

  // None: the types of the graph (docs/precision.md).
  std::optional<std::string> precision_mode;
  std::optional<std::string> modify_mixlist;  // a JSON file (mix_list.h)
  std::optional<std::string> auto_tune_mode;  // "RL,GA"
  int64_t graph_run_mode = 1;                 // 0 inference, 1 training
  int64_t op_debug_level = 0;                 // 0 to 4
  int64_t enable_exception_dump = 0;          // 0, 1
  std::optional<std::string> op_select_implmode;
  std::optional<std::string> optypelist_for_implmode;
};

// What profiling_options asks for.
struct ProfilingChoice {
  bool training_trace = false;
  bool task_trace = false;  // brings training_trace
  bool op_trace = false;    // never with the others
  // Of the JSON only.
  std::string output;  // folder; empty: not said
  std::string fp_point, bp_point;
};

// Reads the list or the JSON form. Errors (kInvalidArgument) name the item.
Result<ProfilingChoice> ParseProfilingOptions(const std::string& text);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_CONFIG_SYSTEM_OPTIONS_H_
