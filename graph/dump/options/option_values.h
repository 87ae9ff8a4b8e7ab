// The words that dump options take, for both families and the JSON. Internal to graph/dump.
#ifndef NPUMESH_GRAPH_DUMP_OPTIONS_OPTION_VALUES_H_
#define NPUMESH_GRAPH_DUMP_OPTIONS_OPTION_VALUES_H_

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "graph/dump/options/settings.h"
#include "runtime/base/status.h"

namespace npumesh {

template <typename T, size_t n>
using Words = std::array<std::pair<std::string_view, T>, n>;

inline constexpr Words<DumpMode, 3> kDumpModes = {
    {{"input", DumpMode::kInput}, {"output", DumpMode::kOutput}, {"all", DumpMode::kAll}}};
inline constexpr Words<DumpContent, 2> kDumpContents = {
    {{"tensor", DumpContent::kTensor}, {"stats", DumpContent::kStatistics}}};
inline constexpr Words<bool, 2> kSwitch = {{{"on", true}, {"off", false}}};
inline constexpr Words<Statistic, 7> kStatistics = {{{"Max", Statistic::kMax},
                                                     {"Min", Statistic::kMin},
                                                     {"Avg", Statistic::kAvg},
                                                     {"Nan", Statistic::kNan},
                                                     {"Negative Inf", Statistic::kNegativeInf},
                                                     {"Positive Inf", Statistic::kPositiveInf},
                                                     {"L2norm", Statistic::kL2norm}}};

// Error (kInvalidArgument) names key, value and the accepted words.
template <typename T, size_t n>
Result<T> FromWord(const Words<T, n>& words, std::string_view value, std::string_view key) {
  std::string accepted;
  for (const auto& [word, meaning] : words) {
    if (word == value) return meaning;
    accepted += (accepted.empty() ? "" : ", ") + std::string(word);
  }
  return Error(Code::kInvalidArgument, "{} is \"{}\"; accepted are {}", key, value, accepted);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_OPTIONS_OPTION_VALUES_H_
