// RankTable: the cluster description of HcclCommInitClusterInfo.
//
// Reads versions 1.0, 1.1, 1.2 (super pods), 2.0 and the old template without a version. The text
// comes from outside: everything is checked, nothing is believed.
#ifndef NPUMESH_COLLECTIVES_HCCL_CREATION_RANK_TABLE_H_
#define NPUMESH_COLLECTIVES_HCCL_CREATION_RANK_TABLE_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/hccl/comm/verdict.h"

namespace npumesh {

struct RankTable {
  struct Rank {
    uint32_t rank = 0;
    int32_t device = 0;  // physical id
    std::string server;
    std::string device_ip;  // may be empty
  };

  std::string version;  // empty: the old template
  bool completed = false;
  uint32_t super_pods = 0;
  std::vector<Rank> ranks;  // ascending, 0 to N-1
};

// Errors as the vendor's library reports them:
//   E_PARA       not JSON or not an object (EI0004); a value of the wrong type (EI0017) or out of
//                range, a count that differs, a duplicate (EI0014)
//   E_NOT_FOUND  a mandatory key is missing (EI0017)
//   E_UNAVAIL    rank ids that are not 0 to N-1
Verdict ParseRankTable(std::string_view text, RankTable* table);

// Reads `path`, again and again while its status is "initializing", at most `patience`
// (E_TIMEOUT). E_PARA (EI0004) for a file that is missing, unreadable, too large or not named
// *.json.
Verdict LoadRankTable(const std::string& path, std::chrono::seconds patience, RankTable* table);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CREATION_RANK_TABLE_H_
