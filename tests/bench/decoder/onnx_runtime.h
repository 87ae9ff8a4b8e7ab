// ONNX Runtime on the CPU, loaded at run time: what a benchmark needs of its C API.
//
// Only the entries of the API's table that are used here are declared; their places are the same in
// every version.
//
// Thread-safety: none.
#ifndef NPUMESH_TESTS_BENCH_DECODER_ONNX_RUNTIME_H_
#define NPUMESH_TESTS_BENCH_DECODER_ONNX_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "tests/bench/decoder/onnx_writer.h"

namespace npumesh {

class OnnxSession;

// What the library calls these; their content is the library's.
struct OrtStatus;
struct OrtEnv;
struct OrtSession;
struct OrtSessionOptions;
struct OrtRunOptions;
struct OrtMemoryInfo;
struct OrtValue;

// The functions of the C API that are used. A status is null on success, else the caller releases
// it.
struct OrtFunctions {
  const char* (*get_error_message)(const OrtStatus*);
  OrtStatus* (*create_env)(int log_level, const char* log_id, OrtEnv** env);
  OrtStatus* (*create_session_from_array)(const OrtEnv*, const void* model, size_t bytes,
                                          const OrtSessionOptions*, OrtSession**);
  OrtStatus* (*run)(OrtSession*, const OrtRunOptions*, const char* const* input_names,
                    const OrtValue* const* inputs, size_t input_count,
                    const char* const* output_names, size_t output_count, OrtValue** outputs);
  OrtStatus* (*create_session_options)(OrtSessionOptions**);
  OrtStatus* (*set_intra_op_num_threads)(OrtSessionOptions*, int);
  OrtStatus* (*set_inter_op_num_threads)(OrtSessionOptions*, int);
  OrtStatus* (*create_tensor_with_data)(const OrtMemoryInfo*, void* data, size_t bytes,
                                        const int64_t* shape, size_t rank, int type, OrtValue**);
  OrtStatus* (*create_cpu_memory_info)(int allocator, int memory, OrtMemoryInfo**);
  void (*release_env)(OrtEnv*);
  void (*release_status)(OrtStatus*);
  void (*release_memory_info)(OrtMemoryInfo*);
  void (*release_session)(OrtSession*);
  void (*release_value)(OrtValue*);
  void (*release_session_options)(OrtSessionOptions*);
  OrtStatus* (*add_session_config_entry)(OrtSessionOptions*, const char* key, const char* value);
};

template <typename T>
using OrtOwned = std::unique_ptr<T, void (*)(T*)>;

class OnnxRuntime {
 public:
  // Errors: kNotFound, `path` is not a library that can be loaded; kUnsupported, it is not ONNX
  // Runtime, or too old; kInternal, what ONNX Runtime says.
  static Result<std::unique_ptr<OnnxRuntime>> Load(const std::string& path);

  // A session that runs `model` on `threads` threads, which rest between two runs. This object must
  // outlive it. Error: kInternal, what ONNX Runtime says.
  Result<std::unique_ptr<OnnxSession>> Open(const OnnxModel& model, int threads) const;

 private:
  friend class OnnxSession;

  explicit OnnxRuntime(const OrtFunctions& functions);
  Status StatusOf(OrtStatus* failure) const;
  Status SetThreads(OrtSessionOptions* options, int threads) const;
  Result<OrtOwned<OrtValue>> TensorOver(std::vector<float>& values, const OnnxShape& shape) const;

  const OrtFunctions ort_;
  OrtOwned<OrtEnv> env_;
  OrtOwned<OrtMemoryInfo> memory_;
};

class OnnxSession {
 public:
  // The input that the next run reads; zeros until written.
  std::span<float> input() { return input_; }
  // Of the last run.
  const std::vector<float>& output() const { return output_; }
  // Error: kInternal, what ONNX Runtime says.
  Status Run();

 private:
  friend class OnnxRuntime;

  OnnxSession(const OnnxRuntime& runtime, const OnnxModel& model);

  const OnnxRuntime& runtime_;
  const std::string input_name_, output_name_;
  std::vector<float> input_, output_;
  OrtOwned<OrtSession> session_;
  OrtOwned<OrtValue> input_value_, output_value_;
};

}  // namespace npumesh

#endif  // NPUMESH_TESTS_BENCH_DECODER_ONNX_RUNTIME_H_
