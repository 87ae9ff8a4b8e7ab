// What `npumesh run` was asked to do.
#ifndef NPUMESH_LAUNCH_RUN_RUN_OPTIONS_H_
#define NPUMESH_LAUNCH_RUN_RUN_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "graph/config/config_reader.h"
#include "graph/ops/op_library.h"
#include "launch/run/dim_bindings.h"
#include "launch/run/int_ranges.h"
#include "launch/run/onnx_choice.h"
#include "launch/run/run_dump.h"
#include "launch/run/tolerance.h"

namespace npumesh {

// Which cores a rank's threads may use.
enum class Binding {
  kAuto,  // its own cores when the node has one for each rank, otherwise all
  kCore,  // the cores that hwloc gives this rank, shared when ranks outnumber them
  kNuma,  // all cores of the rank's NUMA node
  kNone,  // all cores
};

struct RunOptions {
  // A model file or an export folder (launch/ranks/model_choice.h).
  std::string path;

  // Folders of .npy files (launch/run/tensor_folder.h). Empty: random inputs, outputs not written,
  // nothing checked.
  std::string inputs;
  std::string outputs;
  std::string check;

  uint64_t steps = 1;

  // Seconds after which the run ends on all ranks (launch/run/stop_request.h); 0: never.
  int timeout = 0;

  // Random inputs depend on seed, step and data index; on the rank only when asked for, because
  // the ranks of a tensor-parallel graph need equal inputs.
  uint64_t seed = 0;
  bool per_rank_inputs = false;

  IntRanges int_ranges;  // of random inputs

  // Of open dimensions of random inputs: as typed, and as values.
  std::vector<std::string> dims;
  DimBindings bindings;

  // Inputs of an ONNX model that are constants: as typed, and as values.
  std::vector<std::string> sets;
  InputValues values;

  ToleranceOptions tolerance;

  DumpArguments dump;

  // What shall go wrong, in the form of graph/inject/fault.h; each fault names its rank.
  std::vector<std::string> inject;

  // Checks after each step that nothing but its outputs has changed (graph/guard).
  bool guard = false;

  // The unsharded graph to compare all operators with (launch/run/golden_check.h), or "float64"
  // (launch/run/double_check.h); empty: none.
  std::string golden;
  // Options "A.B.C=VALUE" of a second run of the same graphs (launch/run/double_check.h); `golden`
  // has them as one text then. Empty: no second run.
  std::vector<std::string> against;

  // Files of the machine-readable reports, as JSON and as JUnit XML; empty: none.
  std::string report;
  std::string junit;

  // Folder of the profile (docs/profile.md); empty: nothing is profiled, unless the session's
  // options ask for it. Bytes of the files of all ranks.
  std::string profile;
  uint64_t profile_max_bytes = uint64_t{4} << 30;

  // Shared libraries with more operators (graph/ops/op_library.h).
  std::vector<std::string> op_libraries;
  LibraryTrust library_trust = LibraryTrust::kOwner;

  // Weights may lie outside of their package (graph/io/weight_places.h).
  bool allow_outside = false;

  // Rank 0 shows on standard error how weights arrive.
  bool show_progress = false;

  // Options of the graph compiler and of the session; neither: the engine's own defaults.
  ConfigSource config;

  // Threads of one rank's kernels; 0: NPUMESH_NUM_THREADS, or the cores the rank is bound to.
  int threads = 0;
  Binding binding = Binding::kAuto;

  // No progress lines at all.
  bool quiet = false;
};

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RUN_RUN_OPTIONS_H_
