#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <span>

#include "collectives/hccl/creation/rendezvous.h"
#include "collectives/hccl/creation/rendezvous_wire.h"
#include "collectives/hccl/creation/socket_address.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/process/wait.h"

namespace npumesh {
namespace {

// The root answers after its own patience; this much later it is taken for lost.
constexpr std::chrono::seconds kRootSlack{5};

// A connection to the root, waiting under watch.
class RootConnection {
 public:
  RootConnection(const RootInfo& root, Deadline deadline, const std::function<Status()>& watch)
      : place_(PlaceText(root.ip, root.port)),
        world_rank_(root.world_rank),
        deadline_(deadline),
        watch_(watch) {}

  Status Open(const RootInfo& root) {
    NPUMESH_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(root.ip, root.port));
    socket_ = UniqueFd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_) return SystemError("open", "a socket", errno);
    const int rc = connect(socket_.get(), address.raw(), address.size());
    if (rc != 0 && errno != EINPROGRESS) return Lost(errno);
    NPUMESH_RETURN_IF_ERROR(WaitFor(POLLOUT));
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    return error == 0 ? Status() : Lost(error);
  }

  Status Send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      NPUMESH_RETURN_IF_ERROR(WaitFor(POLLOUT));
      const ssize_t sent = send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return Lost(errno);
      if (sent > 0) bytes = bytes.subspan(static_cast<size_t>(sent));
    }
    return Status();
  }

  Status Receive(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      NPUMESH_RETURN_IF_ERROR(WaitFor(POLLIN));
      const ssize_t got = recv(socket_.get(), bytes.data(), bytes.size(), 0);
      if (got == 0) return Lost(ECONNRESET);
      if (got < 0 && errno != EAGAIN && errno != EINTR) return Lost(errno);
      if (got > 0) bytes = bytes.subspan(static_cast<size_t>(got));
    }
    return Status();
  }

 private:
  Status WaitFor(short events) {
    for (;;) {
      pollfd entry{socket_.get(), events, 0};
      if (poll(&entry, 1, 50) > 0) return Status();
      NPUMESH_RETURN_IF_ERROR(watch_());
      if (deadline_.expired()) {
        return Error(Code::kTimeout,
                     "the rank that made the root info ({}, world rank {}) does "
                     "not answer",
                     place_, world_rank_);
      }
    }
  }

  Status Lost(int error_number) const {
    return Error(Code::kPeerLost,
                 "the rank that made the root info ({}, world rank {}) has ended, or the root info "
                 "was used before: {}",
                 place_, world_rank_, std::generic_category().message(error_number));
  }

  const std::string place_;
  const int32_t world_rank_;
  const Deadline deadline_;
  const std::function<Status()>& watch_;
  UniqueFd socket_;
};

}  // namespace

Result<std::vector<int>> Attend(const RootInfo& root, const Attendance& me,
                                std::chrono::seconds patience,
                                const std::function<Status()>& watch) {
  RootConnection connection(root, Deadline::After(patience + kRootSlack), watch);
  NPUMESH_RETURN_IF_ERROR(connection.Open(root));
  const Hello hello{kRendezvousLayout, root.token, me.ranks, me.rank, me.world_rank};
  NPUMESH_RETURN_IF_ERROR(connection.Send(std::as_bytes(std::span(&hello, 1))));
  Reply reply;
  NPUMESH_RETURN_IF_ERROR(connection.Receive(std::as_writable_bytes(std::span(&reply, 1))));
  if (reply.layout != kRendezvousLayout || reply.bytes > kMaxReplyBytes ||
      reply.code > static_cast<uint32_t>(Code::kInternal)) {
    return Error(Code::kCorrupt, "what listens at {}:{} is no npumesh of this version", root.ip,
                 root.port);
  }
  if (reply.code != 0) {
    std::string text(reply.bytes, '\0');
    NPUMESH_RETURN_IF_ERROR(connection.Receive(std::as_writable_bytes(std::span(text))));
    return Error(static_cast<Code>(reply.code), "{}", text);
  }
  std::vector<int> world_ranks(me.ranks);
  if (reply.bytes != world_ranks.size() * sizeof(int)) {
    return Error(Code::kCorrupt, "{}:{} names {} bytes of ranks, expected {}", root.ip, root.port,
                 reply.bytes, world_ranks.size() * sizeof(int));
  }
  NPUMESH_RETURN_IF_ERROR(connection.Receive(std::as_writable_bytes(std::span(world_ranks))));
  return world_ranks;
}

}  // namespace npumesh
