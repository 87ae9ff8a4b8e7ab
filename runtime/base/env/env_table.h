// Tables of environment variables. Each floor lists the variables that it reads, and a table fills
// the struct in which the floor passes their values on (env.h, graph/dump/options/dump_env.h).
//
//   constexpr std::array kEntries = {
//       EnvEntry<Env>{{"NPUMESH_TOPOLOGY", ...}, ParseTextField<&Env::topology>}};
//
// Thread-safety: free functions without state.
#ifndef NPUMESH_RUNTIME_BASE_ENV_ENV_TABLE_H_
#define NPUMESH_RUNTIME_BASE_ENV_ENV_TABLE_H_

#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <string_view>
#include <tuple>

#include "runtime/base/status.h"

namespace npumesh {

// One row of the manual.
struct EnvVariable {
  std::string_view name;
  std::string_view accepted;
  std::string_view fallback;  // what holds when it is unset
  std::string_view meaning;
};

// Returns null for an unset variable.
using EnvGetter = std::function<const char*(const char*)>;

// Whether the fallback in the manual is a value of the variable, which fills its field, or words
// for people.
enum class EnvFallback : uint8_t { kWords, kValue };

// One variable: its row of the manual and how its text becomes a field of `Values`.
template <typename Values>
struct EnvEntry {
  EnvVariable manual;
  Status (*parse)(const EnvVariable& variable, std::string_view text, Values& values);
  EnvFallback fallback = EnvFallback::kWords;
};

template <auto field, typename Values>
Status ParseTextField(const EnvVariable&, std::string_view text, Values& values) {
  values.*field = text;
  return Status();
}

// Fills the fields whose fallback is a value.
template <typename Entries, typename Values>
void SetFallbacks(const Entries& entries, Values& values) {
  for (const auto& entry : entries) {
    if (entry.fallback != EnvFallback::kValue) continue;
    [[maybe_unused]] const Status read = entry.parse(entry.manual, entry.manual.fallback, values);
    assert(read.ok());
  }
}

// Fills the fields of the variables that are set. Errors (kInvalidArgument) name variable, text and
// accepted range.
template <typename Entries, typename Values>
Status ReadVariables(const Entries& entries, const EnvGetter& get, Values& values) {
  for (const auto& entry : entries) {
    const char* text = get(entry.manual.name.data());
    if (text == nullptr) continue;
    NPUMESH_RETURN_IF_ERROR(
        entry.parse(entry.manual, text, values).WithContext("environment variable"));
  }
  return Status();
}

// The rows of the manual.
template <typename Entries>
constexpr auto ManualOf(const Entries& entries) {
  std::array<EnvVariable, std::tuple_size_v<Entries>> manual{};
  for (size_t i = 0; i < manual.size(); ++i) manual[i] = entries[i].manual;
  return manual;
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_ENV_ENV_TABLE_H_
