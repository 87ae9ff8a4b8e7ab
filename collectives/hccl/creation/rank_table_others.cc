// Rank tables without a version (the old template) and of version 2.0.
#include <set>

#include "collectives/hccl/creation/rank_table_forms.h"

namespace npumesh {
namespace {

Verdict CheckCount(const JsonPlace& place, const char* key, NumberForm form, size_t listed) {
  int64_t count = 0;
  NPUMESH_RETURN_IF_REFUSED(ReadNumber(place, key, form, 0, kMaxRankId, &count));
  if (static_cast<size_t>(count) == listed && count > 0) return {};
  return Refuse(HCCL_E_PARA, "EI0014: \"{}\" of the rank table is {}, but {} are listed",
                place.PathOf(key), count, listed);
}

// Ranks are numbered as they come.
Verdict ReadInstance(const JsonPlace& place, RankTable* table) {
  std::string server;
  const Json* devices = nullptr;
  NPUMESH_RETURN_IF_REFUSED(ReadString(place, "server_id", &server));
  NPUMESH_RETURN_IF_REFUSED(ReadArray(place, "devices", &devices));
  for (size_t i = 0; i < devices->size(); ++i) {
    NPUMESH_RETURN_IF_REFUSED(CheckObject(*devices, i, place.PathOf("devices")));
    const JsonPlace device{(*devices)[i], fmt::format("{}[{}]", place.PathOf("devices"), i)};
    RankTable::Rank rank;
    int64_t id = 0;
    NPUMESH_RETURN_IF_REFUSED(
        ReadNumber(device, "device_id", NumberForm::kText, 0, kMaxDeviceId, &id));
    NPUMESH_RETURN_IF_REFUSED(ReadOptionalString(device, "device_ip", &rank.device_ip));
    NPUMESH_RETURN_IF_REFUSED(CheckIp(device, "device_ip", rank.device_ip));
    rank.rank = static_cast<uint32_t>(table->ranks.size());
    rank.device = static_cast<int32_t>(id);
    rank.server = server;
    table->ranks.push_back(std::move(rank));
  }
  return {};
}

Verdict ReadGroup(const JsonPlace& place, RankTable* table) {
  const Json* instances = nullptr;
  NPUMESH_RETURN_IF_REFUSED(ReadArray(place, "instance_list", &instances));
  NPUMESH_RETURN_IF_REFUSED(
      CheckCount(place, "instance_count", NumberForm::kText, instances->size()));
  const size_t first = table->ranks.size();
  for (size_t i = 0; i < instances->size(); ++i) {
    NPUMESH_RETURN_IF_REFUSED(CheckObject(*instances, i, place.PathOf("instance_list")));
    NPUMESH_RETURN_IF_REFUSED(ReadInstance(
        {(*instances)[i], fmt::format("{}[{}]", place.PathOf("instance_list"), i)}, table));
  }
  return CheckCount(place, "device_count", NumberForm::kText, table->ranks.size() - first);
}

Verdict ReadAddress(const JsonPlace& place) {
  std::string type;
  std::string address;
  NPUMESH_RETURN_IF_REFUSED(ReadString(place, "addr_type", &type));
  NPUMESH_RETURN_IF_REFUSED(ReadString(place, "addr", &address));
  if (type == "EID") return {};
  if (type == "IPV4" || type == "IPV6") return CheckIp(place, "addr", address);
  return Refuse(HCCL_E_PARA,
                "EI0014: \"{}\" of the rank table is \"{}\"; expected EID, IPV4 or IPV6",
                place.PathOf("addr_type"), type);
}

Verdict ReadLevel(const JsonPlace& place) {
  int64_t layer = 0;
  std::string type;
  NPUMESH_RETURN_IF_REFUSED(ReadNumber(place, "net_layer", NumberForm::kAny, 0, 255, &layer));
  NPUMESH_RETURN_IF_REFUSED(ReadString(place, "net_type", &type));
  if (type != "TOPO_FILE_DESC" && type != "CLOS") {
    return Refuse(HCCL_E_PARA,
                  "EI0014: \"{}\" of the rank table is \"{}\"; expected TOPO_FILE_DESC or CLOS",
                  place.PathOf("net_type"), type);
  }
  const Json* addresses = nullptr;
  if (!place.object.contains("rank_addr_list")) return {};
  NPUMESH_RETURN_IF_REFUSED(ReadArray(place, "rank_addr_list", &addresses));
  for (size_t i = 0; i < addresses->size(); ++i) {
    const std::string path = place.PathOf("rank_addr_list");
    NPUMESH_RETURN_IF_REFUSED(CheckObject(*addresses, i, path));
    NPUMESH_RETURN_IF_REFUSED(ReadAddress({(*addresses)[i], fmt::format("{}[{}]", path, i)}));
  }
  return {};
}

Verdict ReadRank(const JsonPlace& place, RankTable* table) {
  int64_t number = 0;
  int64_t device = 0;
  NPUMESH_RETURN_IF_REFUSED(ReadNumber(place, "rank_id", NumberForm::kAny, 0, kMaxRankId, &number));
  NPUMESH_RETURN_IF_REFUSED(
      ReadNumber(place, "device_id", NumberForm::kAny, 0, kMaxDeviceId, &device));
  for (const char* key : {"device_port", "host_port"}) {
    NPUMESH_RETURN_IF_REFUSED(CheckOptionalPort(place, key, NumberForm::kAny));
  }
  const Json* levels = nullptr;
  NPUMESH_RETURN_IF_REFUSED(ReadArray(place, "level_list", &levels));
  for (size_t i = 0; i < levels->size(); ++i) {
    const std::string path = place.PathOf("level_list");
    NPUMESH_RETURN_IF_REFUSED(CheckObject(*levels, i, path));
    NPUMESH_RETURN_IF_REFUSED(ReadLevel({(*levels)[i], fmt::format("{}[{}]", path, i)}));
  }
  table->ranks.push_back(
      {static_cast<uint32_t>(number), static_cast<int32_t>(device), std::string(), std::string()});
  return {};
}

}  // namespace

Verdict ReadOldTemplate(const JsonPlace& top, RankTable* table) {
  const Json* groups = nullptr;
  NPUMESH_RETURN_IF_REFUSED(ReadArray(top, "group_list", &groups));
  NPUMESH_RETURN_IF_REFUSED(CheckCount(top, "group_count", NumberForm::kText, groups->size()));
  for (size_t i = 0; i < groups->size(); ++i) {
    NPUMESH_RETURN_IF_REFUSED(CheckObject(*groups, i, "group_list"));
    NPUMESH_RETURN_IF_REFUSED(ReadGroup({(*groups)[i], fmt::format("group_list[{}]", i)}, table));
  }
  return {};
}

Verdict ReadLevelTable(const JsonPlace& top, RankTable* table) {
  const Json* ranks = nullptr;
  NPUMESH_RETURN_IF_REFUSED(ReadArray(top, "rank_list", &ranks));
  NPUMESH_RETURN_IF_REFUSED(CheckCount(top, "rank_count", NumberForm::kAny, ranks->size()));
  for (size_t i = 0; i < ranks->size(); ++i) {
    NPUMESH_RETURN_IF_REFUSED(CheckObject(*ranks, i, "rank_list"));
    NPUMESH_RETURN_IF_REFUSED(ReadRank({(*ranks)[i], fmt::format("rank_list[{}]", i)}, table));
  }
  return {};
}

}  // namespace npumesh
