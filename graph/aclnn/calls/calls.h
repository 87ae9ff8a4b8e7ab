// The two phases of aclnn functions.
//
// Thread-safety: all functions may be called from any thread; one executor by one thread at a time.
#ifndef NPUMESH_GRAPH_ACLNN_CALLS_CALLS_H_
#define NPUMESH_GRAPH_ACLNN_CALLS_CALLS_H_

#include <cstddef>
#include <cstdint>

#include "acl/acl_rt.h"
#include "aclnn/acl_meta.h"

namespace npumesh {

// A parameter as the client gives it; the table says which member counts.
union AclnnWord {
  AclnnWord(const void* pointer) : pointer(pointer) {}  // NOLINT: implicit, for generated code
  AclnnWord(int64_t integer) : integer(integer) {}      // NOLINT
  AclnnWord(double real) : real(real) {}                // NOLINT

  const void* pointer;
  int64_t integer;
  double real;
};

// Phase one of the function at `index` in the table: plans the call, or finds the plan of one like
// it. `words`: as many as it has parameters. Errors: 161001 for a null pointer, 161002 for what
// does not fit, 361001 when the device cannot, 561000 for others; the words are in
// aclGetRecentErrMsg.
aclnnStatus PrepareAclnn(const char* name, size_t index, const AclnnWord* words,
                         uint64_t* workspace_size, aclOpExecutor** executor) noexcept;

// Phase two: puts the planned call on the stream. The executor ends, unless it is repeatable.
// Errors: 161001 for a null pointer, 161002 for an unknown executor or one of another function and
// for a workspace that is too small, those of the stream as 361001.
aclnnStatus ExecuteAclnn(const char* name, void* workspace, uint64_t workspace_size,
                         aclOpExecutor* executor, aclrtStream stream) noexcept;

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACLNN_CALLS_CALLS_H_
