#include "runtime/base/process/host_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace npumesh {
namespace {

const std::vector<NetworkInterface> kHost = {{"lo", "127.0.0.1"},  {"docker0", "172.17.0.1"},
                                             {"eth1", "10.0.0.2"}, {"eth0", "fd00::1"},
                                             {"ib0", "fd00::2"},   {"eth0", "10.0.0.1"}};

HcclEnv EnvOf(const char* if_ip, const char* rule, std::optional<int> family) {
  HcclEnv env;
  env.if_ip = if_ip;
  env.socket_ifname = rule;
  env.socket_family = family;
  return env;
}

TEST(HostAddress, FollowsTheRules) {
  struct {
    const char* if_ip;
    const char* rule;
    std::optional<int> family;
    const char* chosen;
  } const cases[] = {
      {"", "", {}, "10.0.0.1"},       {"1.2.3.4", "=lo", {}, "1.2.3.4"},
      {"fd00::9", "", 4, "fd00::9"},  {"", "eth", {}, "10.0.0.1"},
      {"", "=eth1", {}, "10.0.0.2"},  {"", "^eth", {}, "172.17.0.1"},
      {"", "^=eth0", {}, "10.0.0.2"}, {"", "^eth,docker", {}, "127.0.0.1"},
      {"", "", 4, "10.0.0.1"},        {"", "", 6, "fd00::1"},
      {"", "ib", {}, "fd00::2"},      {"", "^eth", 6, "fd00::2"},
  };
  for (const auto& [if_ip, rule, family, chosen] : cases) {
    const Result<std::string> address = ChooseAddress(kHost, EnvOf(if_ip, rule, family));
    ASSERT_TRUE(address.ok()) << rule;
    EXPECT_EQ(address.value(), chosen) << rule;
  }
}

TEST(HostAddress, SaysWhatThereIs) {
  struct {
    const char* rule;
    std::optional<int> family;
    const char* text;
  } const cases[] = {
      {"enp",
       {},
       "\"enp\" fits none of this host's interfaces (eth0, eth1, docker0, lo, eth0, ib0)"},
      {"ib", 4, "(eth0, eth1, docker0, lo; those with IPv4)"},
      {"lo", 6, "(eth0, ib0; those with IPv6)"},
  };
  for (const auto& [rule, family, text] : cases) {
    const Result<std::string> none = ChooseAddress(kHost, EnvOf("", rule, family));
    ASSERT_FALSE(none.ok()) << rule;
    EXPECT_THAT(std::string(none.status().message()), testing::HasSubstr(text));
  }
}

}  // namespace
}  // namespace npumesh
