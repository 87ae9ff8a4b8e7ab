#include "runtime/msprof/vendor_names.h"

#include <gmock/gmock.h>

#include "runtime/msprof/profile_text.h"

namespace npumesh {
namespace {

TEST(CallKind, KnowsTheNamesOfOperatorsAndOfTheInterface) {
  const std::vector<std::pair<std::string, std::string>> kinds = {
      {"HcomAllReduce", "allReduce"},
      {"HcclAllGather", "allGather"},
      {"HcomReduceScatter", "reduceScatter"},
      {"all_gather_v", "allGather"},
      {"HcomBroadcast", "broadcast"},
      {"HcomReduce", "reduce"},
      {"HcclScatter", "scatter"},
      {"HcomAllToAllV", "alltoallv"},
      {"HcomAllToAllVC", "alltoallvc"},
      {"HcclAlltoAll", "alltoall"},
      {"HcomSend", "send"},
      {"HcclRecv", "receive"},
      {"HcomReceive", "receive"},
      {"HcclBatchSendRecv", "batchsendrecv"},
      {"HcclBarrier", "invalid"},
      {"", "invalid"}};
  for (const auto& [name, kind] : kinds) EXPECT_EQ(CallKind(name), kind) << name;
}

TEST(GroupHash, JoinsTwoPolynomials) {
  EXPECT_EQ(GroupHash(""), 0U);
  EXPECT_EQ(GroupHash("a"), uint64_t{97} << 32 | 97);
  EXPECT_EQ(GroupHash("ab"), uint64_t{97 * 29 + 98} << 32 | (97 * 131 + 98));
  // Overflows both halves; computed with integers without limit.
  EXPECT_EQ(GroupHash("hccl_world_group_1"), 1498413542853642153U);
}

TEST(CallName, HasTheLastThreeDigitsOfTheGroup) {
  EXPECT_EQ(CallName("allReduce", 1498413542853642007U, 7, 1), "hcom_allReduce__007_7_1");
}

TEST(CoreOf, IsTheCubeForProducts) {
  EXPECT_EQ(CoreOf("MatMulV2"), "AI_CORE");
  EXPECT_EQ(CoreOf("MatMul+Add"), "AI_CORE");
  EXPECT_EQ(CoreOf("Conv2D"), "AI_CORE");
  EXPECT_EQ(CoreOf("Add"), "AI_VECTOR_CORE");
  EXPECT_EQ(CoreOf(""), "AI_VECTOR_CORE");
}

TEST(ApiLevel, FollowsThePrefix) {
  EXPECT_EQ(ApiLevel("aclmdlExecute"), "acl");
  EXPECT_EQ(ApiLevel("aclrtMemcpy"), "runtime");
  EXPECT_EQ(ApiLevel("HcclAllReduce"), "communication");
}

TEST(MicrosecondText, IsExact) {
  EXPECT_EQ(MicrosecondText(0), "0.000");
  EXPECT_EQ(MicrosecondText(1), "0.001");
  EXPECT_EQ(MicrosecondText(1'763'865'004'123'456'789), "1763865004123456.789");
  EXPECT_EQ(MicrosecondText(-1'005), "-1.005");
  EXPECT_EQ(MicrosecondText(std::numeric_limits<int64_t>::min()), "-9223372036854775.808");
}

TEST(Stamps, AreLocalTime) {
  setenv("TZ", "Asia/Shanghai", 1);
  tzset();
  EXPECT_EQ(Stamp14(1'763'865'004'123'456'789), "20251123103004");
  EXPECT_EQ(Stamp17(1'763'865'004'023'456'789), "20251123103004023");
  unsetenv("TZ");
  tzset();
}

}  // namespace
}  // namespace npumesh
