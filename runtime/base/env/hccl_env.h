// HcclEnv: the environment variables of HCCL that its communicators read, besides the three in Env.
//
// The vendor's stack knows many more than a simulator can obey. All of them are checked, so that a
// value that stops a program on hardware stops it here; those that have an effect become fields.
//
// Thread-safety: an HcclEnv is immutable after construction.
#ifndef NPUMESH_RUNTIME_BASE_ENV_HCCL_ENV_H_
#define NPUMESH_RUNTIME_BASE_ENV_HCCL_ENV_H_

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/env/env_table.h"
#include "runtime/base/status.h"

namespace npumesh {

struct HcclEnv {
  // HCCL_IF_IP, HCCL_SOCKET_IFNAME: how ranks of other hosts reach this one; empty: unset.
  std::string if_ip;
  std::string socket_ifname;
  // HCCL_SOCKET_FAMILY: 4 or 6; IPv4 first when unset.
  std::optional<int> socket_family;
  // HCCL_HOST_SOCKET_PORT_RANGE or HCCL_IF_BASE_PORT: ports to listen at; empty: any.
  std::vector<uint16_t> ports;
  // HCCL_DETERMINISTIC: 0 false, 1 true, 2 strict.
  std::optional<int> deterministic;
  // HCCL_ENTRY_LOG_ENABLE.
  bool entry_log = false;

  // Errors: kInvalidArgument in the words of EI0001, with variable, text and what is accepted.
  static Result<HcclEnv> FromProcess();
  // Reads through `get`, which returns null for an unset variable. For tests.
  static Result<HcclEnv> From(const EnvGetter& get);
};

// Their rows of the manual.
std::span<const EnvVariable> HcclEnvTable();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_ENV_HCCL_ENV_H_
