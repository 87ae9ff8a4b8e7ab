#include "collectives/algorithms/point_to_point.h"

#include <cstring>
#include <span>

namespace npumesh {
namespace {

// What the two show each other.
struct Card {
  Request request;
  uint64_t offset = 0;  // of the sender's data in its HBM
  // Until when the sender surely waits, by the clock of the node; 0: it says nothing.
  int64_t waits_until_ns = 0;
};

// How much longer a sender waits for the word of a receiver that has begun in time.
constexpr auto kReceiversWord = std::chrono::seconds(1);

int64_t Nanoseconds(SteadyClock::time_point at) {
  return std::chrono::nanoseconds(at.time_since_epoch()).count();
}

enum Part : int { kFromSender = 1, kFromReceiver = 2, kData = 3 };

class Carrier {
 public:
  Carrier(const Half& half, const Post& post) : half_(half), post_(post) {}

  Status Show(const Card& card, Part part) const {
    return Send(std::as_bytes(std::span(&card, 1)), part);
  }
  Result<Card> See(Part part) const { return See(part, post_.deadline); }
  Result<Card> See(Part part, Deadline deadline) const {
    Card card;
    NPUMESH_RETURN_IF_ERROR(Receive(std::as_writable_bytes(std::span(&card, 1)), part, deadline));
    return card;
  }
  Status Send(std::span<const std::byte> bytes, Part part) const {
    return post_.world.transport().Exchange(half_.peer, bytes, -1, {}, post_.tag + part,
                                            post_.deadline);
  }
  Status Receive(std::span<std::byte> bytes, Part part) const {
    return Receive(bytes, part, post_.deadline);
  }
  Status Receive(std::span<std::byte> bytes, Part part, Deadline deadline) const {
    return post_.world.transport().Exchange(-1, {}, half_.peer, bytes, post_.tag + part, deadline);
  }
  bool near() const {
    return post_.world.node_of()[static_cast<size_t>(half_.peer)] == post_.world.node();
  }

 private:
  const Half& half_;
  const Post& post_;
};

Status CarrySend(const Half& half, const Post& post) {
  const Carrier carrier(half, post);
  Card mine{half.request};
  if (half.request.refused == 0 && half.bytes != 0) mine.offset = post.memory.OffsetOf(half.data);
  const bool ends = post.deadline.at != Deadline::Never().at;
  if (ends && carrier.near()) mine.waits_until_ns = Nanoseconds(post.deadline.at);
  NPUMESH_RETURN_IF_ERROR(carrier.Show(mine, kFromSender));
  Deadline patience = post.deadline;
  if (ends) patience.at += kReceiversWord;
  NPUMESH_ASSIGN_OR_RETURN(const Card theirs, carrier.See(kFromReceiver, patience));
  NPUMESH_RETURN_IF_ERROR(
      Compare({half.request, theirs.request}, {post.world.rank(), half.peer}, post.group));
  if (half.bytes == 0) return Status();
  if (!carrier.near()) return carrier.Send({half.data, half.bytes}, kData);
  // The receiver has begun; it takes as long as copying does.
  if (ends) patience = Deadline{SteadyClock::now() + post.limit, post.deadline.meanwhile};
  return carrier.See(kFromReceiver, patience).status();
}

Status CarryReceive(const Half& half, const Post& post) {
  const Carrier carrier(half, post);
  const Card mine{half.request};
  NPUMESH_ASSIGN_OR_RETURN(const Card theirs, carrier.See(kFromSender));
  // A sender that has given up may have other data in its buffer by now.
  if (theirs.waits_until_ns != 0 && Nanoseconds(SteadyClock::now()) >= theirs.waits_until_ns) {
    return Error(Code::kTimeout,
                 "rank {} has given up message {} to this rank: it had waited as long as it may "
                 "(HCCL_EXEC_TIMEOUT)",
                 half.peer, theirs.request.sequence);
  }
  NPUMESH_RETURN_IF_ERROR(carrier.Show(mine, kFromReceiver));
  NPUMESH_RETURN_IF_ERROR(
      Compare({theirs.request, half.request}, {half.peer, post.world.rank()}, post.group));
  if (half.bytes == 0) return Status();
  if (!carrier.near()) return carrier.Receive({half.data, half.bytes}, kData);
  std::memcpy(half.data, post.memory.PeerAddress(half.peer, theirs.offset), half.bytes);
  return carrier.Show(mine, kFromReceiver);
}

}  // namespace

Status CarryOut(const Half& half, const Post& post) {
  const Status status = half.sends ? CarrySend(half, post) : CarryReceive(half, post);
  if (status.ok() || status.code() == Code::kMismatch) return status;
  // A peer of this node that failed has said why.
  const Status known = post.world.board().CheckPeer(half.peer);
  return known.ok() ? status : known;
}

}  // namespace npumesh
