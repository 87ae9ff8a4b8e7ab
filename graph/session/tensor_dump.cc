#include "graph/session/tensor_dump.h"

#include "graph/dump/options/options.h"

namespace npumesh {

Result<TensorDumpOptions> TensorDumpOf(const CompilerConfig& config) {
  TensorDumpOptions dump;
  if (config.captures()) return dump;
  if (config.debug.data_dump.type) {
    dump.npy.emplace();
    dump.npy->path = config.debug.data_dump.path;
    dump.npy->filter = config.debug.data_dump.filter;
    return dump;
  }
  DumpConfig operators = config.dump_config;
  // Beside enable_dump it has no effect, which NoticesOf says.
  if (operators.enable_dump) operators.dump_config_path.reset();
  NPUMESH_ASSIGN_OR_RETURN(dump.operators, SettingsOf(operators));
  return dump;
}

Result<TensorDumpOptions> TensorDumpOf(const SystemOptions& options) {
  TensorDumpOptions dump;
  NPUMESH_ASSIGN_OR_RETURN(dump.operators, SettingsOf(options));
  return dump;
}

std::unique_ptr<TensorDump> TensorDump::Start(World& world, const TensorDumpOptions& options,
                                              const DumpEnv& env) {
  std::optional<DumpSettings> operators;
  if (!options.npy) operators = WithEnvironment(options.operators, env);
  if (!options.npy && !operators) return nullptr;
  std::unique_ptr<TensorDump> dump(new TensorDump);
  const DumpPlace place = NextDumpPlace(world);
  if (options.npy) {
    dump->npy_ = std::make_unique<NpyDumper>(*options.npy, place);
  } else {
    dump->operators_ = std::make_unique<Dumper>(*std::move(operators), place, options.limits);
  }
  return dump;
}

StepObserver& TensorDump::observer() {
  if (npy_ != nullptr) return *npy_;
  return *operators_;
}

DumpReport TensorDump::Finish() {
  return npy_ != nullptr ? npy_->Finish() : operators_->Finish();
}

}  // namespace npumesh
