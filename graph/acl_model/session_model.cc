#include "graph/acl_model/session_model.h"

#include <chrono>
#include <filesystem>

#include "graph/acl_model/acl_dumps.h"
#include "graph/engine/plan/compiled_model.h"
#include "graph/engine/run/observer_chain.h"
#include "graph/engine/run/step_observer.h"
#include "graph/io/model_file.h"
#include "graph/io/offline_file.h"
#include "graph/io/weight_places.h"
#include "graph/offline/offline_compile.h"
#include "graph/session/group_table.h"
#include "graph/session/session_config.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/log.h"

namespace npumesh {
namespace {

constexpr char kNotCompiled[] =
    "{}: a graph that atc has not compiled; it runs here, but an NPU loads offline models (.om) "
    "only; `npumesh atc` makes one";

// Tells each operator of a run with its times.
class OperatorTimes final : public StepObserver {
 public:
  // `watch` must outlive it.
  explicit OperatorTimes(const OperatorWatch& watch) : watch_(watch) {}
  bool needs_each_operator() const override { return false; }
  Status AfterStep(const StepView& view) override {
    using std::chrono::system_clock;
    const auto end = system_clock::now();
    const auto took = std::chrono::duration<double>(view.seconds);
    watch_({view.step.name, view.step.type,
            end - std::chrono::duration_cast<system_clock::duration>(took), end});
    return Status();
  }

 private:
  const OperatorWatch& watch_;
};

ModelPort PortOf(const std::string& name, const TensorType& type, const std::string& layout) {
  ModelPort port;
  port.name = name;
  port.dtype = static_cast<aclDataType>(type.dtype);
  port.dims = type.shape.dims();
  if (layout == "NCHW") port.format = ACL_FORMAT_NCHW;
  if (layout == "NHWC") port.format = ACL_FORMAT_NHWC;
  return port;
}

std::vector<std::vector<int64_t>> DimsOf(const std::vector<TensorType>& types) {
  std::vector<std::vector<int64_t>> dims;
  for (const TensorType& type : types) dims.push_back(type.shape.dims());
  return dims;
}

bool AllStatic(const std::vector<TensorType>& types) {
  return std::all_of(types.begin(), types.end(),
                     [](const TensorType& type) { return type.shape.is_static(); });
}

// What NetOutput declares of an output; unknown where it does not.
TensorType DeclaredOutput(const Graph& graph, size_t index) {
  const NodeId sink = graph.NetOutput();
  if (sink == kNoNode || index >= graph.node(sink).input_descs.size()) return {};
  const TensorDesc& desc = graph.node(sink).input_descs[index];
  return desc.shape ? TensorType{desc.dtype, *desc.shape} : TensorType{};
}

Result<GroupTable> GroupsOf(const OfflineFacts& facts, const std::string& path) {
  if (!facts.groups.empty() || path.empty()) return facts.groups;
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return ReadGroupTable(folder.empty() ? "." : folder);
}

Status CheckRank(const OfflineFacts& facts, const World& world) {
  if (facts.ranks == 0) return Status();
  if (facts.ranks == world.size() && facts.rank == world.rank()) return Status();
  return Error(Code::kMismatch,
               "the model is that of rank {} of {}; this process is rank {} of {}; load the file "
               "of this rank, with as many ranks as the package has",
               facts.rank, facts.ranks, world.rank(), world.size());
}

}  // namespace

Result<ModelFacts> FactsOf(const Model& model, const OfflineFacts& facts) {
  ModelFacts told;
  told.name = model.graph.name();
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> inputs, InputsOf(model));
  std::vector<TensorType> declared;
  for (const InputSpec& input : inputs) {
    const NodeId node = model.graph.Find(input.name);
    const std::vector<TensorDesc>* descs =
        node == kNoNode ? nullptr : &model.graph.node(node).output_descs;
    const std::string layout = descs == nullptr || descs->empty() ? "ND" : (*descs)[0].layout;
    told.inputs.push_back(PortOf(input.name, input.declared, layout));
    declared.push_back(input.declared);
  }
  for (size_t i = 0; i < facts.output_names.size(); ++i) {
    const bool known = !facts.outputs.empty() && i < facts.outputs[0].size();
    TensorType type = known ? facts.outputs[0][i] : DeclaredOutput(model.graph, i);
    if (type.dtype == DataType::kUndefined) type.shape = Shape::UnknownRank();
    told.outputs.push_back(PortOf(facts.output_names[i], type, "ND"));
  }
  told.gears = static_cast<ModelFacts::Gears>(facts.gears.kind);
  for (size_t gear = 0; gear < facts.gears.values.size(); ++gear) {
    ModelShapes& shapes = told.shapes.emplace_back();
    shapes.gear = facts.gears.values[gear];
    shapes.inputs = DimsOf(facts.gears.Apply(declared, gear));
    if (gear < facts.outputs.size()) shapes.outputs = DimsOf(facts.outputs[gear]);
  }
  if (!facts.gears.any() && facts.outputs.size() == 1 && AllStatic(declared)) {
    told.shapes.push_back({{}, DimsOf(declared), DimsOf(facts.outputs[0])});
  }
  told.work_bytes = facts.work_bytes;
  told.weight_bytes = facts.weight_bytes;
  return told;
}

namespace {

// The bytes of a file, which `file` holds from here on, or those in memory.
Result<std::string_view> ContentOf(const ModelBytes& bytes,
                                   std::shared_ptr<const MappedFile>* file) {
  if (bytes.data != nullptr) {
    return std::string_view(static_cast<const char*>(bytes.data), bytes.size);
  }
  NPUMESH_ASSIGN_OR_RETURN(*file, MappedFile::Open(bytes.path));
  return std::string_view(reinterpret_cast<const char*>((*file)->data()),
                          static_cast<size_t>((*file)->size()));
}

}  // namespace

Result<size_t> CountModelsIn(const ModelBytes& bytes) {
  std::shared_ptr<const MappedFile> file;
  NPUMESH_ASSIGN_OR_RETURN(const std::string_view content, ContentOf(bytes, &file));
  if (!IsOfflineBundle(content)) return size_t{1};
  const Result<std::vector<std::string_view>> models = ReadBundle(content);
  if (!models.ok()) return models.status().WithContext(bytes.path);
  return models->size();
}

Result<ReadModel> ReadModelBytes(const ModelBytes& bytes) {
  ReadModel read;
  std::shared_ptr<const MappedFile> file;
  NPUMESH_ASSIGN_OR_RETURN(const std::string_view all, ContentOf(bytes, &file));
  std::string_view content = all;
  const bool bundle = IsOfflineBundle(all);
  if (bundle) {
    const Result<std::vector<std::string_view>> models = ReadBundle(all);
    if (!models.ok()) return models.status().WithContext(bytes.path);
    if (!bytes.index) {
      return Error(Code::kUnsupported,
                   "{}: a bundle of {} models; aclmdlBundleLoadFromFile loads it", bytes.path,
                   models->size());
    }
    if (*bytes.index < models->size()) content = (*models)[*bytes.index];
  }
  const bool offline = IsOfflineFile(content);
  if (offline) {
    Result<OfflineFacts> facts = ReadOfflineFactsOf(content);
    if (!facts.ok()) return facts.status().WithContext(bytes.path);
    read.facts = *std::move(facts);
  }
  if (file == nullptr) {
    NPUMESH_ASSIGN_OR_RETURN(read.model, ParseModel(std::string(content), bytes.path));
  } else if (bundle) {
    NPUMESH_ASSIGN_OR_RETURN(read.model, LoadFromBundle(all, *bytes.index, bytes.path));
  } else {
    NPUMESH_ASSIGN_OR_RETURN(read.model, LoadModel(*file, bytes.path));
  }
  if (!offline) {
    NPUMESH_WARNING_ONCE(kNotCompiled, bytes.path);
    read.facts.output_names = OutputNames(read.model.graph);
  }
  NPUMESH_ASSIGN_OR_RETURN(read.told, FactsOf(read.model, read.facts));
  return read;
}

Result<std::unique_ptr<LoadedModel>> SessionModel::Create(AclDevice& device, std::mutex& turn,
                                                          ReadModel read,
                                                          const SessionModelOptions& given) {
  NPUMESH_RETURN_IF_ERROR(CheckRank(read.facts, device.world));
  std::unique_ptr<SessionModel> model(new SessionModel(device, turn, std::move(read.told)));
  SessionOptions options = DefaultSessionOptions();
  options.compile.threads =
      device.world.env().num_threads > 0
          ? device.world.env().num_threads
          : std::max<int>(1, static_cast<int>(device.world.placement().cpus.size()));
  options.tensor_dump = given.dump;
  options.card = given.card;
  model->operator_alone_ = given.operator_alone;
  options.ref_data = given.ref_data;
  options.memory = {given.areas.work, given.areas.work_bytes, given.areas.weights,
                    given.areas.weight_bytes};
  NPUMESH_ASSIGN_OR_RETURN(options.groups, GroupsOf(read.facts, read.model.path));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> notes, CheckWeightPlaces(read.model, {}));
  for (const std::string& note : notes) NPUMESH_WARNING("{}", note);
  const std::lock_guard lock(turn);
  NPUMESH_ASSIGN_OR_RETURN(
      model->session_,
      Session::Create(device.world, device.memory, std::move(read.model), std::move(options)));
  return std::unique_ptr<LoadedModel>(std::move(model));
}

// A buffer may be larger than its tensor: programs allocate for the largest shape.
Status SessionModel::Bind(const std::vector<ModelBuffer>& inputs) {
  const std::vector<InputSpec>& specs = session_->inputs();
  operands_.clear();
  for (size_t i = 0; i < specs.size(); ++i) {
    const ModelBuffer& input = inputs[i];
    TensorType type{specs[i].declared.dtype, Shape(input.dims)};
    const Status shape = type.shape.Check();
    if (!shape.ok()) return shape.WithContext(fmt::format("input {} \"{}\"", i, specs[i].name));
    const auto bytes = BytesOf(type.dtype, static_cast<uint64_t>(type.shape.elements()));
    if (!bytes || input.bytes < *bytes || (input.data == nullptr && *bytes > 0)) {
      return Error(Code::kInvalidArgument, "input {} \"{}\" is {}, {} bytes; its buffer has {}{}",
                   i, specs[i].name, type, bytes.value_or(0), input.bytes,
                   input.data == nullptr ? " at null" : "");
    }
    const Lending lending = specs[i].ref ? Lending::kInPlace : Lending::kReadOnly;
    operands_.push_back({std::move(type), input.data, lending});
  }
  return Status();
}

Status SessionModel::Run(const std::vector<ModelBuffer>& inputs, std::vector<ModelBuffer>& outputs,
                         const std::function<Result<void*>(uint64_t bytes)>& make) {
  const std::lock_guard lock(turn_);
  if (const Status bound = Bind(inputs); !bound.ok()) {
    return session_->Fail(bound).WithContext(told_.name);
  }
  const PlaceOutputs place =
      [&](const std::vector<TensorType>& types) -> Result<std::vector<void*>> {
    std::vector<void*> places;
    for (size_t i = 0; i < types.size(); ++i) {
      ModelBuffer& output = outputs[i];
      output.dtype = static_cast<aclDataType>(types[i].dtype);
      output.dims = types[i].shape.dims();
      const uint64_t bytes = types[i].bytes();
      if (output.data == nullptr && output.bytes == 0) {
        NPUMESH_ASSIGN_OR_RETURN(output.data, make(bytes));
        output.bytes = bytes;
      }
      if (output.bytes < bytes || output.data == nullptr) {
        return Error(Code::kInvalidArgument,
                     "output {} \"{}\" is {}, {} bytes; its buffer has {}{}", i,
                     told_.outputs[i].name, types[i], bytes, output.bytes,
                     output.data == nullptr ? " at null" : "");
      }
      places.push_back(output.data);
    }
    return places;
  };
  OperatorTimes times(watch_);
  ObserverChain observers;
  if (watch_) observers.Add(&times);
  const auto dump = operator_alone_ ? AclDumps::OfProcess().OfOperators(device_) : nullptr;
  observers.Add(dump.get());
  StepObserver* const observer = observers.empty() ? nullptr : &observers;
  return session_->RunInto(operands_, place, observer).WithContext(told_.name);
}

}  // namespace npumesh
