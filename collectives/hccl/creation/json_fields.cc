#include "collectives/hccl/creation/json_fields.h"

#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

Verdict Find(const JsonPlace& place, const char* key, const Json** value) {
  const auto found = place.object.find(key);
  if (found == place.object.end()) {
    return Refuse(HCCL_E_NOT_FOUND, "EI0017: the rank table lacks \"{}\"", place.PathOf(key));
  }
  *value = &*found;
  return {};
}

Verdict WrongType(const JsonPlace& place, const char* key, const Json& value,
                  std::string_view expected) {
  return Refuse(HCCL_E_PARA, "EI0017: \"{}\" of the rank table is a JSON {}; expected {}",
                place.PathOf(key), value.type_name(), expected);
}

}  // namespace

Verdict ReadString(const JsonPlace& place, const char* key, std::string* value) {
  const Json* found = nullptr;
  NPUMESH_RETURN_IF_REFUSED(Find(place, key, &found));
  if (!found->is_string()) return WrongType(place, key, *found, "a string");
  *value = found->get_ref<const std::string&>();
  return {};
}

Verdict ReadArray(const JsonPlace& place, const char* key, const Json** value) {
  NPUMESH_RETURN_IF_REFUSED(Find(place, key, value));
  return (*value)->is_array() ? Verdict() : WrongType(place, key, **value, "a list");
}

Verdict ReadOptionalString(const JsonPlace& place, const char* key, std::string* value) {
  return place.object.contains(key) ? ReadString(place, key, value) : Verdict();
}

Verdict ReadNumber(const JsonPlace& place, const char* key, NumberForm form, int64_t min,
                   int64_t max, int64_t* value) {
  const Json* found = nullptr;
  NPUMESH_RETURN_IF_REFUSED(Find(place, key, &found));
  std::string text;
  if (found->is_string()) {
    text = found->get_ref<const std::string&>();
  } else if (form == NumberForm::kAny && found->is_number_integer()) {
    text = found->dump();
  } else {
    return WrongType(place, key, *found,
                     form == NumberForm::kText ? "a number written as string" : "a number");
  }
  const Result<int64_t> number = ParseInt(text, min, max, place.PathOf(key));
  if (!number.ok()) {
    return Refuse(HCCL_E_PARA, "EI0014: rank table: {}", number.status().message());
  }
  *value = *number;
  return {};
}

Verdict CheckObject(const Json& array, size_t index, const std::string& path) {
  if (array[index].is_object()) return {};
  return Refuse(HCCL_E_PARA,
                "EI0017: \"{}[{}]\" of the rank table is a JSON {}; expected an object", path,
                index, array[index].type_name());
}

}  // namespace npumesh
