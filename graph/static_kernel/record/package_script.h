// The shell script at the beginning of a package; run_package.h says what it does.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_RECORD_PACKAGE_SCRIPT_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_RECORD_PACKAGE_SCRIPT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace npumesh {

// What the script says of its package. All but `kernels` consist of letters, digits, blanks and
// "-_.", so that nothing in them means anything to a shell.
struct PackageFacts {
  std::string architecture;
  std::string instructions;
  std::string flags;    // between blanks
  std::string kernels;  // lines "<key> <SHA-256 of its object> <title>"
  size_t archive_bytes = 0;
  std::string archive_sha256;
};

// What the script does: package_body.sh, in which words between "@" stand for the facts. All is
// functions, and the last line starts them, so nothing happens before the whole script is read.
std::string_view PackageBody();

// The script; the archive follows its last byte.
std::string PackageScript(const PackageFacts& facts);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_RECORD_PACKAGE_SCRIPT_H_
