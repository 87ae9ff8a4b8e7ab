// SessionOptions: what is asked of a session, besides its model.
//
// Thread-safety: values.
#ifndef NPUMESH_GRAPH_SESSION_SESSION_OPTIONS_H_
#define NPUMESH_GRAPH_SESSION_SESSION_OPTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "collectives/group_names.h"
#include "graph/config/compiler_config.h"
#include "graph/dump/options/dump_env.h"
#include "graph/engine/analyse/compile_options.h"
#include "graph/engine/run/device_pool.h"
#include "graph/limits/node_watch.h"
#include "graph/ops/core/op_registry.h"
#include "graph/session/precision_options.h"
#include "graph/session/tensor_dump.h"
#include "graph/static_kernel/static_kernels.h"
#include "graph/tuning/tuner.h"

namespace npumesh {

struct SessionOptions {
  CompileOptions compile;  // `weights` is set by the session
  GroupTable groups;
  // The operators; null: BuiltinOps(). Must outlive the session.
  const OpRegistry* registry = nullptr;
  // Compiled plans that are kept of each stage and subgraph; the one that was not used for longest
  // makes room.
  size_t max_plans = 32;
  // debug.graph_dump.
  GraphDumpConfig graph_dump;
  // debug.fx_summary.
  FxSummaryConfig fx_summary;
  // dump_config, debug.data_dump.
  TensorDumpOptions tensor_dump;
  // Makes static kernels of the operators that have them; nullopt: none. The session says which
  // ranks share the work.
  std::optional<StaticKernelOptions> static_kernels;
  // Measures which kernels are the fastest; nullopt: the operators' rules decide. Only static
  // graphs are tuned: those whose inputs have no open dimensions.
  std::optional<TuningOptions> tuning;
  // What of static kernels is kept in kernel_meta, 0 to 4; see Session::DebugKernels.
  int64_t op_debug_level = 0;
  // The variables of dumps; unset: those of the process.
  std::optional<DumpEnv> dump_env;
  // Makes inputs that in-place operators write RefData (ref_data.h).
  bool ref_data = false;
  // Positions in Session::inputs() of parameters (nn.Parameter, mark_static_address).
  std::vector<int> parameters;
  // Takes the parameters as constants from the first run on (frozen_inputs.h).
  bool freeze_parameters = false;
  // Where the largest plan and the constants lie, as far as they fit.
  GivenMemory memory;
  // In which types operators compute, and how (precision_options.h).
  PrecisionOptions precision;
  // What checks operators against a card; null: one for the card of NPUMESH_CARD, if it is set.
  std::shared_ptr<NodeWatch> card;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_SESSION_OPTIONS_H_
