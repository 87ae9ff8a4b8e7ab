#include "launch/msprof/msprof.h"

#include <gmock/gmock.h>

#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using ::testing::HasSubstr;

Status Refused(const std::vector<std::string>& words) {
  const Result<std::string> answer = Msprof(words);
  EXPECT_FALSE(answer.ok());
  return answer.status();
}

TEST(Msprof, SaysWhatItDoes) {
  EXPECT_THAT(*Msprof({"--help"}), HasSubstr("--export=on --output=FOLDER"));
}

TEST(Msprof, RefusesWordsThatItDoesNotHave) {
  const Status unknown = Refused({"--export=on", "--type=db", "--output=x"});
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("--type=db is not part of npumesh's msprof"));
  EXPECT_EQ(Refused({}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Refused({"--export=on"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(Refused({"--output=x"}).code(), Code::kInvalidArgument);
}

TEST(Msprof, WantsAProfile) {
  const TemporaryFolder folder;
  const Status empty = Refused({"--export=on", "--output=" + folder.path()});
  EXPECT_EQ(empty.code(), Code::kNotFound);
  EXPECT_THAT(std::string(empty.message()), HasSubstr(folder.path() + " has no PROF_* folder"));
  EXPECT_EQ(Refused({"--analyze=on", "--output=" + folder.Path("none")}).code(), Code::kNotFound);
}

}  // namespace
}  // namespace npumesh
