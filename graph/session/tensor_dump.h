// TensorDump: which tensors of a session are written while it runs. They are asked for by
// `dump_config` or `debug.data_dump` of a CompilerConfig, the options of a System, the environment.
//
// Thread-safety: none; one rank, one thread.
#ifndef NPUMESH_GRAPH_SESSION_TENSOR_DUMP_H_
#define NPUMESH_GRAPH_SESSION_TENSOR_DUMP_H_

#include <memory>
#include <optional>

#include "graph/config/compiler_config.h"
#include "graph/config/system_options.h"
#include "graph/dump/options/dump_env.h"
#include "graph/dump/writer/dumper.h"
#include "graph/dump/writer/npy_dumper.h"
#include "runtime/world/world.h"

namespace npumesh {

struct TensorDumpOptions {
  std::optional<DumpSettings> operators;
  // Eager tensors; `operators` have no effect beside them.
  std::optional<NpyDumpOptions> npy;
  DumpLimits limits;

  bool wanted() const { return operators || npy; }
};

// `dump_config` and `debug.data_dump`; nothing in a mode that captures graphs. Errors
// (kInvalidArgument) name field, value and what is accepted; a combination names both keys.
Result<TensorDumpOptions> TensorDumpOf(const CompilerConfig& config);
// The dump options of `initialize_system`. Errors likewise.
Result<TensorDumpOptions> TensorDumpOf(const SystemOptions& options);

class TensorDump {
 public:
  // Writes nothing before the first run. Null when neither `options` nor `env` ask for anything.
  // Ranks and sessions of a world share the time of their folders; sessions are told apart by
  // model_id, which counts them from 1.
  static std::unique_ptr<TensorDump> Start(World& world, const TensorDumpOptions& options,
                                           const DumpEnv& env);

  StepObserver& observer();
  // Waits for the disk; no run may follow. An error of the dump is in the report.
  DumpReport Finish();

 private:
  TensorDump() = default;
  // One of the two.
  std::unique_ptr<Dumper> operators_;
  std::unique_ptr<NpyDumper> npy_;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_TENSOR_DUMP_H_
