// dump_list of the dump JSON. Internal to graph/dump.
#ifndef NPUMESH_GRAPH_DUMP_OPTIONS_CONFIG_LIST_H_
#define NPUMESH_GRAPH_DUMP_OPTIONS_CONFIG_LIST_H_

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "graph/dump/options/settings.h"
#include "runtime/base/status.h"

namespace npumesh {

// `[]` and `[{}]` are empty: all models, all operators. Errors (kInvalidArgument) begin with
// "dump_list[i]" and name key, seen and expected.
Result<std::vector<OperatorChoice>> ReadDumpList(const nlohmann::json& list);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_DUMP_OPTIONS_CONFIG_LIST_H_
