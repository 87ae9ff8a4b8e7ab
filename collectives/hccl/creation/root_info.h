// RootInfo: what stands in the blob that one rank makes and the program carries to the others.
// Layout 1:
//
//   ip text 64 | port u32 | NIC deployment u32 | identifier 128 | world rank u32 | layout u32 |
//   token 16 | zeros
//
// The first five fields are the vendor's; clients read the text at the begin. Integers are in the
// byte order of the machine: all ranks of a world run on one kind of machine.
#ifndef NPUMESH_COLLECTIVES_HCCL_CREATION_ROOT_INFO_H_
#define NPUMESH_COLLECTIVES_HCCL_CREATION_ROOT_INFO_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "collectives/hccl/comm/verdict.h"

namespace npumesh {

// Who does not know it is not of the group.
using RendezvousToken = std::array<std::byte, 16>;

struct RootInfo {
  std::string ip;  // IPv4 in dots
  uint16_t port = 0;
  std::string identifier;  // the default name of the communicator
  int32_t world_rank = 0;  // of the maker
  RendezvousToken token{};
};

HcclRootInfo Encode(const RootInfo& info);
// E_PARA for a blob that HcclGetRootInfo did not make.
Verdict Decode(const HcclRootInfo& blob, RootInfo* info);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CREATION_ROOT_INFO_H_
