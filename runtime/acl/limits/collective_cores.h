// Collectives of captured graphs on streams with limits of vector cores: each keeps its cores until
// the other ranks come, so that two of them may stop a card for good (rule collective-cores).
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_LIMITS_COLLECTIVE_CORES_H_
#define NPUMESH_RUNTIME_ACL_LIMITS_COLLECTIVE_CORES_H_

#include <memory>
#include <string>
#include <string_view>

#include "acl/acl_rt.h"
#include "runtime/acl/limits/card_limits.h"
#include "runtime/acl/run_models/run_models.h"

namespace npumesh {

// What a recording keeps of a collective that is about to be enqueued; null unless the stream has a
// limit (aclrtSetStreamResLimit). `call`: "HcclAllReduce".
std::shared_ptr<const AclTaskNote> NoteOfCollective(std::string_view call, aclrtStream stream);

// Asks the card about all pairs of a captured recording, which has ended: those on different
// streams of which neither waits for the other. ACL_ERROR_RT_VECTOR_CORE_TIMEOUT as
// CardLimits::Find has it.
aclError CheckCollectiveCores(std::string_view function, const Recording& recording,
                              CardLimits& card);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_LIMITS_COLLECTIVE_CORES_H_
