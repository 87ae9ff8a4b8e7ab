#include "graph/config/option.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "runtime/base/text/nearest_name.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

// A function of many types in one.
template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

template <class T>
struct FieldType {
  using Value = T;
  static constexpr bool kTakesNone = false;
};
template <class T>
struct FieldType<std::optional<T>> {
  using Value = T;
  static constexpr bool kTakesNone = true;
};

bool TakesNone(const Option& option) {
  return std::visit(
      [](auto* field) { return FieldType<std::remove_pointer_t<decltype(field)>>::kTakesNone; },
      option.field);
}

// Index into OptionValue of what the field holds.
size_t KindOf(const Option& option) {
  return std::visit(
      [](auto* field) {
        using Value = typename FieldType<std::remove_pointer_t<decltype(field)>>::Value;
        return OptionValue(Value{}).index();
      },
      option.field);
}

constexpr size_t kBool = 1;
constexpr size_t kInt = 2;
constexpr size_t kText = 3;
constexpr size_t kInts = 4;

std::string RangeText(const OptionRule& rule) {
  using Limits = std::numeric_limits<int64_t>;
  if (rule.min == Limits::min() && rule.max == Limits::max()) return "an integer";
  return fmt::format("an integer in [{}, {}]", rule.min, rule.max);
}

std::string AcceptedWithoutNone(const Option& option) {
  const OptionRule& rule = option.rule;
  if (!rule.accepted.empty()) return std::string(rule.accepted);
  if (!rule.words.empty()) {
    return fmt::format("{}\"{}\"", rule.words.size() > 1 ? "one of " : "",
                       fmt::join(rule.words, "\", \""));
  }
  switch (KindOf(option)) {
    case kBool:
      return "true or false";
    case kInt:
      return RangeText(rule);
    case kText:
      return "a text";
    case kInts:
      return "a list of integers";
    default:
      return "an object of texts";
  }
}

// What is wrong with a value of the right type; empty: nothing.
std::string Objection(const OptionRule& rule, const OptionValue& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) {
    if (*number < rule.min || *number > rule.max) return "out of range";
    return rule.int_objection != nullptr ? rule.int_objection(*number) : "";
  }
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return "";
  if (!rule.words.empty()) {
    const bool known = std::find(rule.words.begin(), rule.words.end(), *text) != rule.words.end();
    return known ? "" : "not in the list";
  }
  return rule.objection != nullptr ? rule.objection(*text) : "";
}

Status Refusal(const Option& option, const std::string& value, const std::string& why) {
  return Error(Code::kInvalidArgument, "{}: {} is refused: {}; accepted: {}", option.path, value,
               why, AcceptedText(option));
}

bool IsNone(std::string_view text) {
  return text == "none" || text == "None" || text == "null";
}

Result<OptionValue> ParseInts(std::string_view text, std::string_view what) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> values;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    NPUMESH_ASSIGN_OR_RETURN(const int64_t value,
                             ParseInt(text.substr(0, comma), -kMost, kMost, what));
    values.push_back(value);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return OptionValue(std::move(values));
}

Result<OptionValue> ParseMap(std::string_view text, std::string_view what) {
  TextMap values;
  while (!text.empty()) {
    const size_t end = std::min(text.find(':'), text.size());
    const std::string_view item = text.substr(0, end);
    const size_t equals = item.find('=');
    if (equals == item.npos) {
      return Error(Code::kInvalidArgument, "{}: \"{}\" is no key=value; write a=b:c=d", what, item);
    }
    values.emplace(item.substr(0, equals), item.substr(equals + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return OptionValue(std::move(values));
}

Result<OptionValue> ParseValue(const Option& option, std::string_view text) {
  if (TakesNone(option) && IsNone(text)) return OptionValue();
  switch (KindOf(option)) {
    case kBool: {
      const Result<bool> value = ParseBool(text, option.path);
      if (!value.ok()) return Refusal(option, fmt::format("\"{}\"", text), "not a truth value");
      return OptionValue(*value);
    }
    case kInt: {
      const Result<int64_t> value = ParseInt(text, option.rule.min, option.rule.max, option.path);
      if (!value.ok()) {
        return Refusal(option, fmt::format("\"{}\"", text), "not such an integer");
      }
      return OptionValue(*value);
    }
    case kText:
      return OptionValue(std::string(text));
    case kInts:
      return ParseInts(text, option.path);
    default:
      return ParseMap(text, option.path);
  }
}

}  // namespace

std::string AcceptedText(const Option& option) {
  const std::string accepted = AcceptedWithoutNone(option);
  return TakesNone(option) ? accepted + ", or null" : accepted;
}

std::string ToText(const OptionValue& value) {
  return std::visit(Overloaded{[](std::monostate) { return std::string("null"); },
                               [](bool v) { return std::string(v ? "true" : "false"); },
                               [](int64_t v) { return fmt::format("{}", v); },
                               [](const std::string& v) { return fmt::format("\"{}\"", v); },
                               [](const std::vector<int64_t>& v) {
                                 return fmt::format("[{}]", fmt::join(v, ","));
                               },
                               [](const TextMap& v) {
                                 std::vector<std::string> items;
                                 for (const auto& [key, text] : v) {
                                   items.push_back(fmt::format("\"{}\":\"{}\"", key, text));
                                 }
                                 return fmt::format("{{{}}}", fmt::join(items, ","));
                               }},
                    value);
}

OptionValue Get(const Option& option) {
  return std::visit(
      [](auto* field) -> OptionValue {
        if constexpr (FieldType<std::remove_pointer_t<decltype(field)>>::kTakesNone) {
          return field->has_value() ? OptionValue(**field) : OptionValue();
        } else {
          return OptionValue(*field);
        }
      },
      option.field);
}

Status Check(const Option& option, const OptionValue& value) {
  if (value.index() == 0) {
    if (TakesNone(option)) return Status();
    return Refusal(option, "null", "a value is needed");
  }
  if (value.index() != KindOf(option)) return Refusal(option, ToText(value), "of another type");
  const std::string objection = Objection(option.rule, value);
  return objection.empty() ? Status() : Refusal(option, ToText(value), objection);
}

Status Set(const Option& option, const OptionValue& value) {
  NPUMESH_RETURN_IF_ERROR(Check(option, value));
  std::visit(
      [&value](auto* field) {
        using Field = FieldType<std::remove_pointer_t<decltype(field)>>;
        if (const auto* held = std::get_if<typename Field::Value>(&value)) {
          *field = *held;
        } else if constexpr (Field::kTakesNone) {
          field->reset();
        }
      },
      option.field);
  return Status();
}

Status SetFromText(const Option& option, std::string_view text) {
  NPUMESH_ASSIGN_OR_RETURN(const OptionValue value, ParseValue(option, text));
  return Set(option, value);
}

bool Differs(const Option& option, const Option& fresh) {
  return Get(option) != Get(fresh);
}

Result<const Option*> OptionTable::Find(std::string_view path) const {
  const auto alias = aliases.find(path);
  if (alias != aliases.end()) path = alias->second;
  std::vector<std::string_view> names;
  for (const Option& option : rows) {
    if (option.path == path) return &option;
    names.push_back(option.path);
  }
  if (HasSection(path)) {
    const std::string section = std::string(path) + ".";
    std::erase_if(names, [&](std::string_view name) { return !name.starts_with(section); });
    return Error(Code::kInvalidArgument, "{} is a section; it holds {}", path,
                 fmt::join(names, ", "));
  }
  const std::vector<std::string> nearest = NearestNames(path, names);
  if (nearest.empty()) {
    return Error(Code::kInvalidArgument, "there is no option {}; see docs/config.md",
                 Quotable(path));
  }
  return Error(Code::kInvalidArgument, "there is no option {}; did you mean {}?", Quotable(path),
               fmt::join(nearest, " or "));
}

bool OptionTable::HasSection(std::string_view path) const {
  return std::any_of(rows.begin(), rows.end(), [&](const Option& option) {
    return option.path.size() > path.size() && option.path.starts_with(path) &&
           option.path[path.size()] == '.';
  });
}

}  // namespace npumesh
