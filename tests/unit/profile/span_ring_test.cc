#include "runtime/profile/span_ring.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace npumesh {
namespace {

Span Numbered(uint64_t number, uint32_t writer = 0) {
  Span span;
  span.number = number;
  span.subject = writer;
  return span;
}

TEST(SpanRing, GivesSpansInTheirOrder) {
  SpanRing ring;
  ring.Open();
  Span span;
  EXPECT_FALSE(ring.Pop(span));
  for (uint64_t round = 0; round < 3 * SpanRing::kSlots; round += 1000) {
    for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(ring.Push(Numbered(round + i)));
    for (uint64_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(ring.Pop(span));
      ASSERT_EQ(span.number, round + i);
    }
  }
  EXPECT_FALSE(ring.Pop(span));
}

TEST(SpanRing, RefusesWhenItIsFull) {
  SpanRing ring;
  EXPECT_FALSE(ring.Push(Span()));
  ring.Open();
  for (uint64_t i = 0; i < SpanRing::kSlots; ++i) ASSERT_TRUE(ring.Push(Numbered(i)));
  EXPECT_FALSE(ring.Push(Span()));
  Span span;
  ASSERT_TRUE(ring.Pop(span));
  EXPECT_EQ(span.number, 0u);
  EXPECT_TRUE(ring.Push(Numbered(SpanRing::kSlots)));
  EXPECT_FALSE(ring.Push(Span()));
}

TEST(SpanRing, IsEmptyWhenItIsOpenedAgain) {
  SpanRing ring;
  ring.Open();
  ASSERT_TRUE(ring.Push(Numbered(7)));
  ring.Open();
  Span span;
  EXPECT_FALSE(ring.Pop(span));
  ASSERT_TRUE(ring.Push(Numbered(8)));
  ASSERT_TRUE(ring.Pop(span));
  EXPECT_EQ(span.number, 8u);
}

// Each writer's spans arrive whole and in its order.
TEST(SpanRing, SeveralThreadsWrite) {
  constexpr uint32_t kWriters = 3;
  constexpr uint64_t kSpans = 60'000;
  SpanRing ring;
  ring.Open();
  std::vector<std::thread> writers;
  for (uint32_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&ring, writer] {
      for (uint64_t i = 0; i < kSpans; ++i) {
        while (!ring.Push(Numbered(i, writer))) std::this_thread::yield();
      }
    });
  }
  std::vector<uint64_t> next(kWriters, 0);
  for (uint64_t seen = 0; seen < kWriters * kSpans;) {
    Span span;
    if (!ring.Pop(span)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(span.number, next[span.subject]++);
    ++seen;
  }
  for (std::thread& writer : writers) writer.join();
}

}  // namespace
}  // namespace npumesh
