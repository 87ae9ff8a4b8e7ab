#include "collectives/hccl/host_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace npumesh {
namespace {

const std::vector<NetworkInterface> kHost = {
    {"lo", "127.0.0.1"}, {"docker0", "172.17.0.1"}, {"eth1", "10.0.0.2"}, {"eth0", "10.0.0.1"}};

TEST(HostAddress, FollowsTheRules) {
  struct {
    const char* if_ip;
    const char* rule;
    const char* chosen;
  } const cases[] = {
      {"", "", "10.0.0.1"},
      {"1.2.3.4", "=lo", "1.2.3.4"},
      {"", "eth", "10.0.0.1"},
      {"", "=eth1", "10.0.0.2"},
      {"", "^eth", "172.17.0.1"},
      {"", "^=eth0", "10.0.0.2"},
      {"", "^eth,docker", "127.0.0.1"},
  };
  for (const auto& [if_ip, rule, chosen] : cases) {
    const Result<std::string> address = ChooseAddress(kHost, if_ip, rule);
    ASSERT_TRUE(address.ok()) << rule;
    EXPECT_EQ(address.value(), chosen) << rule;
  }
  const Result<std::string> none = ChooseAddress(kHost, "", "ib");
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(std::string(none.status().message()), testing::HasSubstr("eth0, eth1, docker0, lo"));
}

}  // namespace
}  // namespace npumesh
