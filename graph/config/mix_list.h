// MixList: what session.modify_mixlist changes about the lists of mixed precision
// (docs/precision.md):
//
//   {"black-list": {"to-add": ["Sqrt"], "to-remove": ["ReduceSumD"]},
//    "white-list": {"to-add": ["Gelu"], "to-remove": ["BatchMatMul"]}}
#ifndef NPUMESH_GRAPH_CONFIG_MIX_LIST_H_
#define NPUMESH_GRAPH_CONFIG_MIX_LIST_H_

#include <string>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

struct MixListChanges {
  std::vector<std::string> add, remove;  // operator types
};

struct MixList {
  MixListChanges black, white;
};

// Reads such a file; lists may be left out. Errors (kInvalidArgument) name the file, the member,
// what was found and what is expected: another member, a list that is no list of operator types, a
// type that both lists add, or that one adds and removes. Those of ReadFile.
Result<MixList> ReadMixList(const std::string& path);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_CONFIG_MIX_LIST_H_
