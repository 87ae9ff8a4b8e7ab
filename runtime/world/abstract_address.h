// Unix sockets with abstract names, which vanish with their process and leave no file behind.
#ifndef NPUMESH_RUNTIME_WORLD_ABSTRACT_ADDRESS_H_
#define NPUMESH_RUNTIME_WORLD_ABSTRACT_ADDRESS_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string_view>

namespace npumesh {

// The address of an abstract name (a leading zero byte instead of a path), and its length.
// REQUIRES: the name has at most 107 bytes.
inline socklen_t AbstractAddress(std::string_view name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_ABSTRACT_ADDRESS_H_
