// Making communicators: from a root info, a rank table, a parent, or all devices of the process.
//
// Thread-safety: all functions may be called from any thread; they block until the members have
// come.
#ifndef NPUMESH_COLLECTIVES_HCCL_CREATION_CREATION_H_
#define NPUMESH_COLLECTIVES_HCCL_CREATION_CREATION_H_

#include <memory>
#include <span>
#include <string>

#include "collectives/hccl/comm/comm.h"
#include "collectives/hccl/comm/verdict.h"
#include "collectives/hccl/creation/rank_table.h"

namespace npumesh {

// The device of the calling thread; E_RUNTIME when it has selected none.
Verdict SelectedDevice(AclDevice** device);

// Not collective: listens for the members.
Verdict MakeRootInfo(HcclRootInfo* blob);

// Collective over the `ranks` holders of the root info.
Verdict JoinByRootInfo(uint32_t ranks, const HcclRootInfo& blob, uint32_t rank,
                       const CommConfig& config, HcclComm* comm);

// Collective over the ranks of the table.
Verdict JoinByRankTable(const std::string& path, uint32_t rank, const CommConfig& config,
                        HcclComm* comm);

// Collective over the members, which are ranks of `parent`. REQUIRES: `rank` is an index of them.
Verdict JoinSubGroup(Comm& parent, std::span<const uint32_t> members, uint64_t id, uint32_t rank,
                     const CommConfig& config, HcclComm* comm);

// All devices are of this process. REQUIRES: at least one.
Verdict JoinAll(std::span<const int32_t> devices, HcclComm* comms);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CREATION_CREATION_H_
