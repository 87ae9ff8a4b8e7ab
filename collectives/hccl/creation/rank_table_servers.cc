// Rank tables of versions 1.0, 1.1 and 1.2.
#include <arpa/inet.h>

#include <map>
#include <set>

#include "collectives/hccl/creation/rank_table_forms.h"

namespace npumesh {

Verdict CheckIp(const JsonPlace& place, const char* key, const std::string& ip) {
  in6_addr room{};
  if (ip.empty() || inet_pton(AF_INET, ip.c_str(), &room) == 1 ||
      inet_pton(AF_INET6, ip.c_str(), &room) == 1) {
    return {};
  }
  return Refuse(HCCL_E_PARA, "EI0014: \"{}\" of the rank table is \"{}\", which is no IP address",
                place.PathOf(key), ip);
}

Verdict CheckOptionalPort(const JsonPlace& place, const char* key, NumberForm form) {
  int64_t port = 0;
  return place.object.contains(key) ? ReadNumber(place, key, form, 1, 65535, &port) : Verdict();
}

namespace {

// What must be different in a whole table.
struct Seen {
  std::set<std::string> servers;
  std::map<std::string, std::string> device_ips;  // and where they stand
};

Verdict ReadDevice(const JsonPlace& place, const std::string& server, Seen* seen,
                   RankTable* table) {
  RankTable::Rank rank;
  rank.server = server;
  int64_t device = 0;
  int64_t number = 0;
  NPUMESH_RETURN_IF_REFUSED(
      ReadNumber(place, "device_id", NumberForm::kText, 0, kMaxDeviceId, &device));
  NPUMESH_RETURN_IF_REFUSED(
      ReadNumber(place, "rank_id", NumberForm::kText, 0, kMaxRankId, &number));
  NPUMESH_RETURN_IF_REFUSED(ReadOptionalString(place, "device_ip", &rank.device_ip));
  NPUMESH_RETURN_IF_REFUSED(CheckIp(place, "device_ip", rank.device_ip));
  for (const char* key : {"device_port", "host_port", "backup_device_port"}) {
    NPUMESH_RETURN_IF_REFUSED(CheckOptionalPort(place, key, NumberForm::kText));
  }
  if (!rank.device_ip.empty()) {
    const auto [first, fresh] = seen->device_ips.emplace(rank.device_ip, place.path);
    if (!fresh) {
      return Refuse(HCCL_E_PARA, "EI0014: {} and {} of the rank table have one device_ip, {}",
                    first->second, place.path, rank.device_ip);
    }
  }
  rank.device = static_cast<int32_t>(device);
  rank.rank = static_cast<uint32_t>(number);
  table->ranks.push_back(std::move(rank));
  return {};
}

// The devices of one server: ids and host ports differ, ranks are neighbours.
Verdict CheckServer(const JsonPlace& place, const Json& devices, const RankTable& table,
                    size_t first) {
  std::set<int32_t> ids;
  std::set<uint32_t> ranks;
  for (size_t i = first; i < table.ranks.size(); ++i) {
    ranks.insert(table.ranks[i].rank);
    if (!ids.insert(table.ranks[i].device).second) {
      return Refuse(HCCL_E_PARA, "EI0014: {} of the rank table lists device_id {} twice",
                    place.path, table.ranks[i].device);
    }
  }
  if (!ranks.empty() && *ranks.rbegin() - *ranks.begin() + 1 != table.ranks.size() - first) {
    return Refuse(HCCL_E_UNAVAIL,
                  "EI0014: the rank ids of {} of the rank table are not neighbours, each once",
                  place.path);
  }
  std::set<std::string> ports;
  for (const Json& device : devices) {
    const auto port = device.find("host_port");
    if (port != device.end() && !ports.insert(port->get<std::string>()).second) {
      return Refuse(HCCL_E_PARA, "EI0014: {} of the rank table lists host_port {} twice",
                    place.path, port->get<std::string>());
    }
  }
  return {};
}

Verdict ReadServer(const JsonPlace& place, Seen* seen, RankTable* table) {
  constexpr size_t kLongestId = 64;
  std::string id;
  NPUMESH_RETURN_IF_REFUSED(ReadString(place, "server_id", &id));
  if (id.empty() || id.size() > kLongestId) {
    return Refuse(HCCL_E_PARA,
                  "EI0014: \"{}\" of the rank table has {} characters; expected 1 to {}",
                  place.PathOf("server_id"), id.size(), kLongestId);
  }
  if (!seen->servers.insert(id).second) {
    return Refuse(HCCL_E_PARA, "EI0014: the rank table lists server_id \"{}\" twice", id);
  }
  std::string host_ip;
  NPUMESH_RETURN_IF_REFUSED(ReadOptionalString(place, "host_ip", &host_ip));
  NPUMESH_RETURN_IF_REFUSED(CheckIp(place, "host_ip", host_ip));
  const Json* devices = nullptr;
  NPUMESH_RETURN_IF_REFUSED(ReadArray(place, "device", &devices));
  const size_t first = table->ranks.size();
  for (size_t i = 0; i < devices->size(); ++i) {
    const std::string path = place.PathOf("device");
    NPUMESH_RETURN_IF_REFUSED(CheckObject(*devices, i, path));
    const JsonPlace device{(*devices)[i], fmt::format("{}[{}]", path, i)};
    NPUMESH_RETURN_IF_REFUSED(ReadDevice(device, id, seen, table));
  }
  return CheckServer(place, *devices, *table, first);
}

// Pods have different names, their servers exist and belong to one pod.
Verdict ReadSuperPods(const JsonPlace& top, const Seen& seen, RankTable* table) {
  if (table->version != "1.2" || !top.object.contains("super_pod_list")) return {};
  const Json* pods = nullptr;
  NPUMESH_RETURN_IF_REFUSED(ReadArray(top, "super_pod_list", &pods));
  std::set<std::string> names;
  std::set<std::string> placed;
  for (size_t i = 0; i < pods->size(); ++i) {
    NPUMESH_RETURN_IF_REFUSED(CheckObject(*pods, i, "super_pod_list"));
    const JsonPlace pod{(*pods)[i], fmt::format("super_pod_list[{}]", i)};
    std::string name;
    const Json* servers = nullptr;
    NPUMESH_RETURN_IF_REFUSED(ReadString(pod, "super_pod_id", &name));
    NPUMESH_RETURN_IF_REFUSED(ReadArray(pod, "server_list", &servers));
    if (!names.insert(name).second) {
      return Refuse(HCCL_E_PARA, "EI0014: the rank table lists super_pod_id \"{}\" twice", name);
    }
    for (size_t s = 0; s < servers->size(); ++s) {
      const std::string path = pod.PathOf("server_list");
      NPUMESH_RETURN_IF_REFUSED(CheckObject(*servers, s, path));
      std::string server;
      const JsonPlace entry{(*servers)[s], fmt::format("{}[{}]", path, s)};
      NPUMESH_RETURN_IF_REFUSED(ReadString(entry, "server_id", &server));
      if (!seen.servers.contains(server) || !placed.insert(server).second) {
        return Refuse(HCCL_E_PARA,
                      "EI0014: {} of the rank table: server \"{}\" is not in server_list, or in "
                      "two super pods",
                      entry.path, server);
      }
    }
  }
  table->super_pods = static_cast<uint32_t>(names.size());
  return {};
}

// Between servers and between pods, devices need addresses.
Verdict CheckAddresses(const Seen& seen, const RankTable& table) {
  if (seen.servers.size() < 2) return {};
  for (const RankTable::Rank& rank : table.ranks) {
    if (!rank.device_ip.empty()) continue;
    return Refuse(
        HCCL_E_NOT_FOUND,
        "EI0017: rank {} of the rank table lacks \"device_ip\", which several servers need",
        rank.rank);
  }
  return {};
}

}  // namespace

Verdict ReadServerTable(const JsonPlace& top, RankTable* table) {
  const Json* servers = nullptr;
  NPUMESH_RETURN_IF_REFUSED(ReadArray(top, "server_list", &servers));
  const auto found = static_cast<int64_t>(servers->size());
  int64_t count = found;
  if (top.object.contains("server_count")) {
    NPUMESH_RETURN_IF_REFUSED(
        ReadNumber(top, "server_count", NumberForm::kText, 0, kMaxRankId, &count));
  }
  if (found == 0 || count != found) {
    return Refuse(HCCL_E_PARA,
                  "EI0014: \"server_count\" of the rank table is {}, \"server_list\" has {} "
                  "servers; expected the same, at least 1",
                  count, found);
  }
  Seen seen;
  for (size_t i = 0; i < servers->size(); ++i) {
    NPUMESH_RETURN_IF_REFUSED(CheckObject(*servers, i, "server_list"));
    const JsonPlace server{(*servers)[i], fmt::format("server_list[{}]", i)};
    NPUMESH_RETURN_IF_REFUSED(ReadServer(server, &seen, table));
  }
  if (table->ranks.empty()) {
    return Refuse(HCCL_E_PARA, "EI0014: the servers of the rank table have no devices");
  }
  NPUMESH_RETURN_IF_REFUSED(ReadSuperPods(top, seen, table));
  return CheckAddresses(seen, *table);
}

}  // namespace npumesh
