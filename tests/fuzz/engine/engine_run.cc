#include "tests/fuzz/engine/engine_run.h"

#include "graph/engine/step_observer.h"
#include "graph/io/model_file.h"

namespace npumesh::fuzz {
namespace {

class Onlooker final : public StepObserver {};

Status RunSteps(Session& session, const FuzzCase& fuzzed, bool observed, EngineRun& run) {
  Onlooker onlooker;
  for (const std::vector<Tensor>& fed : fuzzed.steps) {
    EngineStep step;
    NPUMESH_ASSIGN_OR_RETURN(step.outputs, session.Run(fed, observed ? &onlooker : nullptr));
    for (size_t i = 0; i < session.inputs().size(); ++i) {
      const auto position = static_cast<int>(i);
      if (!session.inputs()[i].ref) continue;
      NPUMESH_ASSIGN_OR_RETURN(step.refs[position], session.ReadRef(position));
    }
    run.steps.push_back(std::move(step));
  }
  return Status();
}

Result<Model> ModelFor(const FuzzCase& fuzzed, const OptionSet& set) {
  if (!set.read_back) return fuzzed.model;
  NPUMESH_ASSIGN_OR_RETURN(std::string bytes, SerializeAir(fuzzed.model));
  return ParseModel(std::move(bytes), "case.air");
}

Status RunSession(World& world, DeviceMemory& memory, const FuzzCase& fuzzed, const OptionSet& set,
                  EngineRun& run) {
  NPUMESH_ASSIGN_OR_RETURN(Model model, ModelFor(fuzzed, set));
  SessionOptions options = set.options;
  options.parameters = fuzzed.parameters;
  NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                           Session::Create(world, memory, std::move(model), std::move(options)));
  return RunSteps(*session, fuzzed, set.observed, run);
}

}  // namespace

EngineRun RunInEngine(World& world, DeviceMemory& memory, const FuzzCase& fuzzed,
                      const OptionSet& set) {
  EngineRun run;
  run.status = RunSession(world, memory, fuzzed, set, run);
  return run;
}

Status WithDevice(const std::function<void(World& world, DeviceMemory& memory)>& body) {
  Env env;
  env.hbm_bytes = uint64_t{16} << 20;
  env.connect_timeout = std::chrono::seconds(20);
  env.exec_timeout = std::chrono::seconds(20);
  return RunRanks(1, env, [&](World& world) -> Status {
    NPUMESH_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceMemory> memory,
                             DeviceMemory::Create(world));
    body(world, *memory);
    return Status();
  })[0];
}

}  // namespace npumesh::fuzz
