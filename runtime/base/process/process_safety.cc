#include "runtime/base/process/process_safety.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/log.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

// The number after `key` in text of lines "key: value".
std::optional<unsigned> Octal(const std::string& text, std::string_view key) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return std::nullopt;
  const size_t first = text.find_first_not_of(" \t", at + key.size());
  if (first == std::string::npos) return std::nullopt;
  unsigned value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + first, end, value, 8);
  return read.ec == std::errc() ? std::optional(value) : std::nullopt;
}

// Not umask(2), which can only be read by changing it under the feet of other threads.
std::optional<mode_t> Umask() {
  const Result<std::string> status = ReadFile("/proc/self/status");
  if (!status.ok()) return std::nullopt;
  return Octal(*status, "\nUmask:");
}

std::optional<int> Aslr() {
  const Result<std::string> text = ReadFile("/proc/sys/kernel/randomize_va_space");
  if (!text.ok()) return std::nullopt;
  const Result<int64_t> level = ParseInt(text->substr(0, text->find('\n')), 0, 2, "ASLR");
  return level.ok() ? std::optional(static_cast<int>(*level)) : std::nullopt;
}

}  // namespace

ProcessFacts LookAtProcess() {
  return {Umask(), geteuid() == 0, Aslr()};
}

std::vector<std::string> WarningsAbout(const ProcessFacts& facts) {
  std::vector<std::string> warnings;
  if (facts.umask && (*facts.umask & kStrictUmask) != kStrictUmask) {
    warnings.push_back(
        fmt::format("the umask is {:04o}, looser than {:04o}: files of other programs of this "
                    "shell may be open to all users; run `umask {:04o}`",
                    *facts.umask, kStrictUmask, kStrictUmask));
  }
  if (facts.root) {
    warnings.emplace_back(
        "running as root: a mistake can reach everything on this machine; use an ordinary "
        "account");
  }
  return warnings;
}

void WarnAboutProcess() {
  for (const std::string& warning : WarningsAbout(LookAtProcess())) {
    NPUMESH_WARNING_ONCE("{}", warning);
  }
}

}  // namespace npumesh
