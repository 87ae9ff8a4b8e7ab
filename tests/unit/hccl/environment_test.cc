#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "runtime/base/env/hccl_env.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

Result<HcclEnv> Parse(const std::map<std::string, std::string>& variables) {
  return HcclEnv::From([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(HcclEnv, AcceptsWhatTheManualAccepts) {
  const Result<HcclEnv> env = Parse({{"HCCL_BUFFSIZE", "200"},
                                     {"HCCL_DETERMINISTIC", "strict"},
                                     {"HCCL_OP_EXPANSION_MODE", "AICPU_CacheDisable"},
                                     {"HCCL_INTRA_PCIE_ENABLE", "0"},
                                     {"HCCL_INTRA_ROCE_ENABLE", "1"},
                                     {"HCCL_RDMA_TC", "132"},
                                     {"HCCL_IF_IP", "10.1.0.1"},
                                     {"HCCL_SOCKET_IFNAME", "^=docker0,lo"},
                                     {"HCCL_HOST_SOCKET_PORT_RANGE", "60000-60001,61000"},
                                     {"HCCL_OP_RETRY_ENABLE", "L0:0, L1:0, L2:0"},
                                     {"HCCL_OP_RETRY_PARAMS", "MaxCnt:1,HoldTime:0"},
                                     {"HCCL_ENTRY_LOG_ENABLE", "1"},
                                     {"HCCL_DFS_CONFIG", "inconsistent_check:first"},
                                     {"HCCL_DEBUG_CONFIG", "^ALG,TASK"}});
  ASSERT_TRUE(env.ok()) << env.status().ToString();
  EXPECT_EQ(env.value().deterministic, 2);
  EXPECT_TRUE(env.value().entry_log);
  EXPECT_FALSE(Parse({{"HCCL_ENTRY_LOG_ENABLE", "0"}}).value().entry_log);
  EXPECT_EQ(env.value().if_ip, "10.1.0.1");
  EXPECT_THAT(env.value().ports, ElementsAre(60000, 60001, 61000));
}

TEST(HcclEnv, BasePortMeansThirtyTwoPorts) {
  EXPECT_THAT(Parse({{"HCCL_IF_BASE_PORT", "1024"}}).value().ports, SizeIs(32));
  EXPECT_THAT(Parse({}).value().ports, SizeIs(0));
}

TEST(HcclEnv, RefusalsNameVariableValueAndWhatIsExpected) {
  struct {
    std::string name;
    std::string text;
  } const cases[] = {
      {"HCCL_BUFFSIZE", "0"},
      {"HCCL_BUFFSIZE", "200M"},
      {"HCCL_DETERMINISTIC", "TRUE"},
      {"HCCL_OP_EXPANSION_MODE", "aiv"},
      {"HCCL_INTRA_PCIE_ENABLE", "2"},
      {"HCCL_INTER_HCCS_DISABLE", "true"},
      {"HCCL_LOGIC_SUPERPOD_ID", ""},
      {"HCCL_ALG_MULTIPLE_DIMENSION_SPLIT_RATIO", "1.5"},
      {"HCCL_RDMA_TC", "130"},
      {"HCCL_RDMA_SL", "8"},
      {"HCCL_RDMA_TIMEOUT", "4"},
      {"HCCL_RDMA_RETRY_CNT", "0"},
      {"HCCL_RDMA_QPS_PER_CONNECTION", "33"},
      {"HCCL_MULTI_QP_THRESHOLD", "8193"},
      {"HCCL_IF_IP", "10.1.0"},
      {"HCCL_SOCKET_IFNAME", "eth,"},
      {"HCCL_SOCKET_FAMILY", "INET"},
      {"HCCL_IF_BASE_PORT", "1023"},
      {"HCCL_HOST_SOCKET_PORT_RANGE", "2-1"},
      {"HCCL_NPU_SOCKET_PORT_RANGE", "x"},
      {"HCCL_WHITELIST_DISABLE", "yes"},
      {"HCCL_OP_RETRY_ENABLE", "L1:2"},
      {"HCCL_OP_RETRY_ENABLE", "L1:1,L1:0"},
      {"HCCL_OP_RETRY_PARAMS", "MaxCnt:11"},
      {"HCCL_DFS_CONFIG", "connection_fault_detection_time:19"},
      {"HCCL_DEBUG_CONFIG", "ALG,ALL"},
  };
  for (const auto& [name, text] : cases) {
    const Result<HcclEnv> env = Parse({{name, text}});
    ASSERT_FALSE(env.ok()) << name << "=" << text;
    EXPECT_THAT(std::string(env.status().message()),
                HasSubstr("EI0001: Value " + text + " for environment variable " + name +
                          " is invalid. Expected value: "));
  }
}

TEST(HcclEnv, LinkSwitchesGoInPairs) {
  const auto with = [](const char* pcie, const char* roce) {
    std::map<std::string, std::string> variables;
    if (pcie) variables["HCCL_INTRA_PCIE_ENABLE"] = pcie;
    if (roce) variables["HCCL_INTRA_ROCE_ENABLE"] = roce;
    return Parse(variables).ok();
  };
  EXPECT_FALSE(with("1", "1"));
  EXPECT_FALSE(with("0", nullptr));
  EXPECT_FALSE(with(nullptr, "0"));
  EXPECT_TRUE(with("0", "0"));
  EXPECT_TRUE(with("0", "1"));
  EXPECT_TRUE(with("1", nullptr));
}

}  // namespace
}  // namespace npumesh
