#include "graph/config/config_reader.h"

#include "graph/config/option_tables.h"
#include "graph/config/validation.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/json_error.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr uint64_t kLargestFile = uint64_t{1} << 20;

std::string Quote(const json& value) {
  return Quotable(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

std::optional<std::vector<int64_t>> ToInts(const json& list) {
  std::vector<int64_t> values;
  for (const json& item : list) {
    if (!item.is_number_integer()) return std::nullopt;
    values.push_back(item.get<int64_t>());
  }
  return values;
}

std::optional<TextMap> ToMap(const json& object) {
  TextMap values;
  for (const auto& [key, item] : object.items()) {
    if (!item.is_string()) return std::nullopt;
    values.emplace(key, item.get<std::string>());
  }
  return values;
}

// False: JSON that no option can hold.
bool ToValue(const json& value, OptionValue& to) {
  if (value.is_null()) {
    to = OptionValue();
  } else if (value.is_boolean()) {
    to = value.get<bool>();
  } else if (value.is_string()) {
    to = value.get<std::string>();
  } else if (value.is_number_integer()) {
    if (value.is_number_unsigned() &&
        value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return false;
    }
    to = value.get<int64_t>();
  } else if (auto ints = value.is_array() ? ToInts(value) : std::nullopt) {
    to = std::move(*ints);
  } else if (auto map = value.is_object() ? ToMap(value) : std::nullopt) {
    to = std::move(*map);
  } else {
    return false;
  }
  return true;
}

Status ReadOption(const json& value, const Option& option) {
  OptionValue read;
  if (ToValue(value, read)) return Set(option, read);
  return Error(Code::kInvalidArgument, "{}: {} is refused: of another type; accepted: {}",
               option.path, Quote(value), AcceptedText(option));
}

Status ReadSection(const json& object, const std::string& path, const OptionTable& table) {
  for (const auto& [key, value] : object.items()) {
    const std::string inner = path.empty() ? key : path + "." + key;
    if (value.is_object() && table.HasSection(inner)) {
      NPUMESH_RETURN_IF_ERROR(ReadSection(value, inner, table));
      continue;
    }
    NPUMESH_ASSIGN_OR_RETURN(const Option* const option, table.Find(inner));
    NPUMESH_RETURN_IF_ERROR(ReadOption(value, *option));
  }
  return Status();
}

}  // namespace

Status ReadConfig(std::string_view text, std::string_view file, const OptionTable& table) {
  const json parsed = ParseForeignJson(text);
  if (!parsed.is_object()) {
    return Error(Code::kInvalidArgument, "{}: expected a JSON object of options, found {}", file,
                 parsed.is_discarded() ? "text that is no JSON: " + JsonErrorIn(std::string(text))
                                       : Quote(parsed));
  }
  return ReadSection(parsed, "", table).WithContext(file);
}

Status ReadConfigFile(const std::string& path, const OptionTable& table) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLargestFile));
  return ReadConfig(text, path, table);
}

Status ApplyAssignment(std::string_view assignment, const OptionTable& table) {
  const size_t equals = assignment.find('=');
  if (equals == assignment.npos || equals == 0) {
    return Error(Code::kInvalidArgument, "\"{}\" is no option; write a.b.c=value", assignment);
  }
  NPUMESH_ASSIGN_OR_RETURN(const Option* const option, table.Find(assignment.substr(0, equals)));
  return SetFromText(*option, assignment.substr(equals + 1));
}

Result<Configuration> LoadConfiguration(const ConfigSource& source) {
  Configuration configuration;
  const OptionTable table = OptionsOf(configuration.compiler, configuration.session);
  if (!source.file.empty()) NPUMESH_RETURN_IF_ERROR(ReadConfigFile(source.file, table));
  for (const std::string& assignment : source.assignments) {
    NPUMESH_RETURN_IF_ERROR(ApplyAssignment(assignment, table));
  }
  NPUMESH_RETURN_IF_ERROR(Validate(configuration.compiler));
  NPUMESH_RETURN_IF_ERROR(Validate(configuration.session));
  return configuration;
}

}  // namespace npumesh
