// The options of npumesh_init, npumesh_load_file and npumesh_load_bytes.
#ifndef NPUMESH_GRAPH_C_INTERFACE_OPTION_PAIRS_H_
#define NPUMESH_GRAPH_C_INTERFACE_OPTION_PAIRS_H_

#include <string>

#include "graph/session/session_options.h"
#include "npumesh/npumesh.h"
#include "runtime/base/env/env.h"

namespace npumesh {

struct WorldPairs {
  Env env;
  SystemOptions session;
  bool log_level_given = false;  // env.log_level is not that of the process
};

// The environment of this process with the pairs in front, and the defaults of sessions. Errors
// (kInvalidArgument) name key, value and what is accepted.
Result<WorldPairs> ReadWorldPairs(const npumesh_option* options, size_t count);

struct SessionPairs {
  SessionOptions session;
  bool allow_outside = false;
  bool stand_ins = false;  // for operators that npumesh lacks
};

// What the pairs of a session say over the defaults of its world, whose rank has `threads` threads.
// `groups` of the model's folder are there before those of the pairs. Errors as ReadWorldPairs.
Result<SessionPairs> ReadSessionPairs(const npumesh_option* options, size_t count,
                                      const GroupTable& groups, int threads);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_C_INTERFACE_OPTION_PAIRS_H_
