// Names that the vendor's files give to operators, collectives and groups.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_RUNTIME_MSPROF_VENDOR_NAMES_H_
#define NPUMESH_RUNTIME_MSPROF_VENDOR_NAMES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/profile/profile_file.h"

namespace npumesh {

// What a call of a communicator is, from the name or type that the profile has for it
// ("HcomAllReduce", "HcclSend"): "allReduce", "allGather", "reduceScatter", "broadcast", "reduce",
// "scatter", "alltoall", "alltoallv", "alltoallvc", "send", "receive", "batchsendrecv", and
// "invalid" for others (a barrier).
std::string_view CallKind(std::string_view name);
// Sends and receives, which the vendor's readers count apart from collectives.
bool IsMessageKind(std::string_view kind);

// Two groups of one job may have one name on different ranks, so the vendor's readers, which put
// together ranks whose files name one group, get "<name>_<number>".
std::string GroupId(const ProfiledGroup& group);
// The number by which the files name a group. The readers compute it from the id in the same way:
// two polynomials over its bytes, with 29 and 131, modulo 2^32, as the halves of 64 bits.
uint64_t GroupHash(std::string_view id);

// "hcom_allReduce__428_7_1": kind, last three digits of the group's hash, number of the call in the
// group, how often the rank has used this number for this kind.
std::string CallName(std::string_view kind, uint64_t group_hash, uint64_t number,
                     uint64_t occurrence);

// The unit of an Ascend core that such an operator would run on: "AI_CORE" for what multiplies
// matrices, "AI_VECTOR_CORE" for the others. A model: npumesh computes on the CPU.
std::string_view CoreOf(std::string_view operator_type);

// The level of a call of the C interface in the vendor's stack: "acl", "communication" or
// "runtime".
std::string_view ApiLevel(std::string_view name);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_MSPROF_VENDOR_NAMES_H_
