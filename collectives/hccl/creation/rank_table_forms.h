// The forms in which a rank table comes, one function for each. They fill ranks in file order.
#ifndef NPUMESH_COLLECTIVES_HCCL_CREATION_RANK_TABLE_FORMS_H_
#define NPUMESH_COLLECTIVES_HCCL_CREATION_RANK_TABLE_FORMS_H_

#include "collectives/hccl/creation/json_fields.h"
#include "collectives/hccl/creation/rank_table.h"

namespace npumesh {

// Versions 1.0 to 1.2: server_list, and for 1.2 super_pod_list.
Verdict ReadServerTable(const JsonPlace& top, RankTable* table);
// No version: group_list; rank ids by order.
Verdict ReadOldTemplate(const JsonPlace& top, RankTable* table);
// Version 2.0: rank_list with levels.
Verdict ReadLevelTable(const JsonPlace& top, RankTable* table);

// Most devices of one server.
inline constexpr int64_t kMaxDeviceId = 1023;
inline constexpr int64_t kMaxRankId = 65535;

// An IPv4 or IPv6 address; E_PARA (EI0014). An empty text is accepted.
Verdict CheckIp(const JsonPlace& place, const char* key, const std::string& ip);
// A port in [1, 65535], when the key is there.
Verdict CheckOptionalPort(const JsonPlace& place, const char* key, NumberForm form);

}  // namespace npumesh

#endif  // NPUMESH_COLLECTIVES_HCCL_CREATION_RANK_TABLE_FORMS_H_
