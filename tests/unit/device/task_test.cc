#include "runtime/device/task.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

namespace npumesh {
namespace {

// Work that fits into a task, and work that does not.
template <size_t kBytes>
Task Adding(const std::shared_ptr<int>& sum) {
  return [sum, room = std::array<std::byte, kBytes>()] {
    *sum += static_cast<int>(room.size());
    return Status();
  };
}

template <typename Make>
void HoldsItsWorkOnce(Make make, int bytes) {
  const auto sum = std::make_shared<int>(0);
  {
    Task task = make(sum);
    EXPECT_TRUE(static_cast<bool>(task));
    EXPECT_EQ(sum.use_count(), 2);
    Task other = std::move(task);
    EXPECT_FALSE(static_cast<bool>(task));  // NOLINT: what a moved task is
    EXPECT_EQ(sum.use_count(), 2);
    EXPECT_TRUE(other().ok());
    task = std::move(other);
    EXPECT_TRUE(task().ok());
    task = make(sum);
    EXPECT_EQ(sum.use_count(), 2);
    EXPECT_TRUE(task.Finish().ok());
    EXPECT_FALSE(static_cast<bool>(task));
    EXPECT_EQ(sum.use_count(), 1);
    task = make(sum);
    EXPECT_EQ(sum.use_count(), 2);
  }
  EXPECT_EQ(*sum, 3 * bytes);
  EXPECT_EQ(sum.use_count(), 1);
}

TEST(Task, HoldsSmallWork) {
  HoldsItsWorkOnce(Adding<8>, 8);
}

TEST(Task, HoldsLargeWork) {
  static_assert(Task::kInlineBytes < 200);
  HoldsItsWorkOnce(Adding<200>, 200);
}

TEST(Task, TakesWhatCannotBeCopied) {
  Task task = [number = std::make_unique<int>(7)] {
    return *number == 7 ? Status() : Error(Code::kInternal, "{}", *number);
  };
  EXPECT_TRUE(task().ok());
}

TEST(Task, ReturnsWhatTheWorkReturns) {
  Task task = [] { return Error(Code::kTimeout, "late"); };
  EXPECT_EQ(task().code(), Code::kTimeout);
}

}  // namespace
}  // namespace npumesh
