#include "graph/io/dump_name.h"

#include <limits>

#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

bool Skip(std::string_view prefix, std::string_view* text) {
  if (text->substr(0, prefix.size()) != prefix) return false;
  text->remove_prefix(prefix.size());
  return true;
}

// The digits in front, taken off `text`.
std::optional<int64_t> TakeNumber(std::string_view* text) {
  const size_t digits = std::min(text->find_first_not_of("0123456789"), text->size());
  const Result<int64_t> number =
      ParseInt(text->substr(0, digits), 0, std::numeric_limits<int64_t>::max(), "counter");
  if (!number.ok()) return std::nullopt;
  text->remove_prefix(digits);
  return *number;
}

bool DropSuffix(std::string_view suffix, std::string_view* text) {
  if (text->size() <= suffix.size() || text->substr(text->size() - suffix.size()) != suffix) {
    return false;
  }
  text->remove_suffix(suffix.size());
  return true;
}

}  // namespace

std::optional<DumpName> ParseDumpName(std::string_view name) {
  DumpName dump;
  if (!Skip("ge_", &name)) return std::nullopt;
  for (std::string_view format : {"proto", "onnx", "readable"}) {
    if (Skip(format, &name)) dump.format = format;
  }
  if (dump.format.empty() || !Skip("_", &name)) return std::nullopt;
  const std::optional<int64_t> counter = TakeNumber(&name);
  if (!counter) return std::nullopt;
  dump.counter = *counter;
  Skip("_aclop", &name);
  std::string_view rest = name;
  if (Skip("_graph_", &rest)) {
    dump.graph_id = TakeNumber(&rest);
    if (dump.graph_id) name = rest;
  }
  if (!Skip("_", &name)) return std::nullopt;
  if (!DropSuffix(".pbtxt", &name) && !DropSuffix(".txt", &name)) return std::nullopt;
  dump.stage = name;
  return dump;
}

}  // namespace npumesh
