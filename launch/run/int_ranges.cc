#include "launch/run/int_ranges.h"

#include <algorithm>
#include <limits>

#include "launch/run/dim_bindings.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/visit_stored.h"

namespace npumesh {
namespace {

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

// What a dtype holds of the 64-bit integers; nullopt: not integers.
std::optional<IntRange> Holds(DataType dtype) {
  if (!IsInteger(dtype)) return std::nullopt;
  return VisitStored(
      dtype,
      []<typename T>() -> std::optional<IntRange> {
        if constexpr (std::integral<T>) {
          using Limits = std::numeric_limits<T>;
          constexpr uint64_t kMost = std::min<uint64_t>(Limits::max(), kHighest);
          return IntRange{static_cast<int64_t>(Limits::min()), static_cast<int64_t>(kMost)};
        } else {
          return std::nullopt;
        }
      },
      []() -> std::optional<IntRange> { return std::nullopt; });
}

// "LOW:HIGH", HIGH excluded; nullopt for anything else.
std::optional<IntRange> ParseRange(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == text.npos) return std::nullopt;
  const Result<int64_t> low = ParseInt(text.substr(0, colon), kLowest, kHighest, "LOW");
  const Result<int64_t> high = ParseInt(text.substr(colon + 1), kLowest, kHighest, "HIGH");
  if (!low.ok() || !high.ok() || *low >= *high) return std::nullopt;
  return IntRange{*low, *high - 1};
}

}  // namespace

Result<IntRanges> IntRanges::Parse(const std::vector<std::string>& texts) {
  IntRanges ranges;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    const auto range = equals == text.npos || equals == 0
                           ? std::nullopt
                           : ParseRange(std::string_view(text).substr(equals + 1));
    if (!range) {
      return Error(Code::kInvalidArgument,
                   "--int-range \"{}\": expected NAME=LOW:HIGH, where NAME is an input and values "
                   "are LOW to HIGH - 1",
                   text);
    }
    ranges.named_.push_back({text.substr(0, equals), *range});
  }
  return ranges;
}

Result<std::vector<std::optional<IntRange>>> IntRanges::For(
    const std::vector<InputSpec>& inputs) const {
  std::vector<std::optional<IntRange>> result(inputs.size());
  for (const auto& [name, range] : named_) {
    const std::optional<size_t> input = FindInput(name, inputs);
    if (!input) {
      return Error(Code::kInvalidArgument, "--int-range {}: no such input; the graph has {}", name,
                   InputNames(inputs));
    }
    const TensorType& declared = inputs[*input].declared;
    const std::optional<IntRange> holds = Holds(declared.dtype);
    if (!holds || range.low < holds->low || range.high > holds->high) {
      return Error(Code::kInvalidArgument, "--int-range {}: {} does not hold {} to {}", name,
                   declared.ToString(), range.low, range.high);
    }
    result[*input] = range;
  }
  return result;
}

}  // namespace npumesh
