// How ranks that MPI has not started find each other: torchrun, and scripts that start processes
// themselves, set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. The ranks of one host meet at
// sockets with abstract names made of these and of the user; nothing is left behind.
#ifndef NPUMESH_RUNTIME_WORLD_MEETING_H_
#define NPUMESH_RUNTIME_WORLD_MEETING_H_

#include <optional>
#include <string>
#include <vector>

#include "runtime/base/env/env.h"
#include "runtime/base/files/unique_fd.h"
#include "runtime/base/process/wait.h"
#include "runtime/base/status.h"

namespace npumesh {

struct Appointment {
  int rank = 0;
  int size = 1;
  std::string name;  // the same for all ranks of the meeting, and for no other on this host
};

// Nothing when a variable is missing or WORLD_SIZE is 1. An error when the ranks are on several
// hosts, RANK is not below WORLD_SIZE, or MASTER_PORT is no port. `get` reads the variables that
// Env does not have and returns null for an unset one.
Result<std::optional<Appointment>> AppointmentOf(const Env& env, const EnvGetter& get);
// By the environment of this process.
Result<std::optional<Appointment>> AppointmentOf(const Env& env);

// A peer that has come.
struct Met {
  UniqueFd socket;      // a connected stream, non-blocking; empty for this rank itself
  int process = 0;      // as this process sees it; 0 for this rank itself
  std::string address;  // its DescriptorExchange::address()
};

// Collective over the ranks of the appointment: one stream between any two of them, by rank. Ranks
// that do not come until `deadline` are named: kTimeout.
Result<std::vector<Met>> Meet(const Appointment& appointment, const std::string& exchange_address,
                              Deadline deadline);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_MEETING_H_
