#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <span>

#include "collectives/contract/request.h"
#include "collectives/hccl/creation/rendezvous.h"
#include "collectives/hccl/creation/rendezvous_wire.h"
#include "collectives/hccl/creation/socket_address.h"
#include "runtime/base/files/shared_library.h"
#include "runtime/base/files/system_error.h"
#include "runtime/base/log.h"
#include "runtime/base/process/thread.h"
#include "runtime/base/process/thread_census.h"
#include "runtime/base/process/wait.h"
#include "runtime/base/text/rank_list.h"

namespace npumesh {
namespace {

Result<UniqueFd> Listen(const std::string& ip, uint16_t port) {
  NPUMESH_ASSIGN_OR_RETURN(const SocketAddress address, SocketAddress::Parse(ip, port));
  UniqueFd listener(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener) return SystemError("open", "a socket", errno);
  const std::string place = PlaceText(ip, port);
  if (bind(listener.get(), address.raw(), address.size()) != 0) {
    return SystemError("bind", place, errno);
  }
  if (listen(listener.get(), SOMAXCONN) != 0) return SystemError("listen at", place, errno);
  return listener;
}

// The book in which ranks sign: who has come, and what is wrong.
class Book {
 public:
  // kMismatch when `hello` does not fit those that came before.
  Status Sign(const Hello& hello) {
    if (world_ranks_.empty()) ranks_ = hello.ranks;
    if (hello.ranks != ranks_) {
      return Error(Code::kMismatch, "world rank {} says nRanks {}, others say {}", hello.world_rank,
                   hello.ranks, ranks_);
    }
    if (hello.rank >= ranks_) {
      return Error(Code::kMismatch, "world rank {} says it is rank {} of {}", hello.world_rank,
                   hello.rank, ranks_);
    }
    const auto [place, first] = world_ranks_.emplace(hello.rank, hello.world_rank);
    if (!first) {
      return Error(Code::kMismatch, "world ranks {} and {} both say they are rank {}",
                   place->second, hello.world_rank, hello.rank);
    }
    if (!devices_.insert(hello.world_rank).second) {
      return Error(Code::kMismatch, "world rank {} comes twice; every rank needs a separate device",
                   hello.world_rank);
    }
    return Status();
  }

  bool empty() const { return world_ranks_.empty(); }
  bool complete() const { return !empty() && world_ranks_.size() == ranks_; }

  std::vector<int32_t> Table() const {
    std::vector<int32_t> table;
    for (const auto& [rank, world_rank] : world_ranks_) table.push_back(world_rank);
    return table;
  }

  Status TimedOut(std::chrono::seconds patience) const {
    std::vector<int> missing;
    for (uint32_t rank = 0; rank < ranks_; ++rank) {
      if (!world_ranks_.contains(rank)) missing.push_back(static_cast<int>(rank));
    }
    return Error(Code::kTimeout,
                 "rank(s) {} of {} did not come within {} s (here are world rank(s) {}); look at "
                 "what they do, or raise HCCL_CONNECT_TIMEOUT",
                 RangeText(missing), ranks_, patience.count(),
                 RangeText(std::vector<int>(devices_.begin(), devices_.end())));
  }

 private:
  uint32_t ranks_ = 0;
  std::map<uint32_t, int32_t> world_ranks_;  // by rank
  std::set<int32_t> devices_;
};

// Strangers that may be here at once. A job with more ranks has them come one after the other.
constexpr size_t kMostStrangers = 128;
// A rank says who it is with its first packet. Who has not after this long may make room for
// others.
constexpr std::chrono::milliseconds kShortestStay{100};
// How long a server without a free descriptor or a visitor to send away leaves its door shut.
constexpr std::chrono::milliseconds kShutDoor{100};

struct Visitor {
  UniqueFd socket;
  SteadyClock::time_point came = SteadyClock::now();
  Hello hello;
  size_t received = 0;  // bytes of hello

  bool signed_in() const { return received == sizeof(Hello); }
};

// False when the visitor has ended or is not a rank.
bool Receive(Visitor& visitor, const RendezvousToken& token) {
  std::byte surplus;
  void* to = &surplus;
  size_t room = sizeof(surplus);
  if (!visitor.signed_in()) {
    to = reinterpret_cast<std::byte*>(&visitor.hello) + visitor.received;
    room = sizeof(Hello) - visitor.received;
  }
  const ssize_t got = recv(visitor.socket.get(), to, room, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0 || visitor.signed_in()) return false;
  visitor.received += static_cast<size_t>(got);
  if (!visitor.signed_in()) return true;
  // Both at once: how far a token is right must not show.
  return visitor.hello.layout == kRendezvousLayout && visitor.hello.token == token;
}

void Tell(const Visitor& visitor, Code code, std::span<const std::byte> body) {
  if (!visitor.signed_in()) return;
  const timeval patience{10, 0};
  setsockopt(visitor.socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  const Reply reply{kRendezvousLayout, static_cast<uint32_t>(code),
                    static_cast<uint32_t>(body.size())};
  // A visitor that does not listen any more has its own error.
  if (send(visitor.socket.get(), &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply)) return;
  for (size_t sent = 0; sent < body.size();) {
    const ssize_t took =
        send(visitor.socket.get(), body.data() + sent, body.size() - sent, MSG_NOSIGNAL);
    if (took <= 0) return;
    sent += static_cast<size_t>(took);
  }
}

// One rendezvous, from the first visitor to the answer.
class Reception {
 public:
  explicit Reception(const RootServer::Options& options) : options_(options) {}

  // Waits for something to happen. False when the server is to stop.
  bool Wait(const UniqueFd& listener, const UniqueFd& stop) {
    const bool open = HasRoom();
    // A negative descriptor is passed over.
    std::vector<pollfd> entries{{stop.get(), POLLIN, 0}, {open ? listener.get() : -1, POLLIN, 0}};
    for (const Visitor& visitor : visitors_) entries.push_back({visitor.socket.get(), POLLIN, 0});
    // Nothing is valid after a poll that failed; it is asked again.
    if (poll(entries.data(), entries.size(), open ? 100 : 10) < 0) return true;
    if (entries[0].revents != 0) return false;
    for (size_t i = visitors_.size(); i-- > 0;) {
      if (entries[i + 2].revents != 0) Hear(i);
    }
    std::erase_if(visitors_, [this](const Visitor& visitor) {
      return !visitor.signed_in() && AgeOf(visitor) > options_.hello_patience;
    });
    if (entries[1].revents != 0) Welcome(listener);
    return true;
  }

  // True when there is an answer, which every member has then been given.
  bool Answered() {
    if (verdict_.ok() && !book_.empty() && !book_.complete() && deadline_.expired()) {
      verdict_ = book_.TimedOut(options_.patience);
    }
    if (verdict_.ok() && !book_.complete()) return false;
    const std::vector<int32_t> table = book_.Table();
    const std::span<const std::byte> body =
        verdict_.ok() ? std::as_bytes(std::span(table))
                      : std::as_bytes(std::span(verdict_.message().substr(0, kMaxReplyBytes)));
    for (const Visitor& visitor : visitors_) Tell(visitor, verdict_.code(), body);
    return true;
  }

 private:
  static SteadyClock::duration AgeOf(const Visitor& visitor) {
    return SteadyClock::now() - visitor.came;
  }

  // Sends the stranger away that has been here longest. False: none was here long enough.
  bool MakeRoom() {
    const auto oldest = std::find_if(visitors_.begin(), visitors_.end(),
                                     [](const Visitor& visitor) { return !visitor.signed_in(); });
    if (oldest == visitors_.end() || AgeOf(*oldest) < kShortestStay) return false;
    visitors_.erase(oldest);
    return true;
  }

  bool HasRoom() {
    if (!door_shut_until_.expired()) return false;
    const auto strangers =
        std::count_if(visitors_.begin(), visitors_.end(),
                      [](const Visitor& visitor) { return !visitor.signed_in(); });
    return static_cast<size_t>(strangers) < kMostStrangers || MakeRoom();
  }

  // One visitor; what it has said is heard at once.
  void Welcome(const UniqueFd& listener) {
    UniqueFd socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket) {
      visitors_.emplace_back().socket = std::move(socket);
      Hear(visitors_.size() - 1);
      return;
    }
    const bool exhausted =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    // Other errors are of the connection, which is gone.
    if (exhausted && !MakeRoom()) door_shut_until_ = Deadline::After(kShutDoor);
  }

  void Hear(size_t index) {
    Visitor& visitor = visitors_[index];
    const bool known = visitor.signed_in();
    const bool stays = Receive(visitor, options_.token);
    if (stays && !known && visitor.signed_in()) {
      if (book_.empty()) deadline_ = Deadline::After(options_.patience);
      if (Status wrong = book_.Sign(visitor.hello); verdict_.ok()) verdict_ = wrong;
    }
    if (stays) return;
    if (known && verdict_.ok()) {
      verdict_ =
          Error(Code::kPeerLost, "rank {} of {} (world rank {}) has left while others waited",
                visitor.hello.rank, visitor.hello.ranks, visitor.hello.world_rank);
    }
    visitors_.erase(visitors_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  const RootServer::Options& options_;
  Book book_;
  std::vector<Visitor> visitors_;  // in the order in which they came
  Deadline deadline_;
  Deadline door_shut_until_ = Deadline::After(std::chrono::nanoseconds(0));
  Status verdict_;
};

}  // namespace

Result<std::unique_ptr<RootServer>> RootServer::Start(const Options& options) {
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (!stop) return SystemError("open", "an eventfd", errno);
  Status refused;
  for (const uint16_t port : options.ports) {
    Result<UniqueFd> listener = Listen(options.ip, port);
    if (!listener.ok()) {
      refused = listener.status();
      continue;
    }
    NPUMESH_ASSIGN_OR_RETURN(const uint16_t taken, BoundPort(listener->get()));
    std::unique_ptr<RootServer> server(
        new RootServer(*std::move(listener), std::move(stop), taken));
    NPUMESH_RETURN_IF_ERROR(
        StartThread("HcclGetRootInfo", &server->thread_, [self = server.get(), options] {
          const Status served = WithoutExceptions("HcclGetRootInfo", [&]() -> Status {
            const HelperThread helper;
            self->Serve(options);
            return Status();
          });
          if (!served.ok()) NPUMESH_ERROR("{}", served.message());
        }));
    return server;
  }
  return refused.WithContext("EI0019");
}

RootServer::~RootServer() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(stop_.get(), &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
}

void RootServer::Serve(const Options& options) {
  Reception reception(options);
  while (reception.Wait(listener_, stop_)) {
    if (!reception.Answered()) continue;
    done_.store(true);
    return;
  }
}

}  // namespace npumesh
