#include "tests/bench/decoder/onnx_runtime.h"

#include <dlfcn.h>

#include <functional>
#include <numeric>

namespace npumesh {
namespace {

// The version that is asked for. Later libraries answer to it with the same table.
constexpr uint32_t kApiVersion = 17;
constexpr int kLogErrors = 3;
constexpr int kArenaAllocator = 1;
constexpr int kDefaultMemory = 0;
constexpr int kFloatElements = 1;

struct OrtApiBase {
  const void* (*get_api)(uint32_t version);
  const char* (*get_version_string)();
};

template <typename Function>
void Take(const void* const* table, size_t place, Function& function) {
  function = reinterpret_cast<Function>(const_cast<void*>(table[place]));
}

OrtFunctions FunctionsOf(const void* const* table) {
  OrtFunctions ort{};
  Take(table, 2, ort.get_error_message);
  Take(table, 3, ort.create_env);
  Take(table, 8, ort.create_session_from_array);
  Take(table, 9, ort.run);
  Take(table, 10, ort.create_session_options);
  Take(table, 24, ort.set_intra_op_num_threads);
  Take(table, 25, ort.set_inter_op_num_threads);
  Take(table, 49, ort.create_tensor_with_data);
  Take(table, 69, ort.create_cpu_memory_info);
  Take(table, 92, ort.release_env);
  Take(table, 93, ort.release_status);
  Take(table, 94, ort.release_memory_info);
  Take(table, 95, ort.release_session);
  Take(table, 96, ort.release_value);
  Take(table, 100, ort.release_session_options);
  Take(table, 130, ort.add_session_config_entry);
  return ort;
}

size_t ElementsOf(const OnnxShape& shape) {
  return static_cast<size_t>(
      std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>()));
}

// The library stays loaded until the process ends, because its threads may.
Result<const OrtApiBase*> LoadBase(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Error(Code::kNotFound, "ONNX Runtime cannot be loaded: {}", dlerror());
  }
  const auto get_base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  if (get_base == nullptr) {
    return Error(Code::kUnsupported, "{} is not ONNX Runtime: it has no OrtGetApiBase", path);
  }
  return get_base();
}

}  // namespace

OnnxRuntime::OnnxRuntime(const OrtFunctions& functions)
    : ort_(functions),
      env_(nullptr, ort_.release_env),
      memory_(nullptr, ort_.release_memory_info) {}

Result<std::unique_ptr<OnnxRuntime>> OnnxRuntime::Load(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const OrtApiBase* const base, LoadBase(path));
  const void* const api = base->get_api(kApiVersion);
  if (api == nullptr) {
    return Error(Code::kUnsupported, "ONNX Runtime {} has no version {} of its C API",
                 base->get_version_string(), kApiVersion);
  }
  std::unique_ptr<OnnxRuntime> runtime(
      new OnnxRuntime(FunctionsOf(static_cast<const void* const*>(api))));
  const OrtFunctions& ort = runtime->ort_;
  OrtEnv* env = nullptr;
  NPUMESH_RETURN_IF_ERROR(runtime->StatusOf(ort.create_env(kLogErrors, "npumesh", &env)));
  runtime->env_.reset(env);
  OrtMemoryInfo* memory = nullptr;
  NPUMESH_RETURN_IF_ERROR(
      runtime->StatusOf(ort.create_cpu_memory_info(kArenaAllocator, kDefaultMemory, &memory)));
  runtime->memory_.reset(memory);
  return runtime;
}

Status OnnxRuntime::StatusOf(OrtStatus* failure) const {
  if (failure == nullptr) return Status();
  const OrtOwned<OrtStatus> owned(failure, ort_.release_status);
  return Error(Code::kInternal, "ONNX Runtime says: {}", ort_.get_error_message(failure));
}

// Its threads spin on after a run unless told not to, and would take processors from what runs
// next.
Status OnnxRuntime::SetThreads(OrtSessionOptions* options, int threads) const {
  NPUMESH_RETURN_IF_ERROR(StatusOf(ort_.set_intra_op_num_threads(options, threads)));
  NPUMESH_RETURN_IF_ERROR(StatusOf(ort_.set_inter_op_num_threads(options, 1)));
  return StatusOf(ort_.add_session_config_entry(options, "session.force_spinning_stop", "1"));
}

Result<OrtOwned<OrtValue>> OnnxRuntime::TensorOver(std::vector<float>& values,
                                                   const OnnxShape& shape) const {
  OrtValue* value = nullptr;
  NPUMESH_RETURN_IF_ERROR(StatusOf(
      ort_.create_tensor_with_data(memory_.get(), values.data(), values.size() * sizeof(float),
                                   shape.data(), shape.size(), kFloatElements, &value)));
  return OrtOwned<OrtValue>(value, ort_.release_value);
}

Result<std::unique_ptr<OnnxSession>> OnnxRuntime::Open(const OnnxModel& model, int threads) const {
  OrtSessionOptions* made = nullptr;
  NPUMESH_RETURN_IF_ERROR(StatusOf(ort_.create_session_options(&made)));
  const OrtOwned<OrtSessionOptions> options(made, ort_.release_session_options);
  NPUMESH_RETURN_IF_ERROR(SetThreads(options.get(), threads));
  std::unique_ptr<OnnxSession> opened(new OnnxSession(*this, model));
  OrtSession* session = nullptr;
  NPUMESH_RETURN_IF_ERROR(StatusOf(ort_.create_session_from_array(
      env_.get(), model.bytes.data(), model.bytes.size(), options.get(), &session)));
  opened->session_.reset(session);
  NPUMESH_ASSIGN_OR_RETURN(opened->input_value_, TensorOver(opened->input_, model.input_shape));
  NPUMESH_ASSIGN_OR_RETURN(opened->output_value_, TensorOver(opened->output_, model.output_shape));
  return opened;
}

OnnxSession::OnnxSession(const OnnxRuntime& runtime, const OnnxModel& model)
    : runtime_(runtime),
      input_name_(model.input),
      output_name_(model.output),
      input_(ElementsOf(model.input_shape)),
      output_(ElementsOf(model.output_shape)),
      session_(nullptr, runtime.ort_.release_session),
      input_value_(nullptr, runtime.ort_.release_value),
      output_value_(nullptr, runtime.ort_.release_value) {}

Status OnnxSession::Run() {
  const char* const input_name = input_name_.c_str();
  const char* const output_name = output_name_.c_str();
  const OrtValue* const input = input_value_.get();
  OrtValue* output = output_value_.get();
  return runtime_.StatusOf(
      runtime_.ort_.run(session_.get(), nullptr, &input_name, &input, 1, &output_name, 1, &output));
}

}  // namespace npumesh
