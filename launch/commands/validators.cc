#include "launch/commands/validators.h"

#include <fmt/format.h>

#include <limits>

#include "runtime/base/text/parse.h"

namespace npumesh {

CLI::Validator NumberFromZero() {
  const auto refusal = [](const std::string& text) {
    constexpr double kMax = std::numeric_limits<double>::max();
    const Result<double> number = ParseDouble(text, -kMax, kMax, "number");
    if (number.ok() && *number >= 0) return std::string();
    return fmt::format("expected a number from 0 on, got \"{}\"", text.substr(0, 80));
  };
  return {refusal, ""};
}

CLI::Validator WholeNumberFromZero() {
  const auto refusal = [](const std::string& text) {
    if (!text.starts_with('-')) return std::string();
    return fmt::format("expected an integer from 0 on, got \"{}\"", text.substr(0, 80));
  };
  return {refusal, ""};
}

}  // namespace npumesh
