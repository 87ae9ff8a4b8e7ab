// Whether a config can be meant as it stands, and what of it changes nothing.
#ifndef NPUMESH_GRAPH_CONFIG_VALIDATION_H_
#define NPUMESH_GRAPH_CONFIG_VALIDATION_H_

#include <string>
#include <vector>

#include "graph/config/compiler_config.h"
#include "graph/config/system_options.h"
#include "runtime/base/status.h"

namespace npumesh {

// Every field against its row, folders and files included, then the combinations. Errors
// (kInvalidArgument) name field, value and what is accepted, or both fields of a combination.
Status Validate(const CompilerConfig& config);
Status Validate(const SystemOptions& options);

// One text for each option that was set to something else than its default and has no effect on a
// simulated NPU, or none in this mode, or none beside another option; the text says why.
std::vector<std::string> NoticesOf(const CompilerConfig& config);
std::vector<std::string> NoticesOf(const SystemOptions& options);

// Says each notice as a warning, once in this process.
void SayOnce(const std::vector<std::string>& notices);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_CONFIG_VALIDATION_H_
