#include "launch/atc/atc_shapes.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "graph/engine/analyse/model_inputs.h"
#include "launch/atc/atc_error.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

constexpr size_t kFewestGears = 2;
constexpr size_t kMostGears = 100;

// One input of --input_shape.
struct NamedShape {
  std::string name;
  std::vector<int64_t> dims;
};

// "3", "-1", and in ranges "1~8", which leaves the dimension open.
Result<int64_t> ReadDim(std::string_view flag, std::string_view text) {
  const size_t tilde = text.find('~');
  if (tilde != std::string_view::npos) {
    const auto low = ParseInt(text.substr(0, tilde), 0, std::numeric_limits<int64_t>::max(), "low");
    const auto high =
        ParseInt(text.substr(tilde + 1), -1, std::numeric_limits<int64_t>::max(), "high");
    if (low.ok() && high.ok() && (*high == -1 || *low <= *high)) return kUnknownDim;
    return AtcError(atc_code::kShape, flag, "has the range \"{}\"; expected LOW~HIGH", text);
  }
  const auto dim = ParseInt(text, -1, std::numeric_limits<int64_t>::max(), "dimension");
  if (dim.ok()) return *dim;
  return AtcError(atc_code::kShape, flag, "has the dimension \"{}\"; expected a number or -1",
                  text);
}

Result<std::vector<int64_t>> ReadDims(std::string_view flag, std::string_view text) {
  if (text.size() > 1 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<int64_t> dims;
  if (text.empty()) return dims;  // a scalar
  for (const std::string_view dim : Split(text, ",")) {
    NPUMESH_ASSIGN_OR_RETURN(dims.emplace_back(), ReadDim(flag, Trimmed(dim)));
  }
  return dims;
}

// "x:1,3,224,224;ids:-1,8"; a name may have colons.
Result<std::vector<NamedShape>> ReadShapes(std::string_view flag, const std::string& text) {
  std::vector<NamedShape> shapes;
  if (text.empty()) return shapes;
  for (const std::string_view part : Split(text, ";")) {
    if (Trimmed(part).empty()) continue;
    const size_t colon = part.rfind(':');
    if (colon == std::string_view::npos || colon == 0) {
      return AtcError(atc_code::kShape, flag,
                      "has \"{}\"; expected NAME:DIM,DIM for each input, between semicolons", part);
    }
    NamedShape shape{std::string(Trimmed(part.substr(0, colon))), {}};
    NPUMESH_ASSIGN_OR_RETURN(shape.dims, ReadDims(flag, Trimmed(part.substr(colon + 1))));
    shapes.push_back(std::move(shape));
  }
  return shapes;
}

void SetShape(Node& node, const std::vector<int64_t>& dims) {
  for (auto* descs : {&node.input_descs, &node.output_descs}) {
    for (TensorDesc& desc : *descs) desc.shape = Shape(dims);
  }
}

Status GiveShape(std::string_view flag, const NamedShape& shape,
                 const std::vector<InputSpec>& inputs, Model* model) {
  const auto input = std::find_if(inputs.begin(), inputs.end(),
                                  [&](const InputSpec& spec) { return spec.name == shape.name; });
  if (input == inputs.end()) {
    std::vector<std::string> names;
    for (const InputSpec& spec : inputs) names.push_back(spec.name);
    return AtcError(atc_code::kNoNode, flag, "names \"{}\"; the graph has the inputs {}",
                    shape.name, fmt::join(names, ", "));
  }
  const Shape& declared = input->declared.shape;
  const bool ranked = declared.has_rank();
  if (ranked && declared.rank() != static_cast<int>(shape.dims.size())) {
    return AtcError(atc_code::kShape, flag, "gives \"{}\" {} dimensions; the graph has {}",
                    shape.name, shape.dims.size(), declared);
  }
  for (int axis = 0; ranked && axis < declared.rank(); ++axis) {
    const int64_t dim = shape.dims[static_cast<size_t>(axis)];
    if (declared[axis] == kUnknownDim || declared[axis] == dim) continue;
    return AtcError(atc_code::kShape, flag,
                    "gives \"{}\" {} on axis {}; the graph has {} there: {}", shape.name, dim, axis,
                    declared[axis], declared);
  }
  SetShape(model->graph.node(model->graph.Find(input->name)), shape.dims);
  return Status();
}

// ---- Gears ----

// "1,2;4,8" as lists.
Result<std::vector<std::vector<int64_t>>> ReadGearValues(std::string_view flag,
                                                         const std::string& text,
                                                         std::string_view separator) {
  std::vector<std::vector<int64_t>> gears;
  for (const std::string_view part : Split(text, separator)) {
    if (Trimmed(part).empty()) continue;
    std::vector<int64_t>& gear = gears.emplace_back();
    for (const std::string_view number : Split(part, ",")) {
      const auto value =
          ParseInt(Trimmed(number), 1, std::numeric_limits<int32_t>::max(), "dimension");
      if (!value.ok()) {
        return AtcError(atc_code::kGearValue, flag, "has \"{}\"; expected numbers from 1 on",
                        number);
      }
      gear.push_back(*value);
    }
  }
  if (gears.size() < kFewestGears) {
    return AtcError(atc_code::kFewGears, flag, "has {} choices; expected at least {}", gears.size(),
                    kFewestGears);
  }
  if (gears.size() > kMostGears) {
    return AtcError(atc_code::kManyGears, flag, "has {} choices; expected at most {}", gears.size(),
                    kMostGears);
  }
  for (size_t i = 0; i < gears.size(); ++i) {
    if (gears[i].size() != gears[0].size()) {
      return AtcError(atc_code::kGearLengths, flag, "has a choice of {} numbers and one of {}",
                      gears[0].size(), gears[i].size());
    }
    if (std::find(gears.begin(), gears.begin() + static_cast<long>(i), gears[i]) !=
        gears.begin() + static_cast<long>(i)) {
      return AtcError(atc_code::kSameGears, flag, "has {} twice", fmt::join(gears[i], ","));
    }
  }
  return gears;
}

// The open dimensions of the inputs, in their order.
std::vector<Gears::Slot> OpenSlots(const std::vector<InputSpec>& inputs) {
  std::vector<Gears::Slot> slots;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].declared.shape;
    for (int axis = 0; shape.has_rank() && axis < shape.rank(); ++axis) {
      if (shape[axis] == kUnknownDim) slots.push_back({static_cast<int>(i), axis, 0});
    }
  }
  return slots;
}

Result<Gears> BatchGears(const std::string& text, const std::vector<InputSpec>& inputs) {
  constexpr std::string_view kFlag = "dynamic_batch_size";
  Gears gears{Gears::Kind::kBatch, OpenSlots(inputs), {}};
  NPUMESH_ASSIGN_OR_RETURN(gears.values, ReadGearValues(kFlag, text, ","));
  if (gears.slots.empty()) {
    return AtcError(atc_code::kNoOpenBatch, kFlag,
                    "needs an input whose first dimension is -1 in --input_shape");
  }
  for (const Gears::Slot& slot : gears.slots) {
    if (slot.axis == 0) continue;
    return AtcError(atc_code::kNotBatch, kFlag,
                    "closes first dimensions only; input \"{}\" is open on axis {}",
                    inputs[static_cast<size_t>(slot.input)].name, slot.axis);
  }
  return gears;
}

Result<Gears> ImageGears(const std::string& text, const std::string& format,
                         const std::vector<InputSpec>& inputs) {
  constexpr std::string_view kFlag = "dynamic_image_size";
  Gears gears{Gears::Kind::kImage, OpenSlots(inputs), {}};
  NPUMESH_ASSIGN_OR_RETURN(gears.values, ReadGearValues(kFlag, text, ";"));
  if (gears.values[0].size() != 2) {
    return AtcError(atc_code::kGearDims, kFlag, "has {} numbers in a choice; expected HEIGHT,WIDTH",
                    gears.values[0].size());
  }
  const int height = format == "NHWC" ? 1 : 2;
  const bool image = gears.slots.size() == 2 && gears.slots[0].input == gears.slots[1].input &&
                     gears.slots[0].axis == height && gears.slots[1].axis == height + 1;
  if (!image) {
    return AtcError(atc_code::kImageShape, kFlag,
                    "needs one input whose height and width, axes {} and {}, are -1, and no other "
                    "open dimension",
                    height, height + 1);
  }
  gears.slots[1].number = 1;
  return gears;
}

// Numbers are typed in the order of --input_shape, and kept in that of the graph's inputs.
Result<Gears> DimGears(const std::string& text, const std::vector<NamedShape>& typed,
                       const std::vector<InputSpec>& inputs) {
  constexpr std::string_view kFlag = "dynamic_dims";
  Gears gears{Gears::Kind::kDims, OpenSlots(inputs), {}};
  NPUMESH_ASSIGN_OR_RETURN(const auto values, ReadGearValues(kFlag, text, ";"));
  if (gears.slots.empty() || values[0].size() != gears.slots.size()) {
    return AtcError(atc_code::kGearDims, kFlag,
                    "has {} numbers in a choice; the inputs have {} open dimensions",
                    values[0].size(), gears.slots.size());
  }
  std::vector<size_t> order;  // by typed number: the slot
  const auto add_input = [&](const std::string& name) {
    for (size_t slot = 0; slot < gears.slots.size(); ++slot) {
      const auto input = static_cast<size_t>(gears.slots[slot].input);
      if (inputs[input].name != name) continue;
      if (std::find(order.begin(), order.end(), slot) == order.end()) order.push_back(slot);
    }
  };
  for (const NamedShape& shape : typed) add_input(shape.name);
  for (const InputSpec& input : inputs) add_input(input.name);
  for (size_t slot = 0; slot < gears.slots.size(); ++slot) {
    gears.slots[slot].number = static_cast<int>(slot);
  }
  for (const std::vector<int64_t>& value : values) {
    std::vector<int64_t>& gear = gears.values.emplace_back(value.size());
    for (size_t i = 0; i < value.size(); ++i) gear[order[i]] = value[i];
  }
  return gears;
}

Status CheckOneKind(const AtcOptions& options) {
  const std::pair<std::string_view, const std::string*> kinds[] = {
      {"dynamic_batch_size", &options.dynamic_batch_size},
      {"dynamic_image_size", &options.dynamic_image_size},
      {"dynamic_dims", &options.dynamic_dims},
      {"input_shape_range", &options.input_shape_range}};
  std::string_view first;
  for (const auto& [flag, text] : kinds) {
    if (text->empty()) continue;
    if (!first.empty()) return AtcError(atc_code::kExclusive, first, "excludes --{}", flag);
    first = flag;
  }
  return Status();
}

}  // namespace

Result<Gears> ApplyShapes(const AtcOptions& options, Model* model) {
  NPUMESH_RETURN_IF_ERROR(CheckOneKind(options));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> before, InputsOf(*model));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NamedShape> shapes,
                           ReadShapes("input_shape", options.input_shape));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<NamedShape> ranges,
                           ReadShapes("input_shape_range", options.input_shape_range));
  for (const NamedShape& shape : shapes) {
    NPUMESH_RETURN_IF_ERROR(GiveShape("input_shape", shape, before, model));
  }
  for (const NamedShape& shape : ranges) {
    NPUMESH_RETURN_IF_ERROR(GiveShape("input_shape_range", shape, before, model));
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<InputSpec> inputs, InputsOf(*model));
  if (!options.dynamic_batch_size.empty()) return BatchGears(options.dynamic_batch_size, inputs);
  if (!options.dynamic_image_size.empty()) {
    return ImageGears(options.dynamic_image_size, options.input_format, inputs);
  }
  if (!options.dynamic_dims.empty()) return DimGears(options.dynamic_dims, shapes, inputs);
  return Gears();
}

}  // namespace npumesh
