#include "runtime/world/socket_transport.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/base/files/system_error.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/descriptor_exchange.h"
#include "runtime/world/mapping.h"
#include "runtime/world/message_group.h"
#include "runtime/world/process_watch.h"

namespace npumesh {
namespace {

constexpr int kGroupTags = 1 << 14;  // above the tags of callers
constexpr int kFarewellTag = kGroupTags - 1;
constexpr std::chrono::milliseconds kLookAround{20};  // between two looks at deadlines and peers
constexpr std::chrono::milliseconds kRetrySend{1};    // while another thread is in the way

using Message = std::vector<std::byte>;

// In front of each message on a stream.
struct Header {
  int64_t tag = 0;
  uint64_t bytes = 0;
};

// A message on its way out.
struct Outgoing {
  Header header;
  std::span<const std::byte> body;
  size_t sent = 0;  // of header and body

  bool done() const { return sent == sizeof(Header) + body.size(); }
};

// A rank at the other end of a stream.
struct Peer {
  UniqueFd socket;
  std::optional<ProcessWatch> watch;
  // What goes out: one message after the other, whichever thread sends it.
  const Outgoing* sending = nullptr;
  bool torn = false;  // one was given up halfway: nothing can follow it
  // What comes in.
  Header header;
  size_t header_bytes = 0;
  Message body;
  size_t body_bytes = 0;
  std::map<int64_t, std::deque<Message>> mail;  // by tag
  bool closed = false;
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
    std::unique_lock lock(mutex_);
    if (send_to == rank_) {
      PeerAt(rank_).mail[tag].emplace_back(send.begin(), send.end());
      news_.notify_all();
      send_to = -1;
    }
    Outgoing out{{tag, send.size()}, send, 0};
    const Status passed = Pass(lock, send_to, out, recv_from, tag, deadline);
    if (!passed.ok()) {
      if (send_to >= 0) GiveUp(PeerAt(send_to), out);
      return passed;
    }
    return recv_from < 0 ? Status() : Receive(recv_from, tag, recv);
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

  // Until `out` is on its stream and a message of `tag` from `recv_from` is in its box; -1: none.
  Status Pass(std::unique_lock<std::mutex>& lock, int send_to, Outgoing& out, int recv_from,
              int tag, Deadline deadline) {
    for (;;) {
      if (send_to >= 0 && !out.done()) NPUMESH_RETURN_IF_ERROR(Send(send_to, out));
      if (!watched_) NPUMESH_RETURN_IF_ERROR(TakeIn());
      const bool sent = send_to < 0 || out.done();
      const bool received = recv_from < 0 || !PeerAt(recv_from).mail[tag].empty();
      if (sent && received) return Status();
      if (!received && PeerAt(recv_from).closed) return Lost(recv_from);
      if (deadline.expired()) {
        return Error(Code::kTimeout, "rank {} did not come in time",
                     received ? send_to : recv_from);
      }
      if (deadline.meanwhile != nullptr) {
        lock.unlock();
        const Status meanwhile = (*deadline.meanwhile)();
        lock.lock();
        NPUMESH_RETURN_IF_ERROR(meanwhile);
      }
      AwaitNews(lock, sent ? -1 : send_to, out);
    }
  }

  Status Receive(int from, int tag, std::span<std::byte> to) {
    std::deque<Message>& box = PeerAt(from).mail[tag];
    const Message message = std::move(box.front());
    box.pop_front();
    if (message.size() != to.size()) {
      return Error(Code::kMismatch, "rank {}: message of {} bytes from rank {}, expected {}", rank_,
                   message.size(), from, to.size());
    }
    std::copy(message.begin(), message.end(), to.begin());
    return Status();
  }

  // What the stream takes of `out`, unless another message is on its way there.
  Status Send(int to, Outgoing& out) {
    Peer& peer = PeerAt(to);
    if (peer.torn) {
      return Error(Code::kTimeout, "a message to rank {} was given up halfway before", to);
    }
    if (peer.sending != nullptr && peer.sending != &out) return Status();
    const Status pushed = Push(to, out);
    peer.sending = out.done() ? nullptr : &out;
    return pushed;
  }

  static void GiveUp(Peer& peer, const Outgoing& out) {
    if (peer.sending != &out) return;
    peer.sending = nullptr;
    peer.torn = out.sent > 0;
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
    news_.notify_all();  // of what is read here, before another thread gets the lock
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

  // Until a rank sends something, or the stream to rank `unsent` (-1: none) takes some of `out`; a
  // while at most. One thread watches the streams, and reads them after; the others wait for what
  // it reads.
  void AwaitNews(std::unique_lock<std::mutex>& lock, int unsent, const Outgoing& out) {
    const bool next = unsent >= 0 && PeerAt(unsent).sending == &out;
    const bool in_the_way = unsent >= 0 && (watched_ || !next);
    const std::chrono::milliseconds at_most = in_the_way ? kRetrySend : kLookAround;
    if (watched_) {
      news_.wait_for(lock, at_most);
      return;
    }
    std::vector<pollfd> entries;
    for (int r = 0; r < size(); ++r) {
      const Peer& peer = PeerAt(r);
      if (!peer.socket || peer.closed) continue;
      const short events = static_cast<short>(POLLIN | (next && r == unsent ? POLLOUT : 0));
      entries.push_back({peer.socket.get(), events, 0});
    }
    watched_ = true;
    lock.unlock();
    poll(entries.data(), entries.size(), static_cast<int>(at_most.count()));
    lock.lock();
    watched_ = false;
  }

  const std::chrono::seconds connect_timeout_;
  const int rank_;
  const std::vector<int> node_of_;
  std::optional<DescriptorExchange> exchange_;

  std::mutex mutex_;  // of all below
  std::condition_variable news_;
  bool watched_ = false;     // a thread waits at the streams
  std::vector<Peer> peers_;  // by rank; `watch` never changes once all have met
};

}  // namespace

Result<std::unique_ptr<Transport>> MakeSocketTransport(const Appointment& appointment,
                                                       std::chrono::seconds connect_timeout) {
  auto transport = std::make_unique<SocketTransport>(appointment, connect_timeout);
  NPUMESH_RETURN_IF_ERROR(transport->Enter(appointment));
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace npumesh
