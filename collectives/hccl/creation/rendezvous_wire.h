// What travels between a RootServer and the ranks that attend. Layout 1, byte order of the machine.
#ifndef NPUMESH_COLLECTIVES_HCCL_CREATION_RENDEZVOUS_WIRE_H_
#define NPUMESH_COLLECTIVES_HCCL_CREATION_RENDEZVOUS_WIRE_H_

#include <cstdint>

#include "collectives/hccl/creation/rendezvous.h"

namespace npumesh {

inline constexpr uint32_t kRendezvousLayout = 0x4e50'0101;

// Rank to root.
struct Hello {
  uint32_t layout = kRendezvousLayout;
  RendezvousToken token{};
  uint32_t ranks = 0;
  uint32_t rank = 0;
  int32_t world_rank = 0;
};
static_assert(sizeof(Hello) == 32);

// Root to rank; `bytes` follow: one int32_t for each rank, or the text of the error.
struct Reply {
  uint32_t layout = kRendezvousLayout;
  uint32_t code = 0;  // Code
  uint32_t bytes = 0;
};
static_assert(sizeof(Reply) == 12);

// 32 Ki ranks are the documented most.
inline constexpr uint32_t kMaxReplyBytes = uint32_t{1} << 20;

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CREATION_RENDEZVOUS_WIRE_H_
