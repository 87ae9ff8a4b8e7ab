#include "graph/offline/offline_facts.h"

#include <algorithm>
#include <array>

#include "graph/io/foreign_file.h"
#include "graph/io/offline_file.h"
#include "runtime/base/files/mapped_file.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 4> kKinds = {"none", "batch", "image", "dims"};

json ToJsonObject(const Gears& gears) {
  json slots = json::array();
  for (const Gears::Slot& slot : gears.slots) {
    slots.push_back({slot.input, slot.axis, slot.number});
  }
  return {{"kind", kKinds[static_cast<size_t>(gears.kind)]},
          {"slots", std::move(slots)},
          {"values", gears.values}};
}

json ToJsonArray(const std::vector<TensorType>& types) {
  json array = json::array();
  for (const TensorType& type : types) {
    array.push_back({{"dtype", static_cast<int>(type.dtype)}, {"dims", type.shape.dims()}});
  }
  return array;
}

// A member of the type of `*value`; an absent one leaves it.
template <typename T>
Status Read(const json& object, const char* member, T* value) {
  const auto found = object.find(member);
  if (found == object.end()) return Status();
  try {
    *value = found->get<T>();
    return Status();
  } catch (const json::exception&) {
    return Error(Code::kCorrupt, "the description of the offline model: \"{}\" is {}", member,
                 found->type_name());
  }
}

Status Broken(const char* member, std::string_view what) {
  return Error(Code::kCorrupt, "the description of the offline model: \"{}\": {}", member, what);
}

Status ReadGears(const json& object, Gears* gears) {
  std::string kind = "none";
  NPUMESH_RETURN_IF_ERROR(Read(object, "kind", &kind));
  const auto known = std::find(kKinds.begin(), kKinds.end(), kind);
  if (known == kKinds.end()) return Broken("kind", "expected none, batch, image or dims");
  gears->kind = static_cast<Gears::Kind>(known - kKinds.begin());
  std::vector<std::array<int, 3>> slots;
  NPUMESH_RETURN_IF_ERROR(Read(object, "slots", &slots));
  NPUMESH_RETURN_IF_ERROR(Read(object, "values", &gears->values));
  if (gears->any() && gears->values.empty()) return Broken("values", "no gears");
  const size_t numbers = gears->values.empty() ? 0 : gears->values[0].size();
  for (const std::vector<int64_t>& gear : gears->values) {
    if (gear.size() != numbers) return Broken("values", "gears of different lengths");
  }
  for (const auto& [input, axis, number] : slots) {
    if (input < 0 || axis < 0 || number < 0 || static_cast<size_t>(number) >= numbers) {
      return Broken("slots", "a dimension that no gear closes");
    }
    gears->slots.push_back({input, axis, number});
  }
  return Status();
}

Status ReadOutputs(const json& arrays, std::vector<std::vector<TensorType>>* outputs) {
  if (!arrays.is_array()) return Broken("outputs", "expected a list");
  for (const json& array : arrays) {
    std::vector<TensorType>& types = outputs->emplace_back();
    if (!array.is_array()) return Broken("outputs", "expected a list of lists");
    for (const json& object : array) {
      int64_t dtype = -1;
      std::vector<int64_t> dims;
      NPUMESH_RETURN_IF_ERROR(Read(object, "dtype", &dtype));
      NPUMESH_RETURN_IF_ERROR(Read(object, "dims", &dims));
      const std::optional<DataType> known = DataTypeFromRuntime(dtype);
      if (!known) return Broken("outputs", "an unknown dtype");
      types.push_back({*known, Shape(std::move(dims))});
      NPUMESH_RETURN_IF_ERROR(types.back().shape.Check());
    }
  }
  return Status();
}

}  // namespace

std::vector<TensorType> Gears::Apply(std::vector<TensorType> types, size_t gear) const {
  for (const Slot& slot : slots) {
    const auto input = static_cast<size_t>(slot.input);
    if (input >= types.size() || slot.axis >= types[input].shape.rank()) continue;
    types[input].shape[slot.axis] = values[gear][static_cast<size_t>(slot.number)];
  }
  return types;
}

std::string ToJson(const OfflineFacts& facts) {
  json outputs = json::array();
  for (const auto& types : facts.outputs) outputs.push_back(ToJsonArray(types));
  const json object = {{"made_of", facts.made_of},
                       {"command", facts.command},
                       {"npumesh", facts.version},
                       {"soc_version", facts.soc},
                       {"rank", facts.rank},
                       {"ranks", facts.ranks},
                       {"comm_group", facts.groups},
                       {"gears", ToJsonObject(facts.gears)},
                       {"single_operator", facts.single_operator},
                       {"output_names", facts.output_names},
                       {"outputs", std::move(outputs)},
                       {"work_bytes", facts.work_bytes},
                       {"weight_bytes", facts.weight_bytes}};
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<OfflineFacts> ParseOfflineFacts(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    return Error(Code::kCorrupt, "the description of the offline model is no JSON object");
  }
  OfflineFacts facts;
  NPUMESH_RETURN_IF_ERROR(Read(object, "made_of", &facts.made_of));
  NPUMESH_RETURN_IF_ERROR(Read(object, "command", &facts.command));
  NPUMESH_RETURN_IF_ERROR(Read(object, "npumesh", &facts.version));
  NPUMESH_RETURN_IF_ERROR(Read(object, "soc_version", &facts.soc));
  NPUMESH_RETURN_IF_ERROR(Read(object, "rank", &facts.rank));
  NPUMESH_RETURN_IF_ERROR(Read(object, "ranks", &facts.ranks));
  NPUMESH_RETURN_IF_ERROR(Read(object, "comm_group", &facts.groups));
  NPUMESH_RETURN_IF_ERROR(Read(object, "single_operator", &facts.single_operator));
  NPUMESH_RETURN_IF_ERROR(Read(object, "output_names", &facts.output_names));
  NPUMESH_RETURN_IF_ERROR(Read(object, "work_bytes", &facts.work_bytes));
  NPUMESH_RETURN_IF_ERROR(Read(object, "weight_bytes", &facts.weight_bytes));
  if (const auto gears = object.find("gears"); gears != object.end()) {
    NPUMESH_RETURN_IF_ERROR(ReadGears(*gears, &facts.gears));
  }
  if (const auto outputs = object.find("outputs"); outputs != object.end()) {
    NPUMESH_RETURN_IF_ERROR(ReadOutputs(*outputs, &facts.outputs));
  }
  return facts;
}

Result<OfflineFacts> ReadOfflineFactsOf(std::string_view bytes) {
  if (!IsOfflineFile(bytes)) {
    NPUMESH_RETURN_IF_ERROR(RefuseForeignFile(bytes));
    return Error(Code::kUnsupported, "it is no offline model; `npumesh atc` makes one");
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::string description, ReadDescription(bytes));
  return ParseOfflineFacts(description);
}

Result<OfflineFacts> ReadOfflineFacts(const std::string& path) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  Result<OfflineFacts> facts =
      ReadOfflineFactsOf({reinterpret_cast<const char*>(file->data()), file->size()});
  if (!facts.ok()) return facts.status().WithContext(path);
  return facts;
}

}  // namespace npumesh
