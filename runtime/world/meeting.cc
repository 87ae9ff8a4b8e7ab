#include "runtime/world/meeting.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "runtime/base/files/system_error.h"
#include "runtime/base/text/parse.h"
#include "runtime/base/text/rank_list.h"
#include "runtime/world/abstract_address.h"
#include "runtime/world/descriptor_exchange.h"

namespace npumesh {
namespace {

constexpr uint32_t kMagic = 0x4e504d31;  // "NPM1"
constexpr auto kBetweenCalls = std::chrono::milliseconds(10);

// The first words on a stream, in both directions.
struct Hello {
  uint32_t magic = kMagic;
  int32_t rank = 0;
  int32_t size = 0;
  std::array<char, DescriptorExchange::kAddressBytes> address{};
};

// The door of a rank: an abstract name, which other network namespaces do not see.
socklen_t DoorOf(const Appointment& appointment, int rank, sockaddr_un* address) {
  return AbstractAddress(fmt::format("{}.{}", appointment.name, rank), address);
}

Result<UniqueFd> NewSocket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return SystemError("open", "a unix socket", errno);
  return fd;
}

Result<UniqueFd> OpenDoor(const Appointment& appointment) {
  NPUMESH_ASSIGN_OR_RETURN(UniqueFd door, NewSocket());
  sockaddr_un address;
  const socklen_t length = DoorOf(appointment, appointment.rank, &address);
  if (bind(door.get(), reinterpret_cast<sockaddr*>(&address), length) == 0 &&
      listen(door.get(), SOMAXCONN) == 0) {
    return door;
  }
  if (errno != EADDRINUSE) return SystemError("listen at", appointment.name, errno);
  return Error(Code::kInvalidArgument,
               "another process of this host has the same MASTER_ADDR and MASTER_PORT and is rank "
               "{} already; give this job another MASTER_PORT",
               appointment.rank);
}

// Who is at the other end; kernels vouch for it.
Result<ucred> PeerOf(const UniqueFd& socket) {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return SystemError("ask for the peer of", "a unix socket", errno);
  }
  return peer;
}

// One stream on its way to being met.
struct Guest {
  UniqueFd socket;
  Hello hello;
  size_t received = 0;

  bool complete() const { return received == sizeof(Hello); }
};

class Reception {
 public:
  Reception(const Appointment& appointment, const std::string& exchange_address)
      : appointment_(appointment),
        called_(static_cast<size_t>(appointment.rank)),
        met_(static_cast<size_t>(appointment.size)) {
    mine_.rank = appointment.rank;
    mine_.size = appointment.size;
    std::copy_n(exchange_address.c_str(),
                std::min(exchange_address.size(), mine_.address.size() - 1), mine_.address.data());
    met_[static_cast<size_t>(appointment.rank)].address = exchange_address;
  }

  Result<std::vector<Met>> Run(Deadline deadline) {
    NPUMESH_ASSIGN_OR_RETURN(const UniqueFd door, OpenDoor(appointment_));
    while (!Missing().empty()) {
      if (deadline.expired()) return TimedOut();
      NPUMESH_RETURN_IF_ERROR(CallLowerRanks());
      NPUMESH_RETURN_IF_ERROR(LetIn(door));
      NPUMESH_RETURN_IF_ERROR(Listen());
      if (!Missing().empty()) std::this_thread::sleep_for(kBetweenCalls);
    }
    return std::move(met_);
  }

 private:
  std::vector<int> Missing() const {
    std::vector<int> missing;
    for (int rank = 0; rank < appointment_.size; ++rank) {
      if (rank != appointment_.rank && !met_[static_cast<size_t>(rank)].socket) {
        missing.push_back(rank);
      }
    }
    return missing;
  }

  Status TimedOut() const {
    return Error(Code::kTimeout,
                 "rank(s) {} of {} did not come (WORLD_SIZE is {}); ranks that MPI has not started "
                 "meet on one host by MASTER_ADDR and MASTER_PORT. Look at what they do; a process "
                 "that shall run alone needs RANK unset",
                 RangeText(Missing()), appointment_.size, appointment_.size);
  }

  // Calls those that are not called yet; a door that is not open is tried again.
  Status CallLowerRanks() {
    for (int rank = 0; rank < appointment_.rank; ++rank) {
      if (called_[static_cast<size_t>(rank)]) continue;
      NPUMESH_ASSIGN_OR_RETURN(UniqueFd socket, NewSocket());
      sockaddr_un address;
      const socklen_t length = DoorOf(appointment_, rank, &address);
      if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
        if (errno == ECONNREFUSED || errno == EAGAIN || errno == EINTR) continue;
        return SystemError("call", fmt::format("rank {}", rank), errno);
      }
      NPUMESH_RETURN_IF_ERROR(Greet(std::move(socket)));
      called_[static_cast<size_t>(rank)] = true;
    }
    return Status();
  }

  Status LetIn(const UniqueFd& door) {
    for (;;) {
      UniqueFd socket(accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {
        if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return Status();
        return SystemError("let in", "a rank", errno);
      }
      NPUMESH_RETURN_IF_ERROR(Greet(std::move(socket)));
    }
  }

  // Processes of other users are sent away.
  Status Greet(UniqueFd socket) {
    NPUMESH_ASSIGN_OR_RETURN(const ucred peer, PeerOf(socket));
    if (peer.uid != geteuid()) return Status();
    // An empty stream has room for it.
    if (send(socket.get(), &mine_, sizeof(mine_), MSG_NOSIGNAL) != sizeof(mine_)) return Status();
    guests_.push_back({std::move(socket), {}, 0});
    return Status();
  }

  Status Listen() {
    for (Guest& guest : guests_) {
      while (!guest.complete()) {
        const ssize_t got =
            recv(guest.socket.get(), reinterpret_cast<char*>(&guest.hello) + guest.received,
                 sizeof(Hello) - guest.received, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) break;
        if (got <= 0) {
          return Error(Code::kPeerLost, "a rank of this job ended while the ranks met");
        }
        guest.received += static_cast<size_t>(got);
      }
      if (guest.complete()) NPUMESH_RETURN_IF_ERROR(Seat(guest));
    }
    guests_.erase(std::remove_if(guests_.begin(), guests_.end(),
                                 [](const Guest& guest) { return !guest.socket; }),
                  guests_.end());
    return Status();
  }

  Status Seat(Guest& guest) {
    const Hello& hello = guest.hello;
    if (hello.magic != kMagic || hello.size != appointment_.size) {
      return Error(Code::kMismatch, "WORLD_SIZE is {} here and {} in another rank",
                   appointment_.size, hello.size);
    }
    const bool known = hello.rank >= 0 && hello.rank < appointment_.size;
    if (!known || met_[static_cast<size_t>(hello.rank)].process != 0) {
      return Error(Code::kMismatch, "two processes say that they are rank {} of {}", hello.rank,
                   appointment_.size);
    }
    NPUMESH_ASSIGN_OR_RETURN(const ucred peer, PeerOf(guest.socket));
    Met& met = met_[static_cast<size_t>(hello.rank)];
    met.process = peer.pid;
    met.address =
        std::string(hello.address.data(), strnlen(hello.address.data(), hello.address.size()));
    met.socket = std::move(guest.socket);
    return Status();
  }

  const Appointment& appointment_;
  Hello mine_;
  std::vector<bool> called_;  // by lower rank
  std::vector<Guest> guests_;
  std::vector<Met> met_;  // by rank
};

}  // namespace

Result<std::optional<Appointment>> AppointmentOf(const Env& env, const EnvGetter& get) {
  const char* const address = get("MASTER_ADDR");
  const char* const port = get("MASTER_PORT");
  if (!env.rank || !env.world_size || *env.world_size == 1 || address == nullptr ||
      port == nullptr) {
    return std::optional<Appointment>();
  }
  if (*env.rank >= *env.world_size) {
    return Error(Code::kInvalidArgument, "RANK is {}, WORLD_SIZE {}", *env.rank, *env.world_size);
  }
  if (env.local_world_size && *env.local_world_size != *env.world_size) {
    return Error(Code::kInvalidArgument,
                 "LOCAL_WORLD_SIZE is {} of WORLD_SIZE {}: ranks of several hosts need MPI; start "
                 "them by mpirun or npumesh launch",
                 *env.local_world_size, *env.world_size);
  }
  constexpr int64_t kHighestPort = 65535;
  NPUMESH_ASSIGN_OR_RETURN(const int64_t number, ParseInt(port, 0, kHighestPort, "MASTER_PORT"));
  const char* const restart = get("TORCHELASTIC_RESTART_COUNT");
  // Names of sockets have at most 107 bytes.
  constexpr size_t kLongest = 40;
  Appointment appointment{*env.rank, *env.world_size, {}};
  appointment.name = fmt::format("npumesh.{}.{}.{}.{}", geteuid(), number,
                                 std::string_view(restart == nullptr ? "0" : restart).substr(0, 10),
                                 std::string_view(address).substr(0, kLongest));
  return std::optional<Appointment>(std::move(appointment));
}

Result<std::optional<Appointment>> AppointmentOf(const Env& env) {
  return AppointmentOf(env, [](const char* name) { return secure_getenv(name); });
}

Result<std::vector<Met>> Meet(const Appointment& appointment, const std::string& exchange_address,
                              Deadline deadline) {
  return Reception(appointment, exchange_address).Run(deadline);
}

}  // namespace npumesh
