// The functions of ge_ir_build.h and onnx_parser.h, which run `npumesh atc`.
#include <dlfcn.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <vector>

#include "ge/ge_ir_build.h"
#include "graph/static_kernel/store/program_run.h"
#include "parser/onnx_parser.h"
#include "runtime/acl/process/device_context.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/log.h"

namespace fs = std::filesystem;

using npumesh::Code;
using npumesh::Error;
using npumesh::FileKind;
using npumesh::Result;
using npumesh::Status;

namespace ge {

using Options = std::map<AscendString, AscendString>;

// What a parser has taken: a file, or bytes.
class GraphImpl {
 public:
  explicit GraphImpl(std::string graph_name) : name(std::move(graph_name)) {}

  static GraphImpl* Of(const Graph& graph) { return graph.impl_.get(); }
  static GraphImpl& In(Graph& graph) {
    if (graph.impl_ == nullptr) graph.impl_ = std::make_shared<GraphImpl>("");
    return *graph.impl_;
  }
  bool filled() const { return !file.empty() || !bytes.empty(); }

  const std::string name;
  std::string file;  // empty: `bytes`
  std::string bytes;
  Options options;  // of the parser
};

namespace {

// Flags of atc by the names of options. What is in neither list only concerns compilers of kernels.
const std::map<std::string_view, std::string_view>& Flags() {
  static const auto* const flags = new std::map<std::string_view, std::string_view>{
      {ir_option::INPUT_FORMAT, "input_format"},
      {ir_option::INPUT_SHAPE, "input_shape"},
      {ir_option::INPUT_SHAPE_RANGE, "input_shape_range"},
      {ir_option::DYNAMIC_BATCH_SIZE, "dynamic_batch_size"},
      {ir_option::DYNAMIC_IMAGE_SIZE, "dynamic_image_size"},
      {ir_option::DYNAMIC_DIMS, "dynamic_dims"},
      {ir_option::PRECISION_MODE, "precision_mode"},
      {ir_option::PRECISION_MODE_V2, "precision_mode_v2"},
      {ir_option::SOC_VERSION, "soc_version"},
      {ir_option::OP_SELECT_IMPL_MODE, "op_select_implmode"},
      {ir_option::OPTYPELIST_FOR_IMPLMODE, "optypelist_for_implmode"},
      {ir_option::OUTPUT_TYPE, "output_type"},
      {ir_option::OUT_NODES, "out_nodes"},
      {ir_option::INPUT_FP16_NODES, "input_fp16_nodes"},
      {ir_option::MODIFY_MIXLIST, "modify_mixlist"},
      {"ge.insertOpFile", "insert_op_conf"}};
  return *flags;
}

struct Global {
  std::mutex mutex;
  Options options;
};
Global& OfProcess() {
  static auto* const global = new Global;
  return *global;
}

graphStatus Fail(std::string_view function, graphStatus code, const Status& why) {
  NPUMESH_ERROR("{}: {}", function, why.message());
  npumesh::RecordRecentError(fmt::format("{}: {}", function, why.message()));
  return code;
}

graphStatus Invalid(std::string_view function, std::string_view what) {
  return Fail(function, GRAPH_PARAM_INVALID, Error(Code::kInvalidArgument, "{}", what));
}

// Exceptions do not leave the library.
graphStatus Guarded(std::string_view function, const std::function<graphStatus()>& body) noexcept {
  try {
    return body();
  } catch (...) {
    npumesh::RecordThrown(function, {.no_memory = -1, .bug = -1, .name = "graphStatus"});
    return GRAPH_FAILED;
  }
}

// A folder that goes with its content.
class TemporaryFolder {
 public:
  static Result<std::unique_ptr<TemporaryFolder>> Make() {
    std::error_code error;
    std::string path = fs::temp_directory_path(error).string() + "/npumesh_build_XXXXXX";
    if (error || mkdtemp(path.data()) == nullptr) {
      return npumesh::SystemError("make", path, error ? error.value() : errno);
    }
    return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(std::move(path)));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  const std::string path_;
};

// The command beside this library, in an installation or in a folder of a build.
Result<std::string> Command() {
  Dl_info about;
  if (dladdr(reinterpret_cast<const void*>(&Command), &about) == 0) {
    return Error(Code::kNotFound, "the library does not know where it lies");
  }
  std::error_code error;
  const fs::path home = fs::canonical(about.dli_fname, error).parent_path().parent_path();
  for (const char* folder : {"bin", "launch"}) {
    const fs::path command = home / folder / "npumesh";
    if (fs::is_regular_file(command, error)) return command.string();
  }
  return Error(Code::kNotFound, "{}/bin/npumesh is not there, which compiles models",
               home.string());
}

// The last line, which says what is wrong.
std::string LastWords(const std::string& said) {
  std::string_view text = said;
  while (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  return std::string(text.substr(text.rfind('\n') + 1));
}

Result<std::string> Compile(const GraphImpl& graph, const Options& options) {
  constexpr std::chrono::hours kLongest(1);
  NPUMESH_ASSIGN_OR_RETURN(const std::string command, Command());
  NPUMESH_ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Make());
  std::string file = graph.file;
  if (file.empty()) {
    file = folder->path() + "/model.onnx";
    NPUMESH_RETURN_IF_ERROR(npumesh::WriteFile(file, graph.bytes, FileKind::kData));
  }
  std::vector<std::string> words = {command, "atc", "--framework=5", "--model=" + file,
                                    "--output=" + folder->path() + "/built"};
  for (const auto& [name, value] : options) {
    const auto flag = Flags().find(name.GetString());
    if (flag == Flags().end()) {
      NPUMESH_DEBUG("aclgrphBuildModel: option {} changes nothing", name.GetString());
    } else if (value.GetLength() > 0) {
      words.push_back(fmt::format("--{}={}", flag->second, value.GetString()));
    }
  }
  NPUMESH_ASSIGN_OR_RETURN(const npumesh::ProgramEnd end,
                           npumesh::RunProgram(words, folder->path(), kLongest));
  if (end.late) return Error(Code::kTimeout, "the compiler did not end within an hour");
  if (end.signal != 0) return Error(Code::kInternal, "the compiler ended by signal {}", end.signal);
  if (end.code != 0) return Error(Code::kInvalidArgument, "{}", LastWords(end.said));
  return npumesh::ReadFile(folder->path() + "/built.om");
}

void Join(const Options& from, Options* to) {
  for (const auto& [name, value] : from) to->insert_or_assign(name, value);
}

}  // namespace

Graph::Graph(const char* name) : impl_(std::make_shared<GraphImpl>(name == nullptr ? "" : name)) {}

graphStatus Graph::GetName(AscendString& name) const {
  if (impl_ == nullptr) return GRAPH_FAILED;
  name = AscendString(impl_->name.c_str());
  return GRAPH_SUCCESS;
}

bool Graph::IsValid() const {
  return impl_ != nullptr && impl_->filled();
}

graphStatus aclgrphParseONNX(const char* model_file, const Options& parser_params, Graph& graph) {
  return Guarded(__func__, [&]() -> graphStatus {
    if (model_file == nullptr || *model_file == '\0') {
      return Invalid("aclgrphParseONNX", "model_file is null or empty");
    }
    std::error_code error;
    const fs::path path = fs::absolute(model_file, error);
    if (!fs::is_regular_file(path, error)) {
      return Fail("aclgrphParseONNX", GRAPH_FAILED,
                  Error(Code::kNotFound, "{}: no such file", model_file));
    }
    GraphImpl& taken = GraphImpl::In(graph);
    taken.file = path.string();
    taken.bytes.clear();
    taken.options = parser_params;
    return GRAPH_SUCCESS;
  });
}

graphStatus aclgrphParseONNXFromMem(const char* buffer, size_t size, const Options& parser_params,
                                    Graph& graph) {
  return Guarded(__func__, [&]() -> graphStatus {
    if (buffer == nullptr || size == 0) {
      return Invalid("aclgrphParseONNXFromMem", "buffer is null, or its size is 0");
    }
    GraphImpl& taken = GraphImpl::In(graph);
    taken.bytes.assign(buffer, size);
    taken.file.clear();
    taken.options = parser_params;
    return GRAPH_SUCCESS;
  });
}

graphStatus aclgrphBuildInitialize(Options& global_options) {
  return Guarded(__func__, [&]() -> graphStatus {
    Global& global = OfProcess();
    const std::lock_guard lock(global.mutex);
    global.options = global_options;
    return GRAPH_SUCCESS;
  });
}

void aclgrphBuildFinalize() {
  Global& global = OfProcess();
  const std::lock_guard lock(global.mutex);
  global.options.clear();
}

graphStatus aclgrphBuildModel(const Graph& graph, const Options& build_options,
                              ModelBufferData& model) {
  return Guarded(__func__, [&]() -> graphStatus {
    const GraphImpl* const parsed = GraphImpl::Of(graph);
    if (parsed == nullptr || !parsed->filled()) {
      return Invalid("aclgrphBuildModel", "the graph is empty; aclgrphParseONNX fills one");
    }
    Options options;
    {
      const std::lock_guard lock(OfProcess().mutex);
      options = OfProcess().options;
    }
    Join(parsed->options, &options);
    Join(build_options, &options);
    const Result<std::string> built = Compile(*parsed, options);
    if (!built.ok()) return Fail("aclgrphBuildModel", GRAPH_FAILED, built.status());
    model.data =
        std::shared_ptr<uint8_t>(new uint8_t[built->size()], std::default_delete<uint8_t[]>());
    std::memcpy(model.data.get(), built->data(), built->size());
    model.length = built->size();
    return GRAPH_SUCCESS;
  });
}

graphStatus aclgrphSaveModel(const char* output_file, const ModelBufferData& model) {
  return Guarded(__func__, [&]() -> graphStatus {
    if (output_file == nullptr || *output_file == '\0' || model.data == nullptr) {
      return Invalid("aclgrphSaveModel", "output_file is null or empty, or the model is empty");
    }
    std::string path = output_file;
    if (!path.ends_with(".om")) path += ".om";
    const Status written = npumesh::WriteFile(
        path, {reinterpret_cast<const char*>(model.data.get()), static_cast<size_t>(model.length)},
        FileKind::kData);
    return written.ok() ? GRAPH_SUCCESS : Fail("aclgrphSaveModel", GRAPH_FAILED, written);
  });
}

graphStatus aclgrphGetIRVersion(int32_t* major_version, int32_t* minor_version,
                                int32_t* patch_version) {
  if (major_version == nullptr || minor_version == nullptr || patch_version == nullptr) {
    return Invalid("aclgrphGetIRVersion", "a parameter is null");
  }
  *major_version = 1;
  *minor_version = *patch_version = 0;
  return GRAPH_SUCCESS;
}

}  // namespace ge
