// Point to point: one message between two members of a group; the others take no part.
//
// Sender and receiver first show each other what they were asked for; when count or dtype differ,
// both fail with the same text. In a node the receiver then copies straight from the sender's HBM;
// between nodes the data travels as a message. Both return when the receiver has the data.
#ifndef NPUMESH_COLLECTIVES_ALGORITHMS_POINT_TO_POINT_H_
#define NPUMESH_COLLECTIVES_ALGORITHMS_POINT_TO_POINT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collectives/contract/request.h"
#include "runtime/base/process/wait.h"
#include "runtime/device/device_memory.h"
#include "runtime/world/world.h"

namespace npumesh {

// Tags a group needs: one for collectives, the rest for the parts of a message.
inline constexpr int kTagsOfGroup = 4;

// One half of a message, as this rank was asked for it.
struct Half {
  bool sends = false;
  int peer = 0;               // world rank
  Request request;            // kSendRecv: dtype, count, number in this direction, refusal
  std::byte* data = nullptr;  // in this rank's HBM
  uint64_t bytes = 0;
};

struct Post {
  World& world;
  DeviceMemory& memory;
  std::string_view group;
  int tag = 0;  // first of kTagsOfGroup
  Deadline deadline;
  std::chrono::seconds limit;  // from which the deadline was made; kNoTimeout: no limit
};

// Collective over the two ranks. Errors: kMismatch (on both, same text), kPeerLost, kTimeout.
// Thread-safety: halves with different peer or direction may be carried out at the same time.
Status CarryOut(const Half& half, const Post& post);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_ALGORITHMS_POINT_TO_POINT_H_
