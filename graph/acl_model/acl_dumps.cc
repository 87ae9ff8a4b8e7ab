#include "graph/acl_model/acl_dumps.h"

#include <utility>

#include "graph/acl_model/device_turns.h"
#include "graph/dump/options/config_file.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

std::optional<DumpSettings> OfModelsIn(DumpSettings settings) {
  settings.single_operators = false;
  if (!settings.dumps_steps() && settings.exception == ExceptionDump::kOff) return std::nullopt;
  return settings;
}

// They are in no model, so what chooses models and their steps leaves them alone.
std::optional<DumpSettings> OfOperatorsIn(DumpSettings settings) {
  if (!settings.single_operators && settings.exception == ExceptionDump::kOff) return std::nullopt;
  settings.models = settings.watch = settings.overflow = settings.graph_inputs = false;
  settings.choices.clear();
  settings.steps = StepSet();
  return settings;
}

}  // namespace

AclDumps& AclDumps::OfProcess() {
  static auto* const dumps = new AclDumps;
  return *dumps;
}

Status AclDumps::Set(const std::string& config_path) {
  Begin();
  std::optional<DumpSettings> settings;
  if (!config_path.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(settings, ReadDumpConfig(config_path));
  }
  Take(std::move(settings));
  return Status();
}

TensorDumpOptions AclDumps::OfModels() {
  Begin();
  TensorDumpOptions options;
  const std::lock_guard lock(mutex_);
  options.operators = models_;
  return options;
}

std::shared_ptr<OperatorDump> AclDumps::OfOperators(AclDevice& device) {
  Begin();
  const std::lock_guard lock(mutex_);
  if (!operators_) return nullptr;
  std::shared_ptr<OperatorDump>& dump = dumps_[&device];
  if (dump == nullptr) dump = std::make_shared<OperatorDump>(*operators_, device.world);
  return dump;
}

void AclDumps::Begin() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(begun_, true)) return;
  }
  AclProcess::Get().AtFinalize([this] {
    Take(std::nullopt);
    const std::lock_guard lock(mutex_);
    begun_ = false;
  });
  const std::string path = AclProcess::Get().config_path();
  if (path.empty()) return;
  Result<std::optional<DumpSettings>> settings = ReadDumpConfig(path);
  if (settings.ok()) return Take(*std::move(settings));
  NPUMESH_WARNING("aclInit: nothing is dumped: {}", settings.status().message());
}

void AclDumps::Take(std::optional<DumpSettings> settings) {
  Dumps before;
  {
    const std::lock_guard lock(mutex_);
    models_ = settings ? OfModelsIn(*settings) : std::nullopt;
    operators_ = settings ? OfOperatorsIn(*std::move(settings)) : std::nullopt;
    before.swap(dumps_);
  }
  Finish(std::move(before));
}

void AclDumps::Finish(Dumps dumps) {
  for (const auto& [device, dump] : dumps) {
    const std::lock_guard turn(TurnOf(*device));
    dump->Finish();
  }
}

}  // namespace npumesh
