#include "runtime/base/error_list.h"

#include <gtest/gtest.h>

namespace npumesh {
namespace {

TEST(ErrorList, IsOkWhenEmpty) {
  const ErrorList errors;
  EXPECT_TRUE(errors.empty());
  EXPECT_TRUE(errors.Join("graph").ok());
}

TEST(ErrorList, LeavesASingleErrorAsItIs) {
  ErrorList errors;
  errors.Add(Error(Code::kInvalidArgument, "node \"a\": odd"));
  EXPECT_FALSE(errors.empty());
  const Status joined = errors.Join("graph");
  EXPECT_EQ(joined.code(), Code::kInvalidArgument);
  EXPECT_EQ(joined.message(), "node \"a\": odd");
}

TEST(ErrorList, JoinsSeveralWithTheCodeOfTheFirst) {
  ErrorList errors;
  errors.Add(Error(Code::kInvalidArgument, "a"));
  errors.Add(Error(Code::kCorrupt, "b"));
  const Status joined = errors.Join("graph \"g\" cannot be compiled");
  EXPECT_EQ(joined.code(), Code::kInvalidArgument);
  EXPECT_EQ(joined.message(), "graph \"g\" cannot be compiled: 2 errors:\n  a\n  b");
}

TEST(ErrorList, IsUnsupportedWhenOneErrorIs) {
  ErrorList errors;
  errors.Add(Error(Code::kCorrupt, "a"));
  errors.Add(Error(Code::kUnsupported, "b"));
  EXPECT_EQ(errors.Join("graph").code(), Code::kUnsupported);
}

}  // namespace
}  // namespace npumesh
