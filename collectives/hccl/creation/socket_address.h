// An IP address and a port, as sockets want it.
//
// Thread-safety: immutable.
#ifndef NPUMESH_COLLECTIVES_HCCL_CREATION_SOCKET_ADDRESS_H_
#define NPUMESH_COLLECTIVES_HCCL_CREATION_SOCKET_ADDRESS_H_

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "runtime/base/status.h"

namespace npumesh {

class SocketAddress {
 public:
  // `ip`: IPv4 in dots, or IPv6 without brackets and scope. kInvalidArgument for anything else.
  static Result<SocketAddress> Parse(const std::string& ip, uint16_t port);

  int family() const { return address_.ss_family; }
  const sockaddr* raw() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const;

 private:
  SocketAddress() = default;
  sockaddr_storage address_{};
};

// Of a socket that is bound. Errors: kIo.
Result<uint16_t> BoundPort(int socket);

// "10.0.0.1:80", "[fd00::1]:80".
std::string PlaceText(const std::string& ip, uint16_t port);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CREATION_SOCKET_ADDRESS_H_
