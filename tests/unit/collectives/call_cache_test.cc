#include <gmock/gmock.h>

#include "collectives/prepared_call.h"

namespace npumesh {
namespace {

const std::byte kBuffer[1024] = {};

Call CallOf(uint64_t count) {
  Call call{CollectiveKind::kAllReduce, DataType::kFloat, ReduceOp::kSum, 0, count};
  call.send = kBuffer;
  return call;
}

void Keep(CallCache& cache, const Call& call, std::string node) {
  PreparedCall& place = cache.PlaceFor(call);
  place = PreparedCall{call, std::move(node)};
}

TEST(CallCache, KnowsWhatWasAskedBefore) {
  CallCache cache;
  EXPECT_EQ(cache.Find(CallOf(8), "a"), nullptr);
  Keep(cache, CallOf(8), "a");
  ASSERT_NE(cache.Find(CallOf(8), "a"), nullptr);
  EXPECT_EQ(cache.Find(CallOf(8), "a")->node, "a");
}

TEST(CallCache, AnyDifferenceIsAnotherCall) {
  CallCache cache;
  const Call kept = CallOf(8);
  Keep(cache, kept, "a");
  EXPECT_EQ(cache.Find(kept, "b"), nullptr);
  const auto differs = [&](auto change) {
    Call call = kept;
    change(call);
    return cache.Find(call, "a") == nullptr;
  };
  EXPECT_TRUE(differs([](Call& c) { c.kind = CollectiveKind::kBroadcast; }));
  EXPECT_TRUE(differs([](Call& c) { c.dtype = DataType::kInt32; }));
  EXPECT_TRUE(differs([](Call& c) { c.op = ReduceOp::kMax; }));
  EXPECT_TRUE(differs([](Call& c) { c.root = 1; }));
  EXPECT_TRUE(differs([](Call& c) { c.count = 9; }));
  EXPECT_TRUE(differs([](Call& c) { c.send = kBuffer + 64; }));
  EXPECT_TRUE(differs([](Call& c) { c.recv = const_cast<std::byte*>(kBuffer); }));
}

TEST(CallCache, CallsThatShareAPlacePushEachOtherOut) {
  CallCache cache;
  for (uint64_t count = 1; count <= 100; ++count) {
    Keep(cache, CallOf(count), "a");
    ASSERT_NE(cache.Find(CallOf(count), "a"), nullptr);
  }
  int kept = 0;
  for (uint64_t count = 1; count <= 100; ++count) kept += cache.Find(CallOf(count), "a") != nullptr;
  EXPECT_GT(kept, 1);
  EXPECT_LE(kept, 16);
}

// Their lists belong to the caller and may be gone.
TEST(CallCache, CallsWithBlockListsAreNotKept) {
  CallCache cache;
  Call call = CallOf(0);
  const std::vector<uint64_t> list = {4, 4};
  call.send_bytes = call.send_at = call.recv_bytes = call.recv_at = list;
  Keep(cache, call, "a");
  EXPECT_EQ(cache.Find(call, "a"), nullptr);
}

}  // namespace
}  // namespace npumesh
