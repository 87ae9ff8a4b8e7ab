#include "graph/static_kernel/record/package_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "graph/digest/sha256.h"
#include "graph/static_kernel/store/kernel_store.h"

namespace npumesh {
namespace {

// The first two lines, which hold for what follows them: a script that is cut off or changed says
// one line and does nothing. The shell runs the second one before it reads the third. It is one
// command in braces, so its own beginnings are errors of syntax, and has no quotes, which would
// turn what is quoted after them inside out. Where a program is missing, check_tools says so: the
// sum is empty then, or that of nothing.
constexpr std::string_view kGuard =
    "#!/bin/sh\n"
    "{ set -f;IFS=;no(){ echo $0: the package is cut off or damaged, copy it again>&2;exit 3;};"
    "trap no EXIT;s=$(tail -c +@BODY_AT@ $0|head -c @BODY_BYTES@|sha256sum|cut -c-64);"
    "case x$s in x@BODY_SHA256@|x|xe3b0c44298fc1c14*);;*)exit 3;;esac;unset IFS;set +f;}\n";

void Replace(std::string& text, std::string_view mark, const std::string& value) {
  const size_t at = text.find(mark);
  assert(at != std::string::npos);
  text.replace(at, mark.size(), value);
}

std::string GuardOf(const std::string& body) {
  std::string guard(kGuard);
  Replace(guard, "@BODY_BYTES@", std::to_string(body.size()));
  Replace(guard, "@BODY_SHA256@", Sha256(body));
  // Of three digits, which are shorter than their mark. Bytes count from 1.
  constexpr size_t kDigits = 3;
  const size_t at = guard.size() - std::string_view("@BODY_AT@").size() + kDigits + 1;
  assert(std::to_string(at).size() == kDigits);
  Replace(guard, "@BODY_AT@", std::to_string(at));
  return guard;
}

}  // namespace

std::string PackageScript(const PackageFacts& facts) {
  std::string body(PackageBody());
  Replace(body, "@ARCHITECTURE@", facts.architecture);
  Replace(body, "@INSTRUCTIONS@", facts.instructions);
  Replace(body, "@FLAGS@", facts.flags);
  Replace(body, "@ARCHIVE_BYTES@", std::to_string(facts.archive_bytes));
  Replace(body, "@ARCHIVE_SHA256@", facts.archive_sha256);
  Replace(body, "@KERNELS@\n", facts.kernels);
  const std::string guard_lines(kGuard);
  const auto lines = std::count(body.begin(), body.end(), '\n') +
                     std::count(guard_lines.begin(), guard_lines.end(), '\n') + 2;
  Replace(body, "@SCRIPT_LINES@", std::to_string(lines));
  const std::string script = GuardOf(body) + body;
  return fmt::format("{}# SHA-256 of the lines above: {}\n__ARCHIVE__\n", script, Sha256(script));
}

}  // namespace npumesh
