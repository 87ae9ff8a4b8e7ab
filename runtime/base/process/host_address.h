// Which address of this host the ranks of other hosts are told: HCCL's order of host NICs.
//
// Thread-safety: the functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_BASE_PROCESS_HOST_ADDRESS_H_
#define NPUMESH_RUNTIME_BASE_PROCESS_HOST_ADDRESS_H_

#include <string>
#include <vector>

#include "runtime/base/env/hccl_env.h"
#include "runtime/base/status.h"

namespace npumesh {

struct NetworkInterface {
  std::string name;
  std::string ip;  // IPv4 in dots, or IPv6
};

// The addresses of this host's interfaces that are up. IPv6 addresses of one link only are left
// out: on another host they mean nothing.
Result<std::vector<NetworkInterface>> ListInterfaces();

// HCCL_IF_IP when it is set; else the first interface that HCCL_SOCKET_IFNAME admits: by name,
// docker and lo last. Rules: "p,q" prefixes, "=n,m" names, "^..." all but these. An address of the
// family of HCCL_SOCKET_FAMILY; without it IPv6 only where there is no IPv4. kNotFound with the
// interfaces there are when none fits.
Result<std::string> ChooseAddress(std::vector<NetworkInterface> interfaces, const HcclEnv& env);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_PROCESS_HOST_ADDRESS_H_
