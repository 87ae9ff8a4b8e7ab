#include "collectives/hccl/host_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <tuple>

#include "runtime/base/system_error.h"

namespace npumesh {
namespace {

// HCCL_SOCKET_IFNAME.
struct Rule {
  bool excludes = false;
  bool exact = false;
  std::vector<std::string> names;

  explicit Rule(std::string_view text) {
    if (text.starts_with('^')) excludes = true, text.remove_prefix(1);
    if (text.starts_with('=')) exact = true, text.remove_prefix(1);
    while (!text.empty()) {
      const size_t comma = std::min(text.find(','), text.size());
      if (comma > 0) names.emplace_back(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
  }

  bool Admits(const std::string& name) const {
    if (names.empty()) return true;
    const bool named = std::any_of(names.begin(), names.end(), [&](const std::string& wanted) {
      return exact ? name == wanted : name.starts_with(wanted);
    });
    return named != excludes;
  }
};

// Order of preference: others, docker, lo.
int Reluctance(const std::string& name) {
  return name == "lo" ? 2 : name.starts_with("docker") ? 1 : 0;
}

}  // namespace

Result<std::vector<NetworkInterface>> ListInterfaces() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return SystemError("list", "the network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, freeifaddrs);
  std::vector<NetworkInterface> found;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    const bool up = (entry->ifa_flags & IFF_UP) != 0;
    if (!up || entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    char text[INET_ADDRSTRLEN] = {};
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ifa_addr);
    inet_ntop(AF_INET, &address->sin_addr, text, sizeof(text));
    found.push_back({entry->ifa_name, text});
  }
  return found;
}

Result<std::string> ChooseAddress(std::vector<NetworkInterface> interfaces, std::string_view if_ip,
                                  std::string_view rule) {
  if (!if_ip.empty()) return std::string(if_ip);
  std::sort(interfaces.begin(), interfaces.end(), [](const auto& a, const auto& b) {
    return std::tuple(Reluctance(a.name), a.name) < std::tuple(Reluctance(b.name), b.name);
  });
  const Rule admitted(rule);
  std::string all;
  for (const NetworkInterface& interface : interfaces) {
    if (admitted.Admits(interface.name)) return interface.ip;
    all += (all.empty() ? "" : ", ") + interface.name;
  }
  return Error(Code::kNotFound,
               "HCCL_SOCKET_IFNAME \"{}\" fits none of this host's interfaces ({})", rule, all);
}

}  // namespace npumesh
