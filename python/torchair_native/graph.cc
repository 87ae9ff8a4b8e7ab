#include "python/torchair_native/graph.h"

#include <algorithm>

#include "python/torchair_native/engine.h"
#include "python/torchair_native/log.h"
#include "python/torchair_native/options.h"

namespace npumesh::torchair {
namespace {

constexpr int64_t kHost = 0;
constexpr int64_t kDevice = 1;
constexpr int64_t kNpuExecutor = 1;

std::string TextOf(const int64_t* dims, int32_t rank) {
  if (rank < 0) return "[unknown rank]";
  std::string text;
  for (int32_t i = 0; i < rank; ++i) text += (i > 0 ? ", " : "") + std::to_string(dims[i]);
  return "[" + text + "]";
}

std::string TextOf(const Dims& dims) {
  return TextOf(dims.data(), static_cast<int32_t>(dims.size()));
}

// Whether shapes agree where both are known. [] is what a graph says whose builder inferred no
// shapes, too.
bool Agree(const Dims& hint, const npumesh_port& seen) {
  if (seen.rank == NPUMESH_OPEN_RANK || hint.empty()) return true;
  if (static_cast<size_t>(seen.rank) != hint.size()) return false;
  for (size_t i = 0; i < hint.size(); ++i) {
    if (hint[i] >= 0 && seen.dims[i] >= 0 && hint[i] != seen.dims[i]) return false;
  }
  return true;
}

// TorchAir has no numbers for types that torch holds as bytes.
bool DtypesAgree(int64_t expected, int32_t seen) {
  if (seen == NPUMESH_UNDEFINED || expected == seen) return true;
  return expected == NPUMESH_UINT8 && (seen == NPUMESH_HIFLOAT8 || seen == NPUMESH_FLOAT4_E1M2);
}

// Makes the tensors for outputs that no one has assigned, while the graph runs.
struct OutputMaker {
  Unlocked* unlocked = nullptr;
  PyObject* device = nullptr;
  std::vector<Ref> made;
  // What Python raised, to be raised after the run.
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;

  static void* Give(void* context, size_t position, const npumesh_tensor* tensor) {
    auto& maker = *static_cast<OutputMaker*>(context);
    return maker.unlocked->Locked([&] { return maker.Make(position, *tensor); });
  }

  void* Make(size_t position, const npumesh_tensor& tensor) {
    Ref output = NewTensor(tensor.dtype, tensor.dims, tensor.rank, device);
    void* const address = output ? AddressOf(output.get()) : nullptr;
    if (address == nullptr) PyErr_Fetch(&type, &value, &trace);
    made[position] = std::move(output);
    return address;
  }

  // Whether an error of Python is set now.
  bool Raise() {
    if (type == nullptr) return false;
    PyErr_Restore(type, value, trace);
    type = value = trace = nullptr;
    return true;
  }
};

Py_ssize_t SizeOf(PyObject* list) {
  return PyList_Check(list) ? PyList_Size(list) : PyTuple_Size(list);
}

PyObject* ItemOf(PyObject* list, Py_ssize_t at) {
  return PyList_Check(list) ? PyList_GetItem(list, at) : PyTuple_GetItem(list, at);
}

bool CheckList(PyObject* object, const char* what) {
  if (PyList_Check(object) || PyTuple_Check(object)) return true;
  Fail(std::string(what) + ": not a list or tuple");
  return false;
}

bool CheckTensor(PyObject* object, Py_ssize_t position) {
  if (IsTensor(object)) return true;
  Fail("element " + std::to_string(position) + " is " +
       (object == Py_None ? "None" : "not a Tensor"));
  return false;
}

}  // namespace

Graph::Graph(std::string name) : name_(std::move(name)) {
  Engine::Get().Add(this);
}

Graph::~Graph() {
  Unload();
  Engine::Get().Remove(this);
}

bool Graph::Load(LoadedGraph loaded) {
  if (loaded.executor != 0 && loaded.executor != kNpuExecutor) {
    Fail("Executor type is unknown: expected 0 (host) or 1 (NPU), seen " +
         std::to_string(loaded.executor));
    return false;
  }
  const std::string error = Unload();
  loaded_ = std::move(loaded);
  Log(LogLevel::kInfo, "graph " + name_ + ": " + std::to_string(loaded_->bytes.size()) +
                           " bytes are loaded, executor " + std::to_string(loaded_->executor));
  input_hints_.clear();
  output_hints_.clear();
  if (error.empty()) return true;
  Fail(error);
  return false;
}

bool Graph::SetHintShape(std::vector<Dims> inputs, std::vector<Dims> outputs) {
  if (!loaded_) {
    Fail("Set graph inputs and outputs shape must after load");
    return false;
  }
  input_hints_ = std::move(inputs);
  output_hints_ = std::move(outputs);
  return true;
}

std::string Graph::Unload() {
  npumesh_session* const session = std::exchange(session_, nullptr);
  frozen_.clear();
  loaded_.reset();
  if (session == nullptr) return "";
  npumesh_code code = NPUMESH_OK;
  std::string error;
  {
    const Unlocked unlocked;
    const std::lock_guard<std::mutex> turn(turn_);
    code = npumesh_close(session);
    if (code != NPUMESH_OK) error = npumesh_last_error();
  }
  return code == NPUMESH_OK ? "" : "graph " + name_ + ": " + error;
}

// Parses the bytes: session and ports.
bool Graph::Open() {
  if (session_ != nullptr) return true;
  if (!loaded_) {
    Fail("graph " + name_ + " is not loaded; call load first");
    return false;
  }
  npumesh_world* const world = Engine::Get().World();
  Texts texts;
  if (world == nullptr || !Engine::Get().OptionsFor(loaded_->options, texts)) return false;
  std::vector<npumesh_option> options;
  for (const auto& [key, value] : texts) options.push_back({key.c_str(), value.c_str()});
  const std::string label = name_.empty() ? "graph" : name_;
  npumesh_code code = NPUMESH_OK;
  {
    const Unlocked unlocked;
    code = npumesh_load_bytes(world, loaded_->bytes.data(), loaded_->bytes.size(), label.c_str(),
                              options.data(), options.size(), &session_);
  }
  if (code != NPUMESH_OK) return FailOf("load of " + label) != nullptr;
  return NotePorts();
}

bool Graph::NotePorts() {
  size_t input_count = 0;
  npumesh_count_ports(session_, &input_count, &output_count_);
  inputs_.assign(input_count, InputPort());
  for (size_t i = 0; i < input_count; ++i) {
    npumesh_port port{};
    if (npumesh_get_input(session_, i, &port) != NPUMESH_OK) {
      return FailOf("graph " + name_) != nullptr;
    }
    InputPort& input = inputs_[i];
    input.name = port.name;
    input.dtype = port.dtype;
    input.ref = port.ref != 0;
    input.rank = port.rank;
    if (port.rank > 0) input.dims.assign(port.dims, port.dims + port.rank);
    if (i < input_hints_.size() && input_hints_[i].size() == input.dims.size()) {
      input.dims = input_hints_[i];
    }
  }
  const std::vector<bool> frozen = FrozenFlags(loaded_->options);
  for (size_t i = 0; i < std::min(frozen.size(), input_count); ++i) inputs_[i].frozen = frozen[i];
  frozen_.resize(input_count);
  device_ = OutputDevice(loaded_->executor == kNpuExecutor);
  return static_cast<bool>(device_);
}

bool Graph::IsStatic() const {
  return std::all_of(inputs_.begin(), inputs_.end(), [](const InputPort& input) {
    return input.rank >= 0 &&
           std::all_of(input.dims.begin(), input.dims.end(), [](int64_t dim) { return dim >= 0; });
  });
}

std::string Graph::ExecutorWord() const {
  const Texts& options = loaded_->options;
  if (options.count("ge.inputShape") > 0 && options.count("ge.dynamicDims") > 0 &&
      options.count("ge.dynamicNodeType") > 0) {
    return "multi gear";
  }
  return IsStatic() ? "static graph" : "dynamic graph";
}

bool Graph::Prepare() {
  std::vector<npumesh_tensor> types(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const InputPort& input = inputs_[i];
    if (input.dtype == NPUMESH_UNDEFINED) return true;  // the first run tells
    types[i].dims = input.dims.data();
    types[i].rank = input.rank;
    types[i].dtype = input.dtype;
    types[i].flags = input.ref ? NPUMESH_IN_PLACE : NPUMESH_READ_ONLY;
  }
  npumesh_code code = NPUMESH_OK;
  {
    const Unlocked unlocked;
    const std::lock_guard<std::mutex> turn(turn_);
    code = npumesh_prepare(session_, types.data(), types.size());
  }
  return code == NPUMESH_OK || FailOf("compile of graph " + name_) != nullptr;
}

bool Graph::CheckOutputs() {
  if (loaded_->executor != kNpuExecutor || !IsStatic()) return true;
  if (!output_hints_.empty() && output_hints_.size() != output_count_) {
    Fail("graph " + name_ + ": the FX graph has " + std::to_string(output_hints_.size()) +
         " outputs, the compiled graph " + std::to_string(output_count_));
    return false;
  }
  for (size_t i = 0; i < output_count_; ++i) {
    npumesh_port port{};
    if (npumesh_get_output(session_, i, &port) != NPUMESH_OK) {
      return FailOf("graph " + name_) != nullptr;
    }
    const std::string where = "graph " + name_ + ", output " + std::to_string(i) + ": ";
    if (i < output_hints_.size() && !Agree(output_hints_[i], port)) {
      Fail(where + "the FX graph has shape " + TextOf(output_hints_[i]) + ", the compiled graph " +
           TextOf(port.dims, port.rank));
      return false;
    }
    if (i < loaded_->dtypes.size() && !DtypesAgree(loaded_->dtypes[i], port.dtype)) {
      Fail(where + "the FX graph has type " +
           npumesh_dtype_name(static_cast<int32_t>(loaded_->dtypes[i])) + ", the compiled graph " +
           npumesh_dtype_name(port.dtype));
      return false;
    }
  }
  return true;
}

bool Graph::Compile() {
  if (!Open() || !Prepare() || !CheckOutputs()) return false;
  Log(LogLevel::kInfo, "graph " + name_ + " is compiled: " + ExecutorWord() + ", " +
                           std::to_string(inputs_.size()) + " inputs, " +
                           std::to_string(output_count_) + " outputs");
  return true;
}

bool Graph::AutoTune(PyObject* inputs) {
  if (!CheckList(inputs, "auto_tune")) return false;
  for (Py_ssize_t i = 0; i < SizeOf(inputs); ++i) {
    if (!CheckTensor(ItemOf(inputs, i), i)) return false;
  }
  // A session with aoe_config.aoe_mode measures when it is compiled.
  return Compile();
}

bool Graph::CheckInputCount(size_t seen) {
  if (seen == inputs_.size()) return true;
  Fail(ExecutorWord() + " " + name_ + " has " + std::to_string(inputs_.size()) + " inputs, " +
       std::to_string(seen) + " were given");
  return false;
}

bool Graph::CheckPlacement(PyObject* tensor, size_t position) {
  if (loaded_->executor != kNpuExecutor || position >= loaded_->placements.size()) return true;
  const int64_t placement = loaded_->placements[position];
  if (placement != kHost && placement != kDevice) return true;
  const int on_host = IsOnHost(tensor);
  if (on_host < 0) return false;
  if ((on_host == 1) == (placement == kHost)) return true;
  Fail(ExecutorWord() + ": input " + std::to_string(position) + " is placed on " +
       (placement == kHost ? "[Host]" : "[NPU]") + ", the tensor given is on " +
       (on_host == 1 ? "HOST" : "DEVICE"));
  return false;
}

bool Graph::BindInput(PyObject* tensor, size_t position, TensorView& view) {
  const InputPort& port = inputs_[position];
  if (port.frozen && frozen_[position]) {
    view.described.dtype = NPUMESH_UNDEFINED;
    return true;
  }
  if (!CheckTensor(tensor, static_cast<Py_ssize_t>(position)) ||
      !CheckPlacement(tensor, position) || !ViewTensor(tensor, port.dtype, view)) {
    return false;
  }
  view.described.flags = port.ref ? NPUMESH_IN_PLACE : NPUMESH_READ_ONLY;
  return true;
}

bool Graph::BindOutput(PyObject* tensor, npumesh_tensor& output, TensorView& view) {
  output.dtype = NPUMESH_UNDEFINED;
  if (tensor == Py_None) return true;
  if (!ViewTensor(tensor, NPUMESH_UNDEFINED, view)) return false;
  output.data = view.described.data;
  output.bytes = view.described.bytes;
  return true;
}

PyObject* Graph::Run(PyObject* inputs, PyObject* assigned) {
  if (!CheckList(inputs, "inputs") || !CheckList(assigned, "outputs")) return nullptr;
  if (session_ == nullptr) return Fail("graph " + name_ + " is not compiled; call compile first");
  if (!CheckInputCount(static_cast<size_t>(SizeOf(inputs)))) return nullptr;
  std::vector<npumesh_tensor> given(inputs_.size());
  std::vector<TensorView> views(inputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!BindInput(ItemOf(inputs, static_cast<Py_ssize_t>(i)), i, views[i])) return nullptr;
    given[i] = views[i].described;
  }
  std::vector<npumesh_tensor> wanted(output_count_);
  std::vector<TensorView> places(output_count_);
  const auto assigned_count = static_cast<size_t>(SizeOf(assigned));
  if (assigned_count > 0 && assigned_count != output_count_) {
    return Fail("graph " + name_ + " has " + std::to_string(output_count_) + " outputs, " +
                std::to_string(assigned_count) + " were assigned");
  }
  for (size_t i = 0; i < output_count_; ++i) {
    PyObject* const place =
        i < assigned_count ? ItemOf(assigned, static_cast<Py_ssize_t>(i)) : Py_None;
    if (place != Py_None && !CheckTensor(place, static_cast<Py_ssize_t>(i))) return nullptr;
    if (!BindOutput(place, wanted[i], places[i])) return nullptr;
  }
  OutputMaker maker;
  maker.device = device_.get();
  maker.made.resize(output_count_);
  npumesh_code code = NPUMESH_OK;
  {
    Unlocked unlocked;
    maker.unlocked = &unlocked;
    const std::lock_guard<std::mutex> turn(turn_);
    npumesh_set_allocator(session_, &OutputMaker::Give, &maker);
    code = npumesh_run(session_, given.data(), given.size(), wanted.data(), wanted.size());
    npumesh_set_allocator(session_, nullptr, nullptr);
  }
  if (code != NPUMESH_OK) {
    return maker.Raise() ? nullptr : FailOf("run of graph " + name_);
  }
  if (LogEnabled(LogLevel::kDebug)) Log(LogLevel::kDebug, "graph " + name_ + " has run");
  for (size_t i = 0; i < views.size(); ++i) {
    if (inputs_[i].frozen && views[i].tensor) frozen_[i] = Ref::Share(views[i].tensor.get());
    if (!views[i].changed || !inputs_[i].ref) continue;
    if (!CopyTensor(views[i].changed.get(), views[i].tensor.get())) return nullptr;
  }
  Ref outputs(PyList_New(static_cast<Py_ssize_t>(output_count_)));
  for (size_t i = 0; outputs && i < output_count_; ++i) {
    TensorView& place = places[i];
    if (place.changed && !CopyTensor(place.changed.get(), place.tensor.get())) return nullptr;
    Ref output = place.changed  ? std::move(place.changed)
                 : place.tensor ? std::move(place.tensor)
                                : std::move(maker.made[i]);
    PyList_SetItem(outputs.get(), static_cast<Py_ssize_t>(i), output.release());
  }
  return outputs.release();
}

bool Graph::GetStats(npumesh_session_stats& stats) {
  if (!Open()) return false;
  if (npumesh_get_stats(session_, &stats, sizeof stats) == NPUMESH_OK) return true;
  return FailOf("graph " + name_) != nullptr;
}

}  // namespace npumesh::torchair
