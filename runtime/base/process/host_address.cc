#include "runtime/base/process/host_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <tuple>

#include "runtime/base/files/system_error.h"
#include "runtime/base/text/strings.h"

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
    for (const std::string_view name : Split(text, ",")) {
      if (!name.empty()) names.emplace_back(name);
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

bool IsV6(const NetworkInterface& interface) {
  return interface.ip.find(':') != std::string::npos;
}

// Empty for an address that is no use to other hosts.
std::string TextOf(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = {};
  if (address->sa_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(address);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
  } else if (address->sa_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
    if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) return "";
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
  }
  return text;
}

}  // namespace

Result<std::vector<NetworkInterface>> ListInterfaces() {
  ifaddrs* raw = nullptr;
  if (getifaddrs(&raw) != 0) return SystemError("list", "the network interfaces", errno);
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> list(raw, freeifaddrs);
  std::vector<NetworkInterface> found;
  for (const ifaddrs* entry = list.get(); entry != nullptr; entry = entry->ifa_next) {
    const bool up = (entry->ifa_flags & IFF_UP) != 0;
    if (!up || entry->ifa_addr == nullptr) continue;
    std::string ip = TextOf(entry->ifa_addr);
    if (!ip.empty()) found.push_back({entry->ifa_name, std::move(ip)});
  }
  return found;
}

Result<std::string> ChooseAddress(std::vector<NetworkInterface> interfaces, const HcclEnv& env) {
  if (!env.if_ip.empty()) return env.if_ip;
  if (env.socket_family) {
    std::erase_if(interfaces,
                  [&](const auto& each) { return IsV6(each) != (*env.socket_family == 6); });
  }
  const auto preference = [](const NetworkInterface& each) {
    return std::tuple(IsV6(each), Reluctance(each.name), each.name);
  };
  std::sort(interfaces.begin(), interfaces.end(),
            [&](const auto& a, const auto& b) { return preference(a) < preference(b); });
  const Rule admitted(env.socket_ifname);
  std::string all;
  for (const NetworkInterface& interface : interfaces) {
    if (admitted.Admits(interface.name)) return interface.ip;
    all += (all.empty() ? "" : ", ") + interface.name;
  }
  return Error(Code::kNotFound,
               "HCCL_SOCKET_IFNAME \"{}\" fits none of this host's interfaces ({}{})",
               env.socket_ifname, all,
               env.socket_family ? fmt::format("; those with IPv{}", *env.socket_family) : "");
}

}  // namespace npumesh
