// Reads configs from a JSON file and from `a.b.c=value`.
//
//   {"mode": "max-autotune", "debug": {"graph_dump": {"type": "txt"}}, "session": {...}}
//
// Objects follow the paths of docs/config.md; a dotted key is the same path written short.
#ifndef NPUMESH_GRAPH_CONFIG_CONFIG_READER_H_
#define NPUMESH_GRAPH_CONFIG_CONFIG_READER_H_

#include <string>
#include <string_view>
#include <vector>

#include "graph/config/compiler_config.h"
#include "graph/config/option.h"
#include "graph/config/system_options.h"
#include "runtime/base/status.h"

namespace npumesh {

// Sets what the JSON text names; the rest stays. Errors (kInvalidArgument) begin with `file` and
// name field, value and what is accepted; nothing after a wrong field is set.
Status ReadConfig(std::string_view text, std::string_view file, const OptionTable& table);

// The same for a file of at most 1 MiB. Errors: also kNotFound, kIo.
Status ReadConfigFile(const std::string& path, const OptionTable& table);

// Sets one option from `a.b.c=value` (SetFromText).
Status ApplyAssignment(std::string_view assignment, const OptionTable& table);

// Where a command finds its config.
struct ConfigSource {
  std::string file;                      // empty: none
  std::vector<std::string> assignments;  // after the file, in order

  bool empty() const { return file.empty() && assignments.empty(); }
};

struct Configuration {
  CompilerConfig compiler;
  SystemOptions session;
};

// Reads the source over the defaults and validates the result.
Result<Configuration> LoadConfiguration(const ConfigSource& source);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_CONFIG_CONFIG_READER_H_
