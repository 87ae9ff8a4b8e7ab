#include "runtime/base/text/printable.h"
#include "tests/fuzz/targets.h"

namespace npumesh::fuzz {

std::string FlawOf(const Status& status) {
  if (status.ok()) return "";
  const std::string message(status.message());
  if (message.empty()) return "an error without a message";
  if (message.size() > (size_t{1} << 16)) return "an error of many bytes";
  return PrintableMessage(message) == message ? "" : "an error unfit for a terminal: " + message;
}

}  // namespace npumesh::fuzz
