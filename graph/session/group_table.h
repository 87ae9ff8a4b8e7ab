// The groups that a package lists in its relation file.
#ifndef NPUMESH_GRAPH_SESSION_GROUP_TABLE_H_
#define NPUMESH_GRAPH_SESSION_GROUP_TABLE_H_

#include <string>

#include "collectives/group_names.h"
#include "runtime/base/status.h"

namespace npumesh {

// Reads `comm_group` of DIR/model_relation_config.json; an absent file is an empty table. Errors
// (kCorrupt) name file and field.
Result<GroupTable> ReadGroupTable(const std::string& folder);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_SESSION_GROUP_TABLE_H_
