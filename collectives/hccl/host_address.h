// Which address of this host the ranks of other hosts are told (hccl-acl reference 3.1, "Host NIC
// selection order").
#ifndef NPUMESH_COLLECTIVES_HCCL_HOST_ADDRESS_H_
#define NPUMESH_COLLECTIVES_HCCL_HOST_ADDRESS_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

struct NetworkInterface {
  std::string name;
  std::string ip;  // IPv4 in dots
};

// The IPv4 interfaces of this host that are up.
Result<std::vector<NetworkInterface>> ListInterfaces();

// `if_ip` (HCCL_IF_IP) when not empty; else the first interface that `rule` (HCCL_SOCKET_IFNAME)
// admits: by name, docker and lo last. Rules: "p,q" prefixes, "=n,m" names, "^..." all but these.
// kNotFound with the interfaces there are when none fits.
Result<std::string> ChooseAddress(std::vector<NetworkInterface> interfaces, std::string_view if_ip,
                                  std::string_view rule);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_HOST_ADDRESS_H_
