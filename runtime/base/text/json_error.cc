#include "runtime/base/text/json_error.h"

#include <fmt/format.h>

#include "runtime/base/text/foreign_json.h"
#include "runtime/base/text/json.h"

namespace npumesh {
namespace {

using nlohmann::json;

constexpr size_t kLongest = 200;

// "[json.exception.parse_error.101] parse error at line 3, column 7: what is wrong", or the same
// without a line; its part from the line, or after the bracket, on.
std::string Essence(const std::string& what) {
  const size_t line = what.find("line ");
  const size_t bracket = what.find("] ");
  const size_t begin = line != what.npos ? line : bracket == what.npos ? 0 : bracket + 2;
  return what.substr(begin, kLongest);
}

}  // namespace

std::string JsonErrorIn(const std::string& text) {
  // Nothing is kept, so that depth costs nothing.
  const json::parser_callback_t keep_nothing = [](int, json::parse_event_t, json&) {
    return false;
  };
  try {
    [[maybe_unused]] const json nothing = json::parse(text, keep_nothing);
    return fmt::format("it nests deeper than {} levels", kMostJsonLevels);
  } catch (const json::exception& error) {
    return Essence(error.what());
  }
}

}  // namespace npumesh
