// Checksums: the file of a package that knows what all its other files were when they were written.
//
// One line for each file, as sha256sum(1) writes and checks them: 64 hexadecimal digits, two
// blanks, the name relative to the package. `sha256sum -c checksums.sha256` in the package does
// what `npumesh validate` does.
#ifndef NPUMESH_GRAPH_EXPORT_CHECKSUMS_H_
#define NPUMESH_GRAPH_EXPORT_CHECKSUMS_H_

#include <map>
#include <string>

#include "runtime/base/status.h"

namespace npumesh {

// SHA-256 in lower-case hexadecimal, by name.
using Checksums = std::map<std::string, std::string>;

std::string ChecksumsText(const Checksums& checksums);

// Errors (kCorrupt) name the line: no such line, a name that leaves the package, a name twice.
Result<Checksums> ParseChecksums(const std::string& text);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_CHECKSUMS_H_
