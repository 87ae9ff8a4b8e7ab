#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "collectives/algorithms/algorithm.h"

namespace npumesh {
namespace {

// Whatever the alignment, exactly the block is written.
TEST(CopyBlock, CopiesTheBlockAndNothingElse) {
  std::vector<std::byte> from(5000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 256);
  for (const uint64_t output : {uint64_t{1}, kCopyStreamBytes - 1, kCopyStreamBytes}) {
    for (const size_t bytes : {0, 1, 31, 64, 1000, 4096}) {
      for (const size_t offset : {0, 1, 32, 63}) {
        std::vector<std::byte> to(from.size(), std::byte{0xA5});
        std::vector<std::byte> expected = to;
        std::memcpy(expected.data() + offset, from.data() + 3, bytes);
        CopyBlock(to.data() + offset, from.data() + 3, bytes, output);
        EXPECT_EQ(to, expected) << bytes << " bytes at " << offset << ", output " << output;
      }
    }
  }
}

TEST(CopyBlock, LeavesABlockWhereItIs) {
  std::vector<std::byte> block(64, std::byte{7});
  CopyBlock(block.data(), block.data(), block.size(), kCopyStreamBytes);
  EXPECT_EQ(block, std::vector<std::byte>(64, std::byte{7}));
}

TEST(OutputBytes, CountsAllBlocks) {
  Call call;
  call.dtype = DataType::kFloat;
  call.count = 5;
  EXPECT_EQ(OutputBytes(call, 3), 60u);
  const std::vector<uint64_t> blocks = {8, 0, 16};
  const std::vector<uint64_t> at = {0, 8, 8};
  call.recv_bytes = blocks;
  call.recv_at = at;
  EXPECT_EQ(OutputBytes(call, 3), 24u);
}

}  // namespace
}  // namespace npumesh
