#include "runtime/device/hbm_size.h"

#include <gtest/gtest.h>

#include "runtime/device/device_memory.h"

namespace npumesh {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(ChooseHbmBytes, UnsetMeansTheSocsSizeCutToTheLeastShare) {
  EXPECT_EQ(*ChooseHbmBytes({{0, 100 * kGiB}}, {0}), kSocHbmBytes);
  EXPECT_EQ(*ChooseHbmBytes({{0, 5 * kGiB}, {0, 3 * kGiB + 7}, {0, 4 * kGiB}}, {0, 1, 2}),
            3 * kGiB);
  EXPECT_EQ(*ChooseHbmBytes({{0, 0}}, {0}), 2 * kMiB);
}

TEST(ChooseHbmBytes, WhatWasAskedIsGivenWhenItIsThere) {
  EXPECT_EQ(*ChooseHbmBytes({{3 * kMiB, kGiB}, {3 * kMiB, kGiB}}, {0, 1}), 3 * kMiB);
  EXPECT_EQ(*ChooseHbmBytes({{kGiB, kGiB}}, {0}), kGiB);
}

TEST(ChooseHbmBytes, AskingForMoreThanThereIsSaysBoth) {
  const Status status = ChooseHbmBytes({{4096, 4096}, {4096, 4095}}, {2, 3}).status();
  EXPECT_EQ(status.code(), Code::kOutOfMemory);
  EXPECT_EQ(status.message(),
            "device memory: 4096 bytes asked for each of 2 ranks of this node, but there are 4095 "
            "bytes for each; set NPUMESH_HBM_SIZE to at most that, or unset it");
}

TEST(ChooseHbmBytes, DifferentWishesAreAMismatch) {
  const Status status = ChooseHbmBytes({{kMiB, kGiB}, {kMiB, kGiB}, {0, kGiB}}, {4, 5, 6}).status();
  EXPECT_EQ(status.code(), Code::kMismatch);
  EXPECT_EQ(
      status.message(),
      "NPUMESH_HBM_SIZE differs between ranks of one node: 1048576 bytes on rank 4, 0 on rank "
      "6 (0: unset); set it alike");
}

}  // namespace
}  // namespace npumesh
