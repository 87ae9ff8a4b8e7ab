// Hosts that ranks are started on: from `--hosts h1:2,h2:2` or a host file.
#ifndef NPUMESH_LAUNCH_MPIRUN_HOST_LIST_H_
#define NPUMESH_LAUNCH_MPIRUN_HOST_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

struct Host {
  std::string name;
  int slots = 0;  // 0: not said
  bool operator==(const Host&) const = default;
};

// "h1:2,h2:2" or "h1,h2". Errors (kInvalidArgument) quote the part that is wrong: an empty name, a
// count that is not a number, a host named twice.
Result<std::vector<Host>> ParseHosts(std::string_view text);

// Lines "name", "name slots=2" or "name:2"; # starts a comment; other words of Open MPI's host
// files are ignored. `path` stands in messages.
Result<std::vector<Host>> ParseHostFile(std::string_view content, std::string_view path);

// How `ranks` spread over hosts.
struct Spread {
  std::vector<Host> hosts;  // those that are used; empty: this machine
  int per_host = 0;         // ranks of each of them: LOCAL_WORLD_SIZE
  bool oversubscribed = false;
};

// Fills hosts in order up to their slots; with more ranks than slots, or where slots are not said,
// all hosts get the same number. `local_slots` is what this machine offers when `hosts` is empty.
// Error (kInvalidArgument): the hosts would run different numbers of ranks, which LOCAL_WORLD_SIZE
// forbids; the message says how many each.
Result<Spread> SpreadRanks(const std::vector<Host>& hosts, int ranks, int local_slots);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_MPIRUN_HOST_LIST_H_
