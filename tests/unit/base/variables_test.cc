#include "runtime/base/env/variables.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace npumesh {
namespace {

int initialized[64] = {1};
int zeros[1 << 16];
const int kConstants[64] = {1};
void* const kRelocated[2] = {&initialized, &zeros};  // closed by the loader

TEST(VariablesTest, OnTheStackAndStatic) {
  static int in_function[16] = {};
  int local[16] = {};
  EXPECT_TRUE(IsVariable(local, sizeof local));
  EXPECT_TRUE(IsVariable(initialized, sizeof initialized));
  EXPECT_TRUE(IsVariable(zeros, sizeof zeros));
  EXPECT_TRUE(IsVariable(in_function, sizeof in_function));
  EXPECT_TRUE(IsVariable(&stdout, sizeof stdout));  // of a library, or copied from one
  std::thread([] {
    int local_there = 0;
    EXPECT_TRUE(IsVariable(&local_there, sizeof local_there));
  }).join();
}

TEST(VariablesTest, NeitherConstantsNorWhatWasAllocated) {
  const auto block = std::make_unique<char[]>(100);
  EXPECT_FALSE(IsVariable(block.get(), 100));
  const std::vector<char> large(1 << 24);  // by mmap
  EXPECT_FALSE(IsVariable(large.data(), large.size()));
  EXPECT_FALSE(IsVariable(kConstants, sizeof kConstants));
  EXPECT_FALSE(IsVariable(kRelocated, sizeof kRelocated));
  EXPECT_FALSE(IsVariable("text", 4));
  EXPECT_FALSE(IsVariable(reinterpret_cast<const void*>(&std::abort), 4));
  EXPECT_FALSE(IsVariable(nullptr, 1));
}

TEST(VariablesTest, WhollyOrNotAtAll) {
  int local = 0;
  EXPECT_FALSE(IsVariable(&local, std::numeric_limits<size_t>::max()));
  EXPECT_FALSE(IsVariable(&local, size_t{1} << 30));
  EXPECT_FALSE(IsVariable(zeros, size_t{1} << 30));
  int* of_other = nullptr;
  std::thread([&of_other] {
    int local_there = 0;
    of_other = &local_there;
  }).join();
  EXPECT_FALSE(IsVariable(of_other, sizeof *of_other));
}

}  // namespace
}  // namespace npumesh
