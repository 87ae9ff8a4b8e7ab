// Rules that need no device: batches, memory ranges, blocks, error texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/hccl/calls/batch.h"
#include "collectives/hccl/calls/blocks.h"
#include "collectives/hccl/comm/memory_ranges.h"
#include "hccl/hccl_comm.h"

namespace npumesh {
namespace {

HcclSendRecvItem Item(HcclSendRecvType type, uint32_t peer, uint64_t count = 4,
                      HcclDataType dtype = HCCL_DATA_TYPE_FP32) {
  return {type, nullptr, count, dtype, peer};
}

TEST(BatchRules, OneItemForEachDirectionAndPeer) {
  EXPECT_TRUE(CheckItems(std::vector{Item(HCCL_SEND, 1), Item(HCCL_RECV, 1)}, 0).ok());
  EXPECT_EQ(CheckItems(std::vector{Item(HCCL_SEND, 1), Item(HCCL_SEND, 1)}, 0).result, HCCL_E_PARA);
}

TEST(BatchRules, ASendToOneselfHasItsReceive) {
  EXPECT_TRUE(CheckItems(std::vector{Item(HCCL_SEND, 0), Item(HCCL_RECV, 0)}, 0).ok());
  EXPECT_EQ(CheckItems(std::vector{Item(HCCL_SEND, 0)}, 0).result, HCCL_E_PARA);
  EXPECT_EQ(CheckItems(std::vector{Item(HCCL_RECV, 0)}, 0).result, HCCL_E_PARA);
  EXPECT_EQ(CheckItems(std::vector{Item(HCCL_SEND, 0), Item(HCCL_RECV, 0, 5)}, 0).result,
            HCCL_E_PARA);
  EXPECT_EQ(
      CheckItems(std::vector{Item(HCCL_SEND, 0), Item(HCCL_RECV, 0, 4, HCCL_DATA_TYPE_INT8)}, 0)
          .result,
      HCCL_E_PARA);
}

TEST(Blocks, EndIsWhereTheLastBlockEnds) {
  const uint64_t counts[] = {2, 0, 3};
  const uint64_t at[] = {10, 99, 4};
  const Blocks blocks = Blocks::Copy(counts, at, 3);
  EXPECT_EQ(blocks.end(), 12u);
  EXPECT_EQ(blocks.largest(), 3u);
  EXPECT_FALSE(blocks.none());
  const uint64_t far[] = {UINT64_MAX, 0, 0};
  EXPECT_GT(Blocks::Copy(counts, far, 3).end(), uint64_t{1} << 55);
  EXPECT_TRUE(Blocks::Copy(nullptr, at, 3).none());
}

TEST(MemoryRanges, KeepTheirRules) {
  MemoryRanges ranges;
  const auto at = [](uintptr_t address) { return reinterpret_cast<const void*>(address); };
  EXPECT_EQ(ranges.Set(at(0x1000), 0).result, HCCL_E_PARA);
  EXPECT_TRUE(ranges.Set(at(0x1000), 0x1000).ok());
  EXPECT_EQ(ranges.Set(at(0x1fff), 1).result, HCCL_E_PARA);
  EXPECT_TRUE(ranges.Set(at(0x2000), 0x1000).ok());
  EXPECT_TRUE(ranges.Activate(at(0x1000), 0x800).ok());
  EXPECT_EQ(ranges.Activate(at(0x17ff), 1).result, HCCL_E_PARA);
  EXPECT_EQ(ranges.Activate(at(0x1800), 0x1000).result, HCCL_E_PARA);  // across two ranges
  EXPECT_EQ(ranges.Activate(at(0x4000), 1).result, HCCL_E_PARA);
  EXPECT_EQ(ranges.Unset(at(0x1000)).result, HCCL_E_PARA);  // an active block remains
  EXPECT_EQ(ranges.Deactivate(at(0x1400)).result, HCCL_E_PARA);
  EXPECT_TRUE(ranges.Deactivate(at(0x1000)).ok());
  EXPECT_TRUE(ranges.Unset(at(0x1000)).ok());
  EXPECT_EQ(ranges.Unset(at(0x1000)).result, HCCL_E_PARA);
}

TEST(ErrorStrings, AreTheVendors) {
  EXPECT_STREQ(HcclGetErrorString(HCCL_SUCCESS), "no error");
  EXPECT_STREQ(HcclGetErrorString(HCCL_E_REMOTE), "error cqe");
  EXPECT_STREQ(HcclGetErrorString(HCCL_E_OOM), "out of memory");
  EXPECT_STREQ(HcclGetErrorString(static_cast<HcclResult>(25)), "unknown err");
  EXPECT_STREQ(HcclGetErrorString(HCCL_E_IN_STATUS), "unknown err");
  EXPECT_STREQ(HcclGetErrorString(HCCL_E_RESERVED), "unknown error");
  EXPECT_STREQ(HcclGetErrorString(static_cast<HcclResult>(-1)), "unknown error");
}

}  // namespace
}  // namespace npumesh
