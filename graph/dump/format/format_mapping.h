// mapping.csv: which names the digits of a dump folder stand for.
//
// A name that the file system cannot hold is stored under the decimal hash of its path, and the
// folder's mapping.csv gets the line "{hash},{name}".
#ifndef NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_MAPPING_H_
#define NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_MAPPING_H_

#include <map>
#include <string>
#include <string_view>

#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

inline constexpr std::string_view kMappingFile = "mapping.csv";
inline constexpr size_t kMaxNameBytes = 255;

// The name under which `name` can stand in `folder`: itself or, when it is longer than
// kMaxNameBytes, the decimal std::hash of the path.
std::string StorableName(const std::string& folder, const std::string& name);

// Adds the line of a name that is not stored as itself; one write, so a killed process leaves
// whole lines. Errors as AppendToFile.
Status AddMapping(const std::string& folder, const std::string& stored, const std::string& name,
                  FileSystem& fs = RealFileSystem());

// Stored name -> name. An absent file is an empty map; lines that are no mapping are passed over.
// Errors: kIo; kCorrupt for a file of more than 1 GiB.
Result<std::map<std::string, std::string>> ReadMapping(const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_FORMAT_FORMAT_MAPPING_H_
