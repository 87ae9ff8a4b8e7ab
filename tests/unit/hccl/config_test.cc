#include "collectives/hccl/comm/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "hccl/hccl_comm.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

HcclCommConfig Fresh() {
  HcclCommConfig config;
  std::memset(&config, 0x5a, sizeof(config));
  HcclCommConfigInit(&config);
  return config;
}

void SetHeader(HcclCommConfig& config, size_t size, uint32_t version) {
  std::memcpy(config.reserved, &size, sizeof(size));
  std::memcpy(config.reserved + 12, &version, sizeof(version));
}

TEST(CommConfig, InitWritesHeaderAndDefaults) {
  const HcclCommConfig config = Fresh();
  size_t size = 0;
  uint32_t magic = 0;
  uint32_t version = 0;
  std::memcpy(&size, config.reserved, sizeof(size));
  std::memcpy(&magic, config.reserved + 8, sizeof(magic));
  std::memcpy(&version, config.reserved + 12, sizeof(version));
  EXPECT_EQ(size, 2248u);
  EXPECT_EQ(magic, 0xf0f0f0f0u);
  EXPECT_EQ(version, 11u);
  EXPECT_EQ(config.hcclBufferSize, 0xffffffffu);
  EXPECT_EQ(config.hcclExecTimeOut, -1);
  EXPECT_EQ(config.hcclSymWinMaxMemSizePerRank, 16u);
  HcclCommConfigInit(nullptr);
}

TEST(CommConfig, TakesWhatTheProgramSet) {
  HcclCommConfig config = Fresh();
  std::strcpy(config.hcclCommName, "tp");
  std::strcpy(config.hcclAlgo, "level0:NA;level1:ring");
  config.hcclOpExpansionMode = 3;
  config.hcclExecTimeOut = 60;
  CommConfig loaded;
  EXPECT_EQ(loaded.exec_timeout, std::nullopt);
  ASSERT_TRUE(LoadCommConfig(&config, &loaded).ok());
  EXPECT_EQ(loaded.name, "tp");
  EXPECT_EQ(loaded.algo, "level0:NA;level1:ring");
  EXPECT_EQ(loaded.op_expansion_mode, 3u);
  EXPECT_EQ(loaded.exec_timeout, std::chrono::seconds(60));
  EXPECT_EQ(loaded.symmetric_bytes, uint64_t{16} << 30);
}

TEST(CommConfig, FieldsNewerThanTheVersionAreIgnored) {
  HcclCommConfig config = Fresh();
  SetHeader(config, sizeof(config), 2);
  std::strcpy(config.hcclCommName, "old");
  config.hcclOpExpansionMode = 99;
  CommConfig loaded;
  ASSERT_TRUE(LoadCommConfig(&config, &loaded).ok());
  EXPECT_EQ(loaded.name, "old");
  EXPECT_EQ(loaded.op_expansion_mode, 0u);
}

TEST(CommConfig, BytesBehindItsSizeAreNotRead) {
  HcclCommConfig config = Fresh();
  SetHeader(config, 32, 11);
  std::strcpy(config.hcclCommName, "beyond");
  CommConfig loaded;
  ASSERT_TRUE(LoadCommConfig(&config, &loaded).ok());
  EXPECT_EQ(loaded.name, "");
}

TEST(CommConfig, ANewerVersionOnlyWarns) {
  HcclCommConfig config = Fresh();
  SetHeader(config, sizeof(config) + 64, 12);
  CommConfig loaded;
  EXPECT_TRUE(LoadCommConfig(&config, &loaded).ok());
}

TEST(CommConfig, RefusalsNameTheField) {
  struct {
    const char* field;
    void (*spoil)(HcclCommConfig& config);
  } const cases[] = {
      {"magic word", [](HcclCommConfig& c) { c.reserved[8] = 0; }},
      {"hcclBufferSize", [](HcclCommConfig& c) { c.hcclBufferSize = 0; }},
      {"hcclDeterministic", [](HcclCommConfig& c) { c.hcclDeterministic = 3; }},
      {"hcclOpExpansionMode", [](HcclCommConfig& c) { c.hcclOpExpansionMode = 8; }},
      {"hcclRdmaTrafficClass", [](HcclCommConfig& c) { c.hcclRdmaTrafficClass = 133; }},
      {"hcclRdmaServiceLevel", [](HcclCommConfig& c) { c.hcclRdmaServiceLevel = 8; }},
      {"aclGraphZeroCopyEnable", [](HcclCommConfig& c) { c.aclGraphZeroCopyEnable = 2; }},
      {"hcclExecTimeOut", [](HcclCommConfig& c) { c.hcclExecTimeOut = -2; }},
      {"hcclQos", [](HcclCommConfig& c) { c.hcclQos = 8; }},
      {"hcclCommName", [](HcclCommConfig& c) { std::memset(c.hcclCommName, 'x', 128); }},
      {"hcclAlgo", [](HcclCommConfig& c) { std::memset(c.hcclAlgo, 'x', 1600); }},
  };
  for (const auto& [field, spoil] : cases) {
    HcclCommConfig config = Fresh();
    spoil(config);
    CommConfig loaded;
    const Verdict verdict = LoadCommConfig(&config, &loaded);
    EXPECT_EQ(verdict.result, HCCL_E_PARA) << field;
    EXPECT_THAT(verdict.why, HasSubstr(field));
  }
  CommConfig loaded;
  EXPECT_EQ(LoadCommConfig(nullptr, &loaded).result, HCCL_E_PTR);
}

}  // namespace
}  // namespace npumesh
