#include "runtime/base/text/parse.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "runtime/base/text/strings.h"

namespace npumesh {
Result<int64_t> ParseInt(std::string_view text, int64_t min, int64_t max, std::string_view what) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || text.empty() || value < min || value > max) {
    return Error(Code::kInvalidArgument, "{}: expected an integer in [{}, {}], got \"{}\"", what,
                 min, max, text);
  }
  return value;
}

Result<double> ParseDouble(std::string_view text, double min, double max, std::string_view what) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || text.empty() || !std::isfinite(value) || value < min ||
      value > max) {
    return Error(Code::kInvalidArgument, "{}: expected a number in [{}, {}], got \"{}\"", what, min,
                 max, text);
  }
  return value;
}

Result<bool> ParseBool(std::string_view text, std::string_view what) {
  const std::string lower = LowerCase(text);
  for (std::string_view yes : {"1", "true", "on", "yes"}) {
    if (lower == yes) return true;
  }
  for (std::string_view no : {"0", "false", "off", "no"}) {
    if (lower == no) return false;
  }
  return Error(Code::kInvalidArgument, "{}: expected true or false, got \"{}\"", what, text);
}

Result<uint64_t> ParseBytes(std::string_view text, std::string_view what) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string unit = LowerCase(std::string_view(rest, static_cast<size_t>(end - rest)));
  constexpr std::string_view kUnits = "kmgt";
  int shift = -1;
  if (unit.empty() || unit == "b") {
    shift = 0;
  } else if (const size_t index = kUnits.find(unit[0]); index != std::string_view::npos) {
    const std::string_view tail = std::string_view(unit).substr(1);
    if (tail.empty() || tail == "b" || tail == "ib") shift = static_cast<int>(index + 1) * 10;
  }
  const bool fits = shift >= 0 && value <= (std::numeric_limits<uint64_t>::max() >> shift);
  if (error != std::errc() || text.empty() || !fits) {
    return Error(Code::kInvalidArgument,
                 "{}: expected bytes such as 512, 64K, 200M or 2G, got \"{}\"", what, text);
  }
  return value << shift;
}

}  // namespace npumesh
