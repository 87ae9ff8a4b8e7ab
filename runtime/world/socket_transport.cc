#include "runtime/world/socket_transport.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "runtime/base/rank_list.h"
#include "runtime/base/system_error.h"
#include "runtime/world/descriptor_exchange.h"
#include "runtime/world/mapping.h"
#include "runtime/world/message_group.h"
#include "runtime/world/process_watch.h"

namespace npumesh {
namespace {

constexpr int kGroupTags = 1 << 14;  // above the tags of callers
constexpr int kFarewellTag = kGroupTags - 1;
constexpr int kLookAroundMs = 20;  // between two looks at deadlines and peers

using Message = std::vector<std::byte>;

// In front of each message on a stream.
struct Header {
  int64_t tag = 0;
  uint64_t bytes = 0;
};

// A rank at the other end of a stream.
struct Peer {
  UniqueFd socket;
  std::optional<ProcessWatch> watch;
  // What comes in.
  Header header;
  size_t header_bytes = 0;
  Message body;
  size_t body_bytes = 0;
  std::map<int64_t, std::deque<Message>> mail;  // by tag
  bool closed = false;
};

// A message on its way out.
struct Outgoing {
  Header header;
  std::span<const std::byte> body;
  size_t sent = 0;  // of header and body

  bool done() const { return sent == sizeof(Header) + body.size(); }
};

class SocketTransport final : public Transport {
 public:
  SocketTransport(const Appointment& appointment, std::chrono::seconds connect_timeout)
      : connect_timeout_(connect_timeout),
        rank_(appointment.rank),
        node_of_(static_cast<size_t>(appointment.size), 0),
        peers_(static_cast<size_t>(appointment.size)) {}

  Status Enter(const Appointment& appointment) {
    NPUMESH_ASSIGN_OR_RETURN(DescriptorExchange opened, DescriptorExchange::Open());
    exchange_.emplace(std::move(opened));
    NPUMESH_ASSIGN_OR_RETURN(std::vector<Met> met, Meet(appointment, exchange_->address(),
                                                        Deadline::After(connect_timeout_)));
    std::vector<std::string> addresses;
    for (size_t r = 0; r < met.size(); ++r) {
      addresses.push_back(met[r].address);
      if (met[r].process != 0) peers_[r].watch.emplace(met[r].process);
      peers_[r].socket = std::move(met[r].socket);
    }
    exchange_->Introduce(std::move(addresses), rank_);
    return Status();
  }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  const std::vector<int>& node_of() const override { return node_of_; }

  Result<std::unique_ptr<NodeSegment>> Share(std::string_view label, uint64_t bytes,
                                             NodeSegment::Reach reach) override {
    bytes = RoundUpToPages(bytes);
    NPUMESH_ASSIGN_OR_RETURN(UniqueFd fd, MakeSharedMemory(label, bytes));
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<UniqueFd> fds,
                             exchange_->AllGather(fd, Deadline::After(connect_timeout_),
                                                  [this](int peer) { return CheckAlive(peer); }));
    std::vector<std::shared_ptr<Mapping>> parts(peers_.size());
    for (size_t r = 0; r < parts.size(); ++r) {
      const bool mine = static_cast<int>(r) == rank_;
      NPUMESH_ASSIGN_OR_RETURN(parts[r], Mapping::Map(mine ? fd : fds[r], bytes));
    }
    if (reach == NodeSegment::Reach::kRanks) fd.Reset();
    return MakeNodeSegment(std::move(parts), bytes, std::move(fd));
  }

  Status Exchange(int send_to, std::span<const std::byte> send, int recv_from,
                  std::span<std::byte> recv, int tag, Deadline deadline) override {
    Outgoing out{{tag, send.size()}, send, 0};
    if (send_to == rank_) {
      PeerAt(rank_).mail[tag].emplace_back(send.begin(), send.end());
      out.sent = sizeof(Header) + send.size();
    }
    const bool sends = send_to >= 0 && send_to != rank_;
    std::deque<Message>* const box = recv_from < 0 ? nullptr : &PeerAt(recv_from).mail[tag];
    for (;;) {
      if (sends && !out.done()) NPUMESH_RETURN_IF_ERROR(Push(send_to, out));
      NPUMESH_RETURN_IF_ERROR(TakeIn());
      const bool sent = !sends || out.done();
      const bool received = box == nullptr || !box->empty();
      if (sent && received) break;
      if (!received && PeerAt(recv_from).closed) return Lost(recv_from);
      if (deadline.expired()) {
        return Error(Code::kTimeout, "rank {} did not come in time",
                     received ? send_to : recv_from);
      }
      if (deadline.meanwhile != nullptr) NPUMESH_RETURN_IF_ERROR((*deadline.meanwhile)());
      AwaitNews(sent ? -1 : send_to);
    }
    if (box == nullptr) return Status();
    const Message message = std::move(box->front());
    box->pop_front();
    if (message.size() != recv.size()) {
      return Error(Code::kMismatch, "rank {}: message of {} bytes from rank {}, expected {}", rank_,
                   message.size(), recv_from, recv.size());
    }
    std::copy(message.begin(), message.end(), recv.begin());
    return Status();
  }

  Result<std::unique_ptr<PlainGroup>> Group(const std::vector<int>& world_ranks, uint32_t key,
                                            Deadline) override {
    constexpr uint32_t kMostTags = 1U << 30;
    return MakeMessageGroup(*this, world_ranks, kGroupTags + static_cast<int>(key % kMostTags));
  }

  PeerState Probe(int world_rank) const override {
    const Peer& peer = peers_[static_cast<size_t>(world_rank)];
    return peer.watch && peer.watch->gone() ? PeerState::kGone : PeerState::kAlive;
  }

  Status Shutdown(Deadline deadline) override {
    return MakeMessageGroup(*this, AllRanks(size()), kFarewellTag)->Barrier(deadline);
  }

 private:
  Peer& PeerAt(int rank) { return peers_[static_cast<size_t>(rank)]; }

  static Status Lost(int rank) { return Error(Code::kPeerLost, "rank {} has ended", rank); }

  Status CheckAlive(int rank) const {
    return Probe(rank) == PeerState::kGone ? Lost(rank) : Status();
  }

  // Writes what the stream takes.
  Status Push(int to, Outgoing& out) {
    while (!out.done()) {
      const bool head = out.sent < sizeof(Header);
      const size_t at = head ? out.sent : out.sent - sizeof(Header);
      const auto* from = head ? reinterpret_cast<const std::byte*>(&out.header) : out.body.data();
      const size_t left = (head ? sizeof(Header) : out.body.size()) - at;
      const ssize_t sent = ::send(PeerAt(to).socket.get(), from + at, left, MSG_NOSIGNAL);
      if (sent >= 0) {
        out.sent += static_cast<size_t>(sent);
        continue;
      }
      if (errno == EAGAIN || errno == EINTR) return Status();
      if (errno == EPIPE || errno == ECONNRESET) return Lost(to);
      return SystemError("write to", fmt::format("rank {}", to), errno);
    }
    return Status();
  }

  // Reads what has come from all ranks, so that none waits with a full stream.
  Status TakeIn() {
    for (int r = 0; r < size(); ++r) {
      Peer& peer = PeerAt(r);
      while (peer.socket && !peer.closed) {
        NPUMESH_ASSIGN_OR_RETURN(const bool more, TakeSome(r, peer));
        if (!more) break;
      }
    }
    return Status();
  }

  // False: nothing is there at the moment, or any more.
  static Result<bool> TakeSome(int rank, Peer& peer) {
    const bool head = peer.header_bytes < sizeof(Header);
    std::byte* const to = head ? reinterpret_cast<std::byte*>(&peer.header) + peer.header_bytes
                               : peer.body.data() + peer.body_bytes;
    const size_t room =
        head ? sizeof(Header) - peer.header_bytes : peer.body.size() - peer.body_bytes;
    if (room > 0) {
      const ssize_t got = ::recv(peer.socket.get(), to, room, 0);
      if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
      if (got < 0 && errno != ECONNRESET) {
        return SystemError("read from", fmt::format("rank {}", rank), errno);
      }
      if (got <= 0) {
        peer.closed = true;
        return false;
      }
      (head ? peer.header_bytes : peer.body_bytes) += static_cast<size_t>(got);
    }
    if (head && peer.header_bytes == sizeof(Header)) peer.body.resize(peer.header.bytes);
    if (peer.header_bytes == sizeof(Header) && peer.body_bytes == peer.body.size()) {
      peer.mail[peer.header.tag].push_back(std::move(peer.body));
      peer.body = {};
      peer.header_bytes = peer.body_bytes = 0;
    }
    return true;
  }

  // Until a rank sends something, or `writable` takes something; a while at most.
  void AwaitNews(int writable) {
    std::vector<pollfd> entries;
    for (int r = 0; r < size(); ++r) {
      const Peer& peer = PeerAt(r);
      if (!peer.socket || peer.closed) continue;
      const short events = static_cast<short>(POLLIN | (r == writable ? POLLOUT : 0));
      entries.push_back({peer.socket.get(), events, 0});
    }
    poll(entries.data(), entries.size(), kLookAroundMs);
  }

  const std::chrono::seconds connect_timeout_;
  const int rank_;
  const std::vector<int> node_of_;
  std::optional<DescriptorExchange> exchange_;
  std::vector<Peer> peers_;  // by rank
};

}  // namespace

Result<std::unique_ptr<Transport>> MakeSocketTransport(const Appointment& appointment,
                                                       std::chrono::seconds connect_timeout) {
  auto transport = std::make_unique<SocketTransport>(appointment, connect_timeout);
  NPUMESH_RETURN_IF_ERROR(transport->Enter(appointment));
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace npumesh
