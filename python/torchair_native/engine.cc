#include "python/torchair_native/engine.h"

#include <charconv>

#include "python/torchair_native/graph.h"
#include "python/torchair_native/log.h"
#include "python/torchair_native/options.h"
#include "python/torchair_native/questions.h"

namespace npumesh::torchair {
namespace {

constexpr char kDevice[] = "ge.exec.deviceId";
constexpr char kDumpConfig[] = "ge_dump_with_acl_config";

bool CheckDevice(const Texts& options) {
  const auto found = options.find(kDevice);
  if (found == options.end()) {
    Fail(std::string(kDevice) + " is missing among the options of the graph engine");
    return false;
  }
  const std::string& text = found->second;
  int device = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), device);
  if (error == std::errc() && end == text.data() + text.size() && device >= 0) return true;
  Fail(std::string(kDevice) + ": expected a number from 0 on, seen \"" + text + "\"");
  return false;
}

// What torch_npu adds to a session: ranks of the groups that it has named, and static kernels.
// Error set.
bool AddOptionsOfTorchNpu(Texts& session) {
  PyObject* const module = ImportedModule("torch_npu._engine");
  if (module == nullptr) return true;
  const Ref options(PyObject_CallMethod(module, "session_options", nullptr));
  return options && ReadTexts(options.get(), "torch_npu._engine.session_options()", session);
}

}  // namespace

Engine& Engine::Get() {
  static Engine engine;
  return engine;
}

bool Engine::Initialize(const Texts& options) {
  if (initialized_) {
    Log(LogLevel::kDebug, "the graph engine is initialized already");
    return true;
  }
  if (!CheckDevice(options)) return false;
  for (const auto& [key, value] : options) Log(LogLevel::kInfo, "option " + key + " = " + value);
  const auto dump = options.find(kDumpConfig);
  if (dump != options.end() && !SetDump(dump->second)) return false;
  options_ = options;
  initialized_ = true;
  Log(LogLevel::kInfo, "the graph engine is initialized");
  return true;
}

bool Engine::Finalize() {
  std::string first;
  for (Graph* graph : std::set<Graph*>(graphs_)) {
    const std::string error = graph->Unload();
    if (first.empty()) first = error;
  }
  if (initialized_) Log(LogLevel::kInfo, "the graph engine is finalized");
  initialized_ = false;
  dump_is_set_ = false;
  options_.clear();
  if (first.empty()) return true;
  Fail(first);
  return false;
}

npumesh_world* Engine::World() {
  // The world of the package npumesh: a process has one, which the first call makes.
  const Ref shared = Import("npumesh.world", "shared_world");
  const Ref world(shared ? PyObject_CallObject(shared.get(), nullptr) : nullptr);
  const Ref handle(world ? PyObject_GetAttrString(world.get(), "handle") : nullptr);
  return handle ? static_cast<npumesh_world*>(PyLong_AsVoidPtr(handle.get())) : nullptr;
}

bool Engine::SetDump(const std::string& path) {
  npumesh_world* const world = World();
  if (world == nullptr) return false;
  const Ref make = Import("npumesh.options", "make_dump_folder");
  const Ref made(make ? PyObject_CallFunction(make.get(), "s", path.c_str()) : nullptr);
  if (!made) return false;
  if (npumesh_set_dump(world, path.c_str()) != NPUMESH_OK) {
    FailOf("AclmdlSetDump");
    return false;
  }
  dump_is_set_ = true;
  return true;
}

bool Engine::OptionsFor(const Texts& graph, Texts& session) {
  session = SessionOptions(options_, graph);
  if (!dump_is_set_) AddDumpOptions(options_, session);
  // A program that declares foreign operators wants the rest of its graphs to run.
  if (HasDeclaredOperators()) session["npumesh.missing_operators"] = "zeros";
  return AddOptionsOfTorchNpu(session);
}

}  // namespace npumesh::torchair
