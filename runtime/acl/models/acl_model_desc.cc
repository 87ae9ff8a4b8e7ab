// Descriptions of models: acl_mdl.h.
#include <algorithm>
#include <cstring>

#include "runtime/acl/models/model_objects.h"
#include "runtime/acl/without_effect.h"

using npumesh::AclModelEntry;
using npumesh::Fail;
using npumesh::FindModel;
using npumesh::FindObject;
using npumesh::ModelBytes;
using npumesh::ModelFacts;
using npumesh::ModelObjects;
using npumesh::ModelPort;
using npumesh::ModelShapes;

namespace {

std::shared_ptr<aclmdlDesc> DescOf(const aclmdlDesc* handle, const char* function) {
  return FindObject(ModelObjects::Get().descriptions, handle, function, "description of a model");
}

bool HasGears(const ModelFacts& facts) {
  return facts.gears != ModelFacts::Gears::kNone;
}

// The input that chooses a gear, which no graph has.
ModelPort GearPort(const ModelFacts& facts) {
  return {ACL_DYNAMIC_TENSOR_NAME,
          ACL_INT64,
          {static_cast<int64_t>(facts.shapes.empty() ? 0 : facts.shapes[0].gear.size())},
          ACL_FORMAT_ND};
}

std::vector<ModelPort> InputsOf(const ModelFacts& facts) {
  std::vector<ModelPort> inputs = facts.inputs;
  if (HasGears(facts)) inputs.push_back(GearPort(facts));
  return inputs;
}

// A port of a description; without one after an error, for a description or an index that is not
// there.
enum class Side : uint8_t { kInput, kOutput };
struct FoundPort {
  std::shared_ptr<aclmdlDesc> desc;
  std::optional<ModelPort> port;

  explicit operator bool() const { return port.has_value(); }
  const ModelPort* operator->() const { return &*port; }
  const ModelPort& operator*() const { return *port; }
  const ModelFacts& facts() const { return desc->facts; }
};

FoundPort PortOf(const char* function, const aclmdlDesc* handle, Side side, size_t index) {
  FoundPort found{DescOf(handle, function), std::nullopt};
  if (found.desc == nullptr) return found;
  const std::vector<ModelPort> ports =
      side == Side::kInput ? InputsOf(found.facts()) : found.facts().outputs;
  if (index < ports.size()) {
    found.port = ports[index];
  } else {
    static_cast<void>(Fail(ACL_ERROR_INVALID_PARAM, function, "index is {}, the model has {} {}",
                           index, ports.size(), side == Side::kInput ? "inputs" : "outputs"));
  }
  return found;
}

// Where in aclmdlIODims a name does not fit, its end is kept, behind an "a" as the vendor's has it.
void SetDims(const ModelPort& port, const std::vector<int64_t>& dims, aclmdlIODims* result) {
  std::memset(result, 0, sizeof *result);
  const size_t most = sizeof result->name - 1;
  const bool fits = port.name.size() <= most;
  const std::string name = fits ? port.name : "a" + port.name.substr(port.name.size() - most + 1);
  std::memcpy(result->name, name.data(), name.size());
  result->dimCount = std::min<size_t>(dims.size(), ACL_MAX_DIM_CNT);
  std::copy_n(dims.begin(), result->dimCount, result->dims);
}

// The shapes of a gear, or the only ones; null: nothing is known.
const ModelShapes* ShapesAt(const ModelFacts& facts, size_t gear) {
  return gear < facts.shapes.size() ? &facts.shapes[gear] : nullptr;
}

uint64_t LargestBytes(const ModelFacts& facts, Side side, size_t index, const ModelPort& port) {
  uint64_t most = npumesh::BytesOfTensor(port.dtype, port.dims);
  for (const ModelShapes& shapes : facts.shapes) {
    const auto& all = side == Side::kInput ? shapes.inputs : shapes.outputs;
    if (index < all.size()) most = std::max(most, npumesh::BytesOfTensor(port.dtype, all[index]));
  }
  return most;
}

size_t SizeOf(const char* function, const aclmdlDesc* handle, Side side, size_t index) {
  const FoundPort port = PortOf(function, handle, side, index);
  if (!port) return 0;
  const bool gear = side == Side::kInput && index == port.facts().inputs.size();
  return gear ? npumesh::BytesOfTensor(port->dtype, port->dims)
              : LargestBytes(port.facts(), side, index, *port);
}

// The dimensions of an output in the gear with the most bytes of it.
std::vector<int64_t> LargestDims(const ModelFacts& facts, size_t index, const ModelPort& port) {
  std::vector<int64_t> dims = port.dims;
  uint64_t most = 0;
  for (const ModelShapes& shapes : facts.shapes) {
    if (index >= shapes.outputs.size()) continue;
    const uint64_t bytes = npumesh::BytesOfTensor(port.dtype, shapes.outputs[index]);
    if (bytes < most) continue;
    most = bytes;
    dims = shapes.outputs[index];
  }
  return dims;
}

// A name that lives as long as the description.
const char* NameOf(const char* function, const aclmdlDesc* handle, Side side, size_t index) {
  const FoundPort port = PortOf(function, handle, side, index);
  if (!port) return nullptr;
  if (side == Side::kOutput) return port.facts().outputs[index].name.c_str();
  return index < port.facts().inputs.size() ? port.facts().inputs[index].name.c_str()
                                            : ACL_DYNAMIC_TENSOR_NAME;
}

aclError IndexOf(const char* function, const aclmdlDesc* handle, Side side, const char* name,
                 size_t* index) {
  if (name == nullptr || index == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "a name or a place for the index is null");
  }
  const auto desc = DescOf(handle, function);
  if (desc == nullptr) return ACL_ERROR_INVALID_PARAM;
  const std::vector<ModelPort> ports =
      side == Side::kInput ? InputsOf(desc->facts) : desc->facts.outputs;
  const auto found = std::find_if(ports.begin(), ports.end(),
                                  [&](const ModelPort& port) { return port.name == name; });
  if (found == ports.end()) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the model has no {} \"{}\"",
                side == Side::kInput ? "input" : "output", name);
  }
  *index = static_cast<size_t>(found - ports.begin());
  return ACL_SUCCESS;
}

aclError DescribeInto(const char* function, aclmdlDesc* handle, const ModelBytes& bytes) {
  const auto desc = DescOf(handle, function);
  if (desc == nullptr) return ACL_ERROR_INVALID_PARAM;
  ModelFacts facts;
  NPUMESH_ACL_TRY(npumesh::DescribeModelBytes(function, bytes, &facts));
  desc->facts = std::move(facts);
  desc->entry.reset();
  return ACL_SUCCESS;
}

}  // namespace

aclmdlDesc* aclmdlCreateDesc() try {
  return static_cast<aclmdlDesc*>(
      ModelObjects::Get().descriptions.Add(std::make_shared<aclmdlDesc>()));
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclmdlDestroyDesc(aclmdlDesc* modelDesc) try {
  if (DescOf(modelDesc, __func__) == nullptr) return ACL_ERROR_INVALID_PARAM;
  static_cast<void>(ModelObjects::Get().descriptions.Take(modelDesc));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetDesc(aclmdlDesc* modelDesc, uint32_t modelId) try {
  const auto desc = DescOf(modelDesc, __func__);
  if (desc == nullptr) return ACL_ERROR_INVALID_PARAM;
  std::shared_ptr<AclModelEntry> entry;
  NPUMESH_ACL_TRY(FindModel(__func__, modelId, &entry));
  desc->facts = entry->model->facts();
  desc->entry = entry;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetDescFromFile(aclmdlDesc* modelDesc, const char* modelPath) try {
  NPUMESH_ACL_EXPECT(modelPath != nullptr && *modelPath != '\0', "modelPath is empty");
  return DescribeInto(__func__, modelDesc, {modelPath, nullptr, 0});
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetDescFromMem(aclmdlDesc* modelDesc, const void* model, size_t modelSize) try {
  NPUMESH_ACL_EXPECT(model != nullptr && modelSize > 0, "expected a model and its size, seen {}",
                     modelSize);
  return DescribeInto(__func__, modelDesc, {"model in memory", model, modelSize});
} catch (...) {
  return npumesh::FailThrown(__func__);
}

size_t aclmdlGetNumInputs(aclmdlDesc* modelDesc) try {
  const auto desc = DescOf(modelDesc, __func__);
  return desc == nullptr ? 0 : desc->facts.inputs.size() + (HasGears(desc->facts) ? 1 : 0);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

size_t aclmdlGetNumOutputs(aclmdlDesc* modelDesc) try {
  const auto desc = DescOf(modelDesc, __func__);
  return desc == nullptr ? 0 : desc->facts.outputs.size();
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

size_t aclmdlGetInputSizeByIndex(aclmdlDesc* modelDesc, size_t index) try {
  return SizeOf(__func__, modelDesc, Side::kInput, index);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

size_t aclmdlGetOutputSizeByIndex(aclmdlDesc* modelDesc, size_t index) try {
  return SizeOf(__func__, modelDesc, Side::kOutput, index);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return 0;
}

aclError aclmdlGetInputDims(const aclmdlDesc* modelDesc, size_t index, aclmdlIODims* dims) try {
  NPUMESH_ACL_EXPECT(dims != nullptr, "dims is null");
  const FoundPort port = PortOf(__func__, modelDesc, Side::kInput, index);
  if (!port) return ACL_ERROR_INVALID_PARAM;
  SetDims(*port, port->dims, dims);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetInputDimsV2(const aclmdlDesc* modelDesc, size_t index, aclmdlIODims* dims) try {
  return aclmdlGetInputDims(modelDesc, index, dims);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetInputDimsRange(const aclmdlDesc* modelDesc, size_t index,
                                 aclmdlIODimsRange* dimsRange) try {
  NPUMESH_ACL_EXPECT(dimsRange != nullptr, "dimsRange is null");
  const FoundPort port = PortOf(__func__, modelDesc, Side::kInput, index);
  if (!port) return ACL_ERROR_INVALID_PARAM;
  std::memset(dimsRange, 0, sizeof *dimsRange);
  dimsRange->rangeCount = std::min<size_t>(port->dims.size(), ACL_MAX_DIM_CNT);
  for (size_t axis = 0; axis < dimsRange->rangeCount; ++axis) {
    int64_t low = port->dims[axis], high = port->dims[axis];
    if (low < 0) low = 1;  // and without an upper bound, unless gears have one
    for (const ModelShapes& shapes : port.facts().shapes) {
      if (port->dims[axis] >= 0 || index >= shapes.inputs.size()) continue;
      const int64_t dim = shapes.inputs[index][axis];
      low = high < 0 ? dim : std::min(low, dim);
      high = std::max(high, dim);
    }
    dimsRange->range[axis][0] = low;
    dimsRange->range[axis][1] = high;
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetOutputDims(const aclmdlDesc* modelDesc, size_t index, aclmdlIODims* dims) try {
  NPUMESH_ACL_EXPECT(dims != nullptr, "dims is null");
  const FoundPort port = PortOf(__func__, modelDesc, Side::kOutput, index);
  if (!port) return ACL_ERROR_INVALID_PARAM;
  SetDims(*port, LargestDims(port.facts(), index, *port), dims);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetCurOutputDims(const aclmdlDesc* modelDesc, size_t index, aclmdlIODims* dims) try {
  NPUMESH_ACL_EXPECT(dims != nullptr, "dims is null");
  const FoundPort port = PortOf(__func__, modelDesc, Side::kOutput, index);
  if (!port) return ACL_ERROR_INVALID_PARAM;
  const auto entry = port.desc->entry.lock();
  const ModelShapes* shapes = ShapesAt(port.facts(), entry == nullptr ? 0 : entry->gear.load());
  const bool known = shapes != nullptr && index < shapes->outputs.size();
  SetDims(*port, known ? shapes->outputs[index] : port->dims, dims);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

const char* aclmdlGetInputNameByIndex(const aclmdlDesc* modelDesc, size_t index) try {
  return NameOf(__func__, modelDesc, Side::kInput, index);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

const char* aclmdlGetOutputNameByIndex(const aclmdlDesc* modelDesc, size_t index) try {
  return NameOf(__func__, modelDesc, Side::kOutput, index);
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclFormat aclmdlGetInputFormat(const aclmdlDesc* modelDesc, size_t index) try {
  const FoundPort port = PortOf(__func__, modelDesc, Side::kInput, index);
  return port ? port->format : ACL_FORMAT_UNDEFINED;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return ACL_FORMAT_UNDEFINED;
}

aclFormat aclmdlGetOutputFormat(const aclmdlDesc* modelDesc, size_t index) try {
  const FoundPort port = PortOf(__func__, modelDesc, Side::kOutput, index);
  return port ? port->format : ACL_FORMAT_UNDEFINED;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return ACL_FORMAT_UNDEFINED;
}

aclDataType aclmdlGetInputDataType(const aclmdlDesc* modelDesc, size_t index) try {
  const FoundPort port = PortOf(__func__, modelDesc, Side::kInput, index);
  return port ? port->dtype : ACL_DT_UNDEFINED;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return ACL_DT_UNDEFINED;
}

aclDataType aclmdlGetOutputDataType(const aclmdlDesc* modelDesc, size_t index) try {
  const FoundPort port = PortOf(__func__, modelDesc, Side::kOutput, index);
  return port ? port->dtype : ACL_DT_UNDEFINED;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return ACL_DT_UNDEFINED;
}

aclError aclmdlGetInputIndexByName(const aclmdlDesc* modelDesc, const char* name,
                                   size_t* index) try {
  return IndexOf(__func__, modelDesc, Side::kInput, name, index);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetOutputIndexByName(const aclmdlDesc* modelDesc, const char* name,
                                    size_t* index) try {
  return IndexOf(__func__, modelDesc, Side::kOutput, name, index);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

const char* aclmdlGetTensorRealName(const aclmdlDesc* modelDesc, const char* name) try {
  const auto desc = DescOf(modelDesc, __func__);
  if (desc == nullptr || name == nullptr) return nullptr;
  for (const auto* ports : {&desc->facts.inputs, &desc->facts.outputs}) {
    for (const ModelPort& port : *ports) {
      aclmdlIODims shown;
      SetDims(port, {}, &shown);
      if (port.name == name || std::strcmp(shown.name, name) == 0) return port.name.c_str();
    }
  }
  static_cast<void>(
      Fail(ACL_ERROR_INVALID_PARAM, __func__, "the model has no tensor \"{}\"", name));
  return nullptr;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

const char* aclmdlGetOpAttr(aclmdlDesc* modelDesc, const char* opName, const char* attr) try {
  if (DescOf(modelDesc, __func__) == nullptr) return nullptr;
  if (opName == nullptr || attr == nullptr) {
    static_cast<void>(Fail(ACL_ERROR_INVALID_PARAM, __func__, "opName or attr is null"));
    return nullptr;
  }
  // An operator of npumesh is never made of several, so it has no names of originals.
  if (std::strcmp(attr, ACL_ATTR_NAME_DATA_DUMP_ORIGIN_OP_NAMES) == 0) return "";
  static_cast<void>(Fail(ACL_ERROR_INVALID_PARAM, __func__, "attribute \"{}\" is not known", attr));
  return nullptr;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}

aclError aclmdlCreateAndGetOpDesc(uint32_t, uint32_t, uint32_t, char*, size_t, aclTensorDesc**,
                                  size_t*, aclTensorDesc**, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetDynamicBatch(const aclmdlDesc* modelDesc, aclmdlBatch* batch) try {
  NPUMESH_ACL_EXPECT(batch != nullptr, "batch is null");
  const auto desc = DescOf(modelDesc, __func__);
  if (desc == nullptr) return ACL_ERROR_INVALID_PARAM;
  std::memset(batch, 0, sizeof *batch);
  if (desc->facts.gears != ModelFacts::Gears::kBatch) return ACL_SUCCESS;
  for (const ModelShapes& shapes : desc->facts.shapes) {
    if (batch->batchCount == ACL_MAX_BATCH_NUM) break;
    batch->batch[batch->batchCount++] = static_cast<uint64_t>(shapes.gear[0]);
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetDynamicHW(const aclmdlDesc* modelDesc, size_t, aclmdlHW* hw) try {
  NPUMESH_ACL_EXPECT(hw != nullptr, "hw is null");
  const auto desc = DescOf(modelDesc, __func__);
  if (desc == nullptr) return ACL_ERROR_INVALID_PARAM;
  std::memset(hw, 0, sizeof *hw);
  if (desc->facts.gears != ModelFacts::Gears::kImage) return ACL_SUCCESS;
  for (const ModelShapes& shapes : desc->facts.shapes) {
    if (hw->hwCount == ACL_MAX_HW_NUM) break;
    hw->hw[hw->hwCount][0] = static_cast<uint64_t>(shapes.gear[0]);
    hw->hw[hw->hwCount++][1] = static_cast<uint64_t>(shapes.gear[1]);
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetInputDynamicGearCount(const aclmdlDesc* modelDesc, size_t,
                                        size_t* gearCount) try {
  NPUMESH_ACL_EXPECT(gearCount != nullptr, "gearCount is null");
  const auto desc = DescOf(modelDesc, __func__);
  if (desc == nullptr) return ACL_ERROR_INVALID_PARAM;
  const bool dims = desc->facts.gears == ModelFacts::Gears::kDims;
  *gearCount = dims ? desc->facts.shapes.size() : 0;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclmdlGetInputDynamicDims(const aclmdlDesc* modelDesc, size_t, aclmdlIODims* dims,
                                   size_t gearCount) try {
  NPUMESH_ACL_EXPECT(dims != nullptr, "dims is null");
  const auto desc = DescOf(modelDesc, __func__);
  if (desc == nullptr) return ACL_ERROR_INVALID_PARAM;
  NPUMESH_ACL_EXPECT(gearCount >= desc->facts.shapes.size(), "gearCount is {}, the model has {}",
                     gearCount, desc->facts.shapes.size());
  for (size_t i = 0; i < desc->facts.shapes.size(); ++i) {
    std::vector<int64_t> all;
    for (const auto& input : desc->facts.shapes[i].inputs) {
      all.insert(all.end(), input.begin(), input.end());
    }
    SetDims(GearPort(desc->facts), all, &dims[i]);
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
