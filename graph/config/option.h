// Option: one row of the table that knows every option of CompilerConfig and SystemOptions: where
// it is kept, what it accepts and what it does.
//
// A table is bound to one config object: reading a file, reading `a.b.c=value`, validating and
// printing all walk the same rows, so an option cannot be forgotten in one of them.
//
// Thread-safety: the rows point into the config object; one thread at a time may use them and it.
#ifndef NPUMESH_GRAPH_CONFIG_OPTION_H_
#define NPUMESH_GRAPH_CONFIG_OPTION_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

using Words = std::vector<std::string_view>;
using TextMap = std::map<std::string, std::string>;

// A value on its way into a field; monostate: None.
using OptionValue =
    std::variant<std::monostate, bool, int64_t, std::string, std::vector<int64_t>, TextMap>;

// The field of a config; an optional one takes None.
using OptionField =
    std::variant<bool*, std::optional<bool>*, int64_t*, std::optional<int64_t>*, std::string*,
                 std::optional<std::string>*, std::vector<int64_t>*, TextMap*>;

// What a field accepts beyond its type.
struct OptionRule {
  // The complete list, for a text; empty: any.
  Words words;
  // For integers.
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  // For a text: what is wrong with it; empty: nothing. Null: nothing ever is.
  std::string (*objection)(const std::string& text) = nullptr;
  std::string (*int_objection)(int64_t value) = nullptr;
  // For people, where words and range do not say it.
  std::string_view accepted;
};

// Where an option means something (docs/config.md).
enum class OptionMode { kAny, kMaxAutotune, kCapture };

enum class OptionEffect {
  kHere,  // `does` says what changes
  kNone,  // `does` says why nothing changes on a simulated NPU
};

struct Option {
  std::string_view path;  // "debug.graph_dump.type"
  OptionField field;
  OptionRule rule;
  OptionEffect effect = OptionEffect::kHere;
  std::string_view does;  // a sentence without its full stop
  OptionMode mode = OptionMode::kAny;
};

struct OptionTable {
  std::vector<Option> rows;
  // Other spelling -> path.
  std::map<std::string_view, std::string_view> aliases;

  // The row of a path or alias. Error (kInvalidArgument) with the nearest right names, or with
  // what the section holds when the path is a section.
  Result<const Option*> Find(std::string_view path) const;
  // True when rows lie below `path`.
  bool HasSection(std::string_view path) const;
};

// "one of \"input\", \"output\", \"all\"", "an integer in [0, 4]", ...; "or null" where None is
// accepted.
std::string AcceptedText(const Option& option);

// The value as JSON would write it.
std::string ToText(const OptionValue& value);

OptionValue Get(const Option& option);

// Errors (kInvalidArgument) name field, value and what is accepted. Nothing is stored then.
Status Check(const Option& option, const OptionValue& value);
Status Set(const Option& option, const OptionValue& value);

// A value written on a command line: "none" or "null" for None, "1,2" for a list of integers,
// "a=b:c=d" for a map.
Status SetFromText(const Option& option, std::string_view text);

// True when the value is not what a new config object has. `fresh` is the same row of such one.
bool Differs(const Option& option, const Option& fresh);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_CONFIG_OPTION_H_
