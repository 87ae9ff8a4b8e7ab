#include "collectives/hccl/creation/socket_address.h"

#include <arpa/inet.h>

#include <cerrno>

#include "runtime/base/files/system_error.h"

namespace npumesh {

Result<SocketAddress> SocketAddress::Parse(const std::string& ip, uint16_t port) {
  SocketAddress result;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&result.address_);
  if (inet_pton(AF_INET, ip.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    return result;
  }
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&result.address_);
  if (inet_pton(AF_INET6, ip.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    return result;
  }
  return Error(Code::kInvalidArgument, "\"{}\" is no IPv4 or IPv6 address", ip);
}

socklen_t SocketAddress::size() const {
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

Result<uint16_t> BoundPort(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return SystemError("ask", "a socket for its port", errno);
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

std::string PlaceText(const std::string& ip, uint16_t port) {
  const bool v6 = ip.find(':') != std::string::npos;
  return v6 ? fmt::format("[{}]:{}", ip, port) : fmt::format("{}:{}", ip, port);
}

}  // namespace npumesh
