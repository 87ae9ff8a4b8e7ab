// Loading and executing offline models: acl_mdl.h.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "runtime/acl/dump/dump_paths.h"
#include "runtime/acl/models/model_objects.h"
#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/process.h"
#include "runtime/acl/without_effect.h"
#include "runtime/base/log.h"

using npumesh::AclContext;
using npumesh::AclModelEntry;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::ApiSpan;
using npumesh::Code;
using npumesh::DescribeModelBytes;
using npumesh::DeviceMemory;
using npumesh::Fail;
using npumesh::FindModel;
using npumesh::FindObject;
using npumesh::LoadedModels;
using npumesh::LoadModelBytes;
using npumesh::ModelAreas;
using npumesh::ModelBuffer;
using npumesh::ModelBytes;
using npumesh::ModelFacts;
using npumesh::ModelMachine;
using npumesh::ModelObjects;
using npumesh::Refuse;
using npumesh::Result;
using npumesh::Status;
using npumesh::WorkSpan;

namespace {

// The code of a model that cannot be loaded.
aclError FailLoading(const char* function, const Status& status) {
  switch (status.code()) {
    case Code::kNotFound:
    case Code::kIo:
      return npumesh::FailWith(static_cast<aclError>(ACL_ERROR_GE_EXEC_MODEL_PATH_INVALID),
                               function, status.message());
    case Code::kCorrupt:
      return npumesh::FailWith(static_cast<aclError>(ACL_ERROR_GE_EXEC_LOAD_MODEL_PARTITION_FAILED),
                               function, status.message());
    case Code::kUnsupported:
    case Code::kMismatch:
      return npumesh::FailWith(ACL_ERROR_FEATURE_UNSUPPORTED, function, status.message());
    case Code::kInvalidArgument:
      return npumesh::FailWith(ACL_ERROR_INVALID_PARAM, function, status.message());
    default:
      return npumesh::Report(function, status);
  }
}

aclError CheckFile(const char* function, const char* path, ModelBytes* bytes) {
  if (path == nullptr || *path == '\0') {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "modelPath is {}",
                path == nullptr ? "null" : "empty");
  }
  bytes->path = path;
  return ACL_SUCCESS;
}

aclError CheckMemory(const char* function, const void* data, size_t size, ModelBytes* bytes) {
  if (data == nullptr || size == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "expected a model and its size, seen {} and {}",
                fmt::ptr(data), size);
  }
  *bytes = {"model in memory", data, size};
  return ACL_SUCCESS;
}

aclError CheckArea(const char* function, const char* what, const void* place, size_t bytes) {
  if (place == nullptr) return ACL_SUCCESS;
  if (!AclProcess::Get().memory.OnDevice(place, bytes)) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "{}: {} bytes at {} are not all device memory",
                what, bytes, fmt::ptr(place));
  }
  if (reinterpret_cast<uintptr_t>(place) % npumesh::kHbmAlignment == 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "{} is {}, expected a multiple of {}", what,
              fmt::ptr(place), npumesh::kHbmAlignment);
}

aclError CheckAreas(const char* function, const ModelBytes& bytes, const ModelAreas& areas) {
  if (areas.work == nullptr && areas.weights == nullptr) return ACL_SUCCESS;
  NPUMESH_ACL_TRY(CheckArea(function, "workPtr", areas.work, areas.work_bytes));
  NPUMESH_ACL_TRY(CheckArea(function, "weightPtr", areas.weights, areas.weight_bytes));
  ModelFacts facts;
  NPUMESH_ACL_TRY(DescribeModelBytes(function, bytes, &facts));
  if (areas.work != nullptr && areas.work_bytes < facts.work_bytes) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "workSize is {}, the model needs {} (aclmdlQuerySize)", areas.work_bytes,
                facts.work_bytes);
  }
  if (areas.weights != nullptr && areas.weight_bytes < facts.weight_bytes) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "weightSize is {}, the model needs {} (aclmdlQuerySize)", areas.weight_bytes,
                facts.weight_bytes);
  }
  return ACL_SUCCESS;
}

// ---- Gears ----

// The position of the gear's input in a dataset: behind those of the graph.
size_t GearInput(const ModelFacts& facts) {
  return facts.inputs.size();
}

std::string GearTexts(const ModelFacts& facts) {
  std::string text;
  for (const npumesh::ModelShapes& shape : facts.shapes) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", fmt::join(shape.gear, ","));
  }
  return text;
}

// The gear with these numbers; none: facts.shapes.size().
size_t FindGear(const ModelFacts& facts, const std::vector<int64_t>& numbers) {
  const auto found =
      std::find_if(facts.shapes.begin(), facts.shapes.end(),
                   [&](const npumesh::ModelShapes& shape) { return shape.gear == numbers; });
  return static_cast<size_t>(found - facts.shapes.begin());
}

// Puts the numbers of a gear into the buffer of its input and remembers it.
aclError SetGear(const char* function, uint32_t id, const aclmdlDataset* dataset, size_t index,
                 ModelFacts::Gears kind, const std::vector<int64_t>& numbers, aclError unknown) {
  std::shared_ptr<AclModelEntry> entry;
  NPUMESH_ACL_TRY(FindModel(function, id, &entry));
  const auto set = FindObject(ModelObjects::Get().datasets, dataset, function, "dataset");
  if (set == nullptr) return ACL_ERROR_INVALID_PARAM;
  const ModelFacts& facts = entry->model->facts();
  if (facts.gears != kind) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "model {} was not made with shapes of this kind to choose from", id);
  }
  if (index != GearInput(facts) || index >= set->buffers.size()) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "index is {} of {} buffers, expected {}, the input " ACL_DYNAMIC_TENSOR_NAME, index,
                set->buffers.size(), GearInput(facts));
  }
  const size_t gear = FindGear(facts, numbers);
  if (gear == facts.shapes.size()) {
    return Fail(unknown, function, "model {} has no {}; expected one of {}", id,
                fmt::join(numbers, ","), GearTexts(facts));
  }
  const auto buffer = FindObject(ModelObjects::Get().buffers, set->buffers[index], function,
                                 "data buffer of the dataset");
  if (buffer == nullptr) return ACL_ERROR_INVALID_PARAM;
  const size_t bytes = numbers.size() * sizeof(int64_t);
  if (buffer->data == nullptr || buffer->size < bytes) {
    return Fail(static_cast<aclError>(ACL_ERROR_GE_DYNAMIC_INPUT_LENGTH_INVALID), function,
                "the buffer of " ACL_DYNAMIC_TENSOR_NAME " has {} bytes, expected {}", buffer->size,
                bytes);
  }
  std::memcpy(buffer->data, numbers.data(), bytes);
  entry->gear = gear;
  return ACL_SUCCESS;
}

// ---- Execution ----

// One execution: everything of the datasets that it needs, so that they may change meanwhile.
struct Execution {
  std::shared_ptr<AclModelEntry> entry;
  std::vector<ModelBuffer> inputs;
  std::vector<ModelBuffer> outputs;
  const int64_t* gear = nullptr;  // its numbers, in memory of the caller; null: no gears
};

aclError Collect(const char* function, const aclmdlDataset* handle, const char* what,
                 size_t expected, std::shared_ptr<aclmdlDataset>* dataset,
                 std::vector<ModelBuffer>* buffers) {
  *dataset = FindObject(ModelObjects::Get().datasets, handle, function, what);
  if (*dataset == nullptr) return ACL_ERROR_INVALID_PARAM;
  if ((*dataset)->buffers.size() != expected) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the {} has {} buffers, the model needs {}",
                what, (*dataset)->buffers.size(), expected);
  }
  for (const aclDataBuffer* handle_of_buffer : (*dataset)->buffers) {
    const auto buffer = FindObject(ModelObjects::Get().buffers, handle_of_buffer, function,
                                   "data buffer of a dataset");
    if (buffer == nullptr) return ACL_ERROR_INVALID_PARAM;
    buffers->push_back({buffer->data, buffer->size, {}, ACL_DT_UNDEFINED});
  }
  return ACL_SUCCESS;
}

// The shapes of inputs: those that were described, else those of the model.
aclError GiveDims(const char* function, const aclmdlDataset& dataset, Execution* execution) {
  const ModelFacts& facts = execution->entry->model->facts();
  for (size_t i = 0; i < facts.inputs.size(); ++i) {
    const auto described = dataset.described.find(i);
    std::vector<int64_t>& dims = execution->inputs[i].dims;
    dims = described == dataset.described.end() ? facts.inputs[i].dims : described->second->dims;
    if (execution->gear != nullptr) continue;  // closes them
    if (std::any_of(dims.begin(), dims.end(), [](int64_t dim) { return dim < 0; })) {
      return Fail(ACL_ERROR_INVALID_PARAM, function,
                  "input {} \"{}\" has open dimensions [{}]; aclmdlSetDatasetTensorDesc gives them",
                  i, facts.inputs[i].name, fmt::join(dims, ","));
    }
  }
  return ACL_SUCCESS;
}

aclError Prepare(const char* function, uint32_t id, const aclmdlDataset* input,
                 const aclmdlDataset* output, Execution* execution,
                 std::shared_ptr<aclmdlDataset>* results) {
  NPUMESH_ACL_TRY(FindModel(function, id, &execution->entry));
  const ModelFacts& facts = execution->entry->model->facts();
  const bool gears = facts.gears != ModelFacts::Gears::kNone;
  std::shared_ptr<aclmdlDataset> inputs;
  NPUMESH_ACL_TRY(Collect(function, input, "input dataset", facts.inputs.size() + (gears ? 1 : 0),
                          &inputs, &execution->inputs));
  NPUMESH_ACL_TRY(Collect(function, output, "output dataset", facts.outputs.size(), results,
                          &execution->outputs));
  if (gears) {
    const ModelBuffer& choice = execution->inputs[GearInput(facts)];
    const size_t numbers = facts.shapes[0].gear.size();
    if (choice.data == nullptr || choice.bytes < numbers * sizeof(int64_t)) {
      return Fail(static_cast<aclError>(ACL_ERROR_GE_DYNAMIC_INPUT_LENGTH_INVALID), function,
                  "the buffer of " ACL_DYNAMIC_TENSOR_NAME " has {} bytes, expected {}",
                  choice.bytes, numbers * sizeof(int64_t));
    }
    execution->gear = static_cast<const int64_t*>(choice.data);
    execution->inputs.pop_back();
  }
  return GiveDims(function, *inputs, execution);
}

// On the calling thread.
Status Run(Execution& execution) {
  const ModelFacts& facts = execution.entry->model->facts();
  if (execution.gear != nullptr) {
    const std::vector<int64_t> numbers(execution.gear,
                                       execution.gear + facts.shapes[0].gear.size());
    const size_t gear = FindGear(facts, numbers);
    if (gear == facts.shapes.size()) {
      return npumesh::Error(
          Code::kInvalidArgument,
          "model {} has no shapes {}; aclmdlSetDynamicBatchSize and its relatives "
          "choose one of {}",
          execution.entry->id, fmt::join(numbers, ","), GearTexts(facts));
    }
    for (size_t i = 0; i < facts.inputs.size(); ++i) {
      execution.inputs[i].dims = facts.shapes[gear].inputs[i];
    }
  }
  DeviceMemory& memory = execution.entry->device->memory;
  return execution.entry->model->Run(
      execution.inputs, execution.outputs,
      [&memory](uint64_t bytes) { return AclProcess::Get().memory.Allocate(memory, bytes); });
}

// What an output dataset says after an execution: memory that was made, types and shapes.
void TellOutputs(const Execution& execution, aclmdlDataset& results) {
  for (size_t i = 0; i < execution.outputs.size(); ++i) {
    const ModelBuffer& output = execution.outputs[i];
    if (const auto buffer = ModelObjects::Get().buffers.Find(results.buffers[i])) {
      if (buffer->data == nullptr) *buffer = {output.data, output.bytes};
    }
    auto tensor = std::make_shared<aclTensorDesc>();
    tensor->dtype = output.dtype;
    tensor->dims = output.dims;
    if (const auto before = results.described.find(i); before != results.described.end()) {
      static_cast<void>(ModelObjects::Get().tensors.Take(before->second.get()));
    }
    ModelObjects::Get().tensors.Add(tensor);
    results.described[i] = std::move(tensor);
  }
}

aclError FailRun(const char* function, const Status& status) {
  if (status.code() == Code::kInvalidArgument) {
    return npumesh::FailWith(ACL_ERROR_INVALID_PARAM, function, status.message());
  }
  return npumesh::Report(function, status);
}

aclError ExecuteOn(const char* function, uint32_t id, const aclmdlDataset* input,
                   aclmdlDataset* output, aclrtStream stream) {
  Execution execution;
  std::shared_ptr<aclmdlDataset> results;
  NPUMESH_ACL_TRY(Prepare(function, id, input, output, &execution, &results));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(function, stream, &found));
  // Where an output gets its memory from the run, the dataset is told of it then.
  const bool makes = std::any_of(execution.outputs.begin(), execution.outputs.end(),
                                 [](const ModelBuffer& out) { return out.data == nullptr; });
  const bool open = execution.entry->model->facts().shapes.empty();
  const uint16_t lane = npumesh::LaneOfStream(found->id);
  const std::weak_ptr<aclmdlDataset> told = results;
  found->stream.Enqueue([execution, makes, open, told, device = found->device, lane] {
    Execution mine = execution;
    const WorkSpan work(device,
                        {.name = mine.entry->model->facts().name, .type = "Model", .lane = lane});
    NPUMESH_RETURN_IF_ERROR(Run(mine));
    const std::shared_ptr<aclmdlDataset> dataset = told.lock();
    if ((makes || open) && dataset != nullptr) TellOutputs(mine, *dataset);
    return Status();
  });
  return ACL_SUCCESS;
}

}  // namespace

namespace npumesh {

aclError LoadModelBytes(const char* function, const ModelBytes& bytes, uint32_t* id,
                        const ModelAreas& areas) {
  NPUMESH_ACL_TRY(CheckAreas(function, bytes, areas));
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(function, &context));
  NPUMESH_ACL_TRY(AclProcess::Get().captures.Permit(function));
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return FailLoading(function, machine.status());
  Result<std::unique_ptr<npumesh::LoadedModel>> model =
      (*machine)->Load(*context->device, bytes, areas);
  if (!model.ok()) return FailLoading(function, model.status());
  *id = LoadedModels::Get().Add(*context->device, *std::move(model));
  return ACL_SUCCESS;
}

aclError CountModelBytes(const char* function, const ModelBytes& bytes, size_t* count) {
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return FailLoading(function, machine.status());
  const Result<size_t> counted = (*machine)->CountModels(bytes);
  if (!counted.ok()) return FailLoading(function, counted.status());
  *count = *counted;
  return ACL_SUCCESS;
}

aclError DescribeModelBytes(const char* function, const ModelBytes& bytes, ModelFacts* facts) {
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return FailLoading(function, machine.status());
  Result<ModelFacts> described = (*machine)->Describe(bytes);
  if (!described.ok()) return FailLoading(function, described.status());
  *facts = *std::move(described);
  return ACL_SUCCESS;
}

}  // namespace npumesh

aclError aclmdlLoadFromFile(const char* modelPath, uint32_t* modelId) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(modelId != nullptr, "modelId is null");
  ModelBytes bytes;
  NPUMESH_ACL_TRY(CheckFile(__func__, modelPath, &bytes));
  return LoadModelBytes(__func__, bytes, modelId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlLoadFromMem(const void* model, size_t modelSize, uint32_t* modelId) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(modelId != nullptr, "modelId is null");
  ModelBytes bytes;
  NPUMESH_ACL_TRY(CheckMemory(__func__, model, modelSize, &bytes));
  return LoadModelBytes(__func__, bytes, modelId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlLoadFromFileWithMem(const char* modelPath, uint32_t* modelId, void* workPtr,
                                   size_t workSize, void* weightPtr, size_t weightSize) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(modelId != nullptr, "modelId is null");
  ModelBytes bytes;
  NPUMESH_ACL_TRY(CheckFile(__func__, modelPath, &bytes));
  return LoadModelBytes(__func__, bytes, modelId, {workPtr, workSize, weightPtr, weightSize});
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlLoadFromMemWithMem(const void* model, size_t modelSize, uint32_t* modelId,
                                  void* workPtr, size_t workSize, void* weightPtr,
                                  size_t weightSize) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(modelId != nullptr, "modelId is null");
  ModelBytes bytes;
  NPUMESH_ACL_TRY(CheckMemory(__func__, model, modelSize, &bytes));
  return LoadModelBytes(__func__, bytes, modelId, {workPtr, workSize, weightPtr, weightSize});
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlLoadFromFileWithQ(const char*, uint32_t*, const uint32_t*, size_t, const uint32_t*,
                                 size_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlLoadFromMemWithQ(const void*, size_t, uint32_t*, const uint32_t*, size_t,
                                const uint32_t*, size_t) try {
  return Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlUnload(uint32_t modelId) try {
  const ApiSpan span(__func__);
  std::shared_ptr<AclModelEntry> entry;
  NPUMESH_ACL_TRY(FindModel(__func__, modelId, &entry));
  static_cast<void>(LoadedModels::Get().Take(modelId));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlLoadWithConfig(const aclmdlConfigHandle* handle, uint32_t* modelId) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(modelId != nullptr, "modelId is null");
  const auto config =
      FindObject(ModelObjects::Get().configs, handle, __func__, "configuration of a load");
  if (config == nullptr) return ACL_ERROR_INVALID_PARAM;
  const auto number = [&config](aclmdlConfigAttr attr) {
    const auto found = config->numbers.find(attr);
    return found == config->numbers.end() ? uint64_t{0} : found->second;
  };
  const uint64_t type = number(ACL_MDL_LOAD_TYPE_SIZET);
  ModelBytes bytes;
  switch (type) {
    case ACL_MDL_LOAD_FROM_FILE:
    case ACL_MDL_LOAD_FROM_FILE_WITH_MEM:
      NPUMESH_ACL_TRY(CheckFile(__func__, config->paths[ACL_MDL_PATH_PTR].c_str(), &bytes));
      break;
    case ACL_MDL_LOAD_FROM_MEM:
    case ACL_MDL_LOAD_FROM_MEM_WITH_MEM:
      NPUMESH_ACL_TRY(CheckMemory(__func__,
                                  reinterpret_cast<const void*>(number(ACL_MDL_MEM_ADDR_PTR)),
                                  number(ACL_MDL_MEM_SIZET), &bytes));
      break;
    case ACL_MDL_LOAD_FROM_FILE_WITH_Q:
    case ACL_MDL_LOAD_FROM_MEM_WITH_Q:
      return Refuse(__func__);
    default:
      return Fail(ACL_ERROR_INVALID_PARAM, __func__,
                  "ACL_MDL_LOAD_TYPE_SIZET is {}, expected 1 to 6", type);
  }
  ModelAreas areas;
  if (type == ACL_MDL_LOAD_FROM_FILE_WITH_MEM || type == ACL_MDL_LOAD_FROM_MEM_WITH_MEM) {
    areas = {reinterpret_cast<void*>(number(ACL_MDL_WORKSPACE_ADDR_PTR)),
             number(ACL_MDL_WORKSPACE_SIZET),
             reinterpret_cast<void*>(number(ACL_MDL_WEIGHT_ADDR_PTR)),
             number(ACL_MDL_WEIGHT_SIZET)};
  }
  NPUMESH_ACL_TRY(LoadModelBytes(__func__, bytes, modelId, areas));
  if (const auto entry = LoadedModels::Get().Find(*modelId)) {
    entry->priority = static_cast<uint32_t>(number(ACL_MDL_PRIORITY_INT32));
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlQuerySize(const char* fileName, size_t* workSize, size_t* weightSize) try {
  NPUMESH_ACL_EXPECT(workSize != nullptr && weightSize != nullptr,
                     "a pointer for the result is null");
  ModelBytes bytes;
  NPUMESH_ACL_TRY(CheckFile(__func__, fileName, &bytes));
  ModelFacts facts;
  NPUMESH_ACL_TRY(DescribeModelBytes(__func__, bytes, &facts));
  *workSize = facts.work_bytes;
  *weightSize = facts.weight_bytes;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlQuerySizeFromMem(const void* model, size_t modelSize, size_t* workSize,
                                size_t* weightSize) try {
  NPUMESH_ACL_EXPECT(workSize != nullptr && weightSize != nullptr,
                     "a pointer for the result is null");
  ModelBytes bytes;
  NPUMESH_ACL_TRY(CheckMemory(__func__, model, modelSize, &bytes));
  ModelFacts facts;
  NPUMESH_ACL_TRY(DescribeModelBytes(__func__, bytes, &facts));
  *workSize = facts.work_bytes;
  *weightSize = facts.weight_bytes;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlQueryExeOMDesc(const char* fileName, aclmdlExeOMDesc* mdlPartitionSize) try {
  NPUMESH_ACL_EXPECT(mdlPartitionSize != nullptr, "mdlPartitionSize is null");
  size_t work = 0, weights = 0;
  NPUMESH_ACL_TRY(aclmdlQuerySize(fileName, &work, &weights));
  *mdlPartitionSize = {};
  mdlPartitionSize->workSize = work;
  mdlPartitionSize->weightSize = weights;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetAttribute(uint32_t modelId, aclmdlAttr attr, aclmdlAttrValue_t* attrValue) try {
  NPUMESH_ACL_EXPECT(attr == ACL_MDL_ATTR_PRIORITY_INT32 && attrValue != nullptr,
                     "attr is {}, expected 0 and a value", static_cast<int>(attr));
  std::shared_ptr<AclModelEntry> entry;
  NPUMESH_ACL_TRY(FindModel(__func__, modelId, &entry));
  entry->priority = attrValue->mdlPriority;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetAttribute(uint32_t modelId, aclmdlAttr attr, aclmdlAttrValue_t* attrValue) try {
  NPUMESH_ACL_EXPECT(attr == ACL_MDL_ATTR_PRIORITY_INT32 && attrValue != nullptr,
                     "attr is {}, expected 0 and a place for its value", static_cast<int>(attr));
  std::shared_ptr<AclModelEntry> entry;
  NPUMESH_ACL_TRY(FindModel(__func__, modelId, &entry));
  attrValue->mdlPriority = entry->priority;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetDynamicBatchSize(uint32_t modelId, aclmdlDataset* dataset, size_t index,
                                   uint64_t batchSize) try {
  const ApiSpan span(__func__);
  return SetGear(__func__, modelId, dataset, index, ModelFacts::Gears::kBatch,
                 {static_cast<int64_t>(batchSize)},
                 static_cast<aclError>(ACL_ERROR_GE_DYNAMIC_BATCH_SIZE_INVALID));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetDynamicHWSize(uint32_t modelId, aclmdlDataset* dataset, size_t index,
                                uint64_t height, uint64_t width) try {
  const ApiSpan span(__func__);
  return SetGear(__func__, modelId, dataset, index, ModelFacts::Gears::kImage,
                 {static_cast<int64_t>(height), static_cast<int64_t>(width)},
                 ACL_ERROR_INVALID_PARAM);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetInputDynamicDims(uint32_t modelId, aclmdlDataset* dataset, size_t index,
                                   const aclmdlIODims* dims) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_EXPECT(dims != nullptr && dims->dimCount <= ACL_MAX_DIM_CNT,
                     "dims has {} dimensions, expected at most {}",
                     dims == nullptr ? 0 : dims->dimCount, ACL_MAX_DIM_CNT);
  std::shared_ptr<AclModelEntry> entry;
  NPUMESH_ACL_TRY(FindModel(__func__, modelId, &entry));
  // All dimensions of all inputs; those that are open make the gear.
  const ModelFacts& facts = entry->model->facts();
  std::vector<int64_t> numbers;
  size_t at = 0;
  for (const npumesh::ModelPort& input : facts.inputs) {
    for (const int64_t dim : input.dims) {
      NPUMESH_ACL_EXPECT(at < dims->dimCount, "dims has {} dimensions, the inputs have more",
                         dims->dimCount);
      NPUMESH_ACL_EXPECT(dim < 0 || dim == dims->dims[at],
                         "dimension {} of dims is {}, input \"{}\" has {}", at, dims->dims[at],
                         input.name, dim);
      if (dim < 0) numbers.push_back(dims->dims[at]);
      ++at;
    }
  }
  NPUMESH_ACL_EXPECT(at == dims->dimCount, "dims has {} dimensions, the inputs have {}",
                     dims->dimCount, at);
  return SetGear(__func__, modelId, dataset, index, ModelFacts::Gears::kDims, numbers,
                 ACL_ERROR_INVALID_PARAM);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlExecute(uint32_t modelId, const aclmdlDataset* input, aclmdlDataset* output) try {
  const ApiSpan span(__func__);
  NPUMESH_ACL_TRY(AclProcess::Get().captures.Permit(__func__));
  Execution execution;
  std::shared_ptr<aclmdlDataset> results;
  NPUMESH_ACL_TRY(Prepare(__func__, modelId, input, output, &execution, &results));
  NPUMESH_ACL_TRY(FailRun(__func__, Run(execution)));
  TellOutputs(execution, *results);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlExecuteAsync(uint32_t modelId, const aclmdlDataset* input, aclmdlDataset* output,
                            aclrtStream stream) try {
  const ApiSpan span(__func__);
  return ExecuteOn(__func__, modelId, input, output, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlExecuteV2(uint32_t modelId, const aclmdlDataset* input, aclmdlDataset* output,
                         aclrtStream stream, const aclmdlExecConfigHandle* handle) try {
  const ApiSpan span(__func__);
  const auto config = FindObject(ModelObjects::Get().exec_configs, handle, __func__,
                                 "configuration of an execution");
  if (config == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_TRY(ExecuteOn(__func__, modelId, input, output, stream));
  const auto timeout = config->numbers.find(ACL_MDL_STREAM_SYNC_TIMEOUT);
  const int32_t milliseconds =
      timeout == config->numbers.end() ? -1 : static_cast<int32_t>(timeout->second);
  return aclrtSynchronizeStreamWithTimeout(stream, milliseconds);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlExecuteAsyncV2(uint32_t modelId, const aclmdlDataset* input, aclmdlDataset* output,
                              aclrtStream stream, const aclmdlExecConfigHandle* handle) try {
  const ApiSpan span(__func__);
  const auto config = FindObject(ModelObjects::Get().exec_configs, handle, __func__,
                                 "configuration of an execution");
  if (config == nullptr) return ACL_ERROR_INVALID_PARAM;
  return ExecuteOn(__func__, modelId, input, output, stream);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlInitDump() try { return ACL_SUCCESS; } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlSetDump(const char* dumpCfgPath) try {
  NPUMESH_ACL_EXPECT(dumpCfgPath != nullptr && *dumpCfgPath != '\0', "dumpCfgPath is empty");
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return FailLoading(__func__, machine.status());
  const Status set = (*machine)->SetDump(dumpCfgPath);
  if (set.ok()) {
    npumesh::DumpPaths::OfProcess().ReadModels(dumpCfgPath);
    return ACL_SUCCESS;
  }
  return npumesh::FailWith(
      set.code() == Code::kNotFound ? ACL_ERROR_INVALID_FILE : ACL_ERROR_PARSE_FILE, __func__,
      set.message());
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlFinalizeDump() try {
  const Result<ModelMachine*> machine = ModelMachine::Get();
  if (!machine.ok()) return FailLoading(__func__, machine.status());
  npumesh::DumpPaths::OfProcess().ReadModels("");
  return npumesh::Report(__func__, (*machine)->SetDump(""));
} catch (...) {
  return npumesh::FailThrown(__func__);
}
