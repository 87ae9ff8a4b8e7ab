#include "runtime/base/status.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace npumesh {
namespace {

constexpr Code kCodes[] = {Code::kOk,          Code::kInvalidArgument, Code::kNotFound,
                           Code::kCorrupt,     Code::kUnsupported,     Code::kIo,
                           Code::kOutOfMemory, Code::kMismatch,        Code::kTimeout,
                           Code::kPeerLost,    Code::kInternal};

TEST(Status, SuccessSaysOk) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.code(), Code::kOk);
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "OK");
  EXPECT_TRUE(status.WithContext("reading").ok());
}

TEST(Status, ContextGoesInFront) {
  const Status status = Error(Code::kIo, "disk {} is full", 3);
  EXPECT_EQ(status.WithContext("dump").WithContext("rank 1").ToString(),
            "IO: rank 1: dump: disk 3 is full");
  EXPECT_EQ(status.ToString(), "IO: disk 3 is full");
}

TEST(Status, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const Code code : kCodes) names.insert(CodeName(code));
  EXPECT_EQ(names.size(), std::size(kCodes));
  EXPECT_EQ(names.count("UNKNOWN"), 0u);
}

TEST(Status, ExitCodesGroupTheCodes) {
  const int expected[] = {0, 3, 3, 3, 3, 4, 4, 5, 5, 5, 4};
  for (size_t i = 1; i < std::size(kCodes); ++i) {
    EXPECT_EQ(ExitCode(Error(kCodes[i], "")), expected[i]) << CodeName(kCodes[i]);
  }
  EXPECT_EQ(ExitCode(Status()), 0);
}

Result<int> Half(int value) {
  if (value % 2 != 0) return Error(Code::kInvalidArgument, "{} is odd", value);
  return value / 2;
}

Result<std::string> Quarter(int value) {
  NPUMESH_ASSIGN_OR_RETURN(const int half, Half(value));
  NPUMESH_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return std::to_string(quarter);
}

TEST(Result, CarriesAValueOrTheReason) {
  EXPECT_EQ(*Quarter(12), "3");
  EXPECT_TRUE(Quarter(12).status().ok());
  EXPECT_EQ(Quarter(14).status().message(), "7 is odd");
}

}  // namespace
}  // namespace npumesh
