// JsonFields: strict reading of a JSON object that comes from outside, with the vendor's answers.
#ifndef NPUMESH_COLLECTIVES_HCCL_CREATION_JSON_FIELDS_H_
#define NPUMESH_COLLECTIVES_HCCL_CREATION_JSON_FIELDS_H_

#include <cstdint>
#include <string>

#include "collectives/hccl/comm/verdict.h"
#include "runtime/base/text/json.h"

namespace npumesh {

using Json = nlohmann::json;

// One object and where it stands ("server_list[1].device[0]"), for messages.
struct JsonPlace {
  const Json& object;
  std::string path;

  std::string PathOf(std::string_view key) const {
    return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
  }
};

// A mandatory key: E_NOT_FOUND when it is missing, E_PARA when its value has another type (EI0017).
Verdict ReadString(const JsonPlace& place, const char* key, std::string* value);
Verdict ReadArray(const JsonPlace& place, const char* key, const Json** value);

// An optional key: `value` stays as it is when the key is missing.
Verdict ReadOptionalString(const JsonPlace& place, const char* key, std::string* value);

// A number, which version 1 writes as text ("3") and version 2 as number or text. E_PARA outside of
// [min, max] (EI0014).
enum class NumberForm { kText, kAny };
Verdict ReadNumber(const JsonPlace& place, const char* key, NumberForm form, int64_t min,
                   int64_t max, int64_t* value);

// The object at `index` of an array; E_PARA when it is something else.
Verdict CheckObject(const Json& array, size_t index, const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CREATION_JSON_FIELDS_H_
