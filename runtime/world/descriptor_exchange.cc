#include "runtime/world/descriptor_exchange.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>

#include "runtime/world/abstract_address.h"

namespace npumesh {
namespace {

// Room for one descriptor and the sender's credentials.
union Control {
  char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))];
  cmsghdr align;
};

}  // namespace

Result<DescriptorExchange> DescriptorExchange::Open() {
  UniqueFd fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error(Code::kIo, "unix socket: {}", std::strerror(errno));
  std::random_device random;
  const std::string name = fmt::format("npumesh.{}.{:08x}{:08x}", getpid(), random(), random());
  sockaddr_un address;
  const socklen_t length = AbstractAddress(name, &address);
  const int on = 1;
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0) {
    return Error(Code::kIo, "unix socket \"{}\": {}", name, std::strerror(errno));
  }
  return DescriptorExchange(std::move(fd), name);
}

void DescriptorExchange::Introduce(std::vector<std::string> addresses, int me) {
  peers_ = std::move(addresses);
  processes_.assign(peers_.size(), 0);
  me_ = me;
}

Result<bool> DescriptorExchange::TrySend(int peer, const UniqueFd& fd) {
  Parcel parcel{round_, me_};
  iovec data{&parcel, sizeof(parcel)};
  sockaddr_un address;
  const socklen_t length = AbstractAddress(peers_[static_cast<size_t>(peer)], &address);
  char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_name = &address;
  message.msg_namelen = length;
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = fd.get();
  std::memcpy(CMSG_DATA(rights), &number, sizeof(number));
  if (sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0) return true;
  // A full queue, or too many descriptors on their way: the peer will make room.
  if (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS || errno == EINTR) return false;
  return Error(Code::kPeerLost, "handing memory to the process at \"{}\": {}",
               peers_[static_cast<size_t>(peer)], std::strerror(errno));
}

Result<bool> DescriptorExchange::TryReceive() {
  Parcel parcel{};
  iovec data{&parcel, sizeof(parcel)};
  Control control;
  msghdr message = {};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof(control.bytes);
  const ssize_t bytes = recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC);
  if (bytes < 0) {
    if (errno == EAGAIN || errno == EINTR) return false;
    return Error(Code::kIo, "receiving shared memory: {}", std::strerror(errno));
  }
  UniqueFd fd;
  ucred sender = {};
  bool same_user = false;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_RIGHTS) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part), sizeof(number));
      fd = UniqueFd(number);
    } else if (part->cmsg_type == SCM_CREDENTIALS) {
      std::memcpy(&sender, CMSG_DATA(part), sizeof(sender));
      same_user = sender.uid == geteuid();
    }
  }
  const bool known = parcel.from >= 0 && parcel.from < static_cast<int32_t>(peers_.size());
  if (bytes == sizeof(parcel) && fd && same_user && known) {
    arrived_[{parcel.round, parcel.from}] = std::move(fd);
    processes_[static_cast<size_t>(parcel.from)] = sender.pid;
  }
  return true;
}

}  // namespace npumesh
