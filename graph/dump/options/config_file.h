// The JSON of `dump_config_path` (docs/dump.md).
#ifndef NPUMESH_GRAPH_DUMP_OPTIONS_CONFIG_FILE_H_
#define NPUMESH_GRAPH_DUMP_OPTIONS_CONFIG_FILE_H_

#include <optional>
#include <string>
#include <string_view>

#include "graph/dump/options/settings.h"
#include "runtime/base/status.h"

namespace npumesh {

// Reads `path`, a file that ends in ".json". nullopt: it asks for no dump. A relative dump_path is
// relative to the working folder. Errors (kInvalidArgument, kNotFound) name file, key, value and
// what is accepted; a forbidden combination names both keys.
Result<std::optional<DumpSettings>> ReadDumpConfig(const std::string& path);

// The same from the text; `what` begins each error.
Result<std::optional<DumpSettings>> ParseDumpConfig(std::string_view text, std::string_view what);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_OPTIONS_CONFIG_FILE_H_
