// The file of session.modify_mixlist.
#include "graph/config/mix_list.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "graph/config/option_tables.h"
#include "graph/config/validation.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class MixListTest : public testing::Test {
 protected:
  ~MixListTest() override { std::filesystem::remove(path_); }

  Result<MixList> Read(const std::string& text) {
    std::ofstream(path_) << text;
    return ReadMixList(path_);
  }

  const std::string path_ = testing::TempDir() + "mix_list_test.json";
};

TEST_F(MixListTest, ListsArriveWhereTheyBelong) {
  const Result<MixList> lists = Read(
      R"({"black-list": {"to-add": ["Sqrt", "Add"], "to-remove": ["Exp"]},
          "white-list": {"to-remove": ["MatMul"], "to-add": ["Gelu"]}})");
  ASSERT_TRUE(lists.ok()) << lists.status().ToString();
  EXPECT_THAT(lists->black.add, ElementsAre("Sqrt", "Add"));
  EXPECT_THAT(lists->black.remove, ElementsAre("Exp"));
  EXPECT_THAT(lists->white.add, ElementsAre("Gelu"));
  EXPECT_THAT(lists->white.remove, ElementsAre("MatMul"));
}

TEST_F(MixListTest, ListsMayBeLeftOut) {
  const Result<MixList> lists = Read(R"({"white-list": {}})");
  ASSERT_TRUE(lists.ok()) << lists.status().ToString();
  EXPECT_THAT(lists->white.add, IsEmpty());
  EXPECT_THAT(lists->black.remove, IsEmpty());
}

TEST_F(MixListTest, MistakesAreNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"no json", "found text that is no JSON"},
      {"[1]", "found array"},
      {R"({"gray-list": {}})", "found \"gray-list\""},
      {R"({"black-list": ["Add"]})", "black-list: expected an object with \"to-add\""},
      {R"({"black-list": {"add": ["Add"]}})", "black-list: expected an object with \"to-add\""},
      {R"({"black-list": {"to-add": "Add"}})", "black-list.to-add: expected a list"},
      {R"({"white-list": {"to-remove": [1]}})", "white-list.to-remove: expected a list"},
      {R"({"white-list": {"to-remove": [""]}})", "white-list.to-remove: expected a list"},
      {R"({"white-list": {"to-add": ["A"], "to-remove": ["A"]}})",
       "\"A\" is in to-add and to-remove of white-list"},
      {R"({"white-list": {"to-add": ["A"]}, "black-list": {"to-add": ["A"]}})",
       "\"A\" is added to black-list and to white-list"},
  };
  for (const auto& [text, answer] : cases) {
    const Result<MixList> lists = Read(text);
    ASSERT_FALSE(lists.ok()) << text;
    EXPECT_EQ(lists.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(lists.status().message()), HasSubstr(answer));
    EXPECT_THAT(std::string(lists.status().message()), HasSubstr(path_));
  }
}

// A file that is cut short at any byte is refused.
TEST_F(MixListTest, CutFilesAreRefused) {
  const std::string text = R"({"black-list": {"to-add": ["Sqrt"], "to-remove": ["Exp"]}})";
  for (size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(Read(text.substr(0, bytes)).ok()) << bytes;
  }
  EXPECT_TRUE(Read(text).ok());
}

TEST_F(MixListTest, TheOptionReadsItsFile) {
  SystemOptions options;
  options.precision_mode = "allow_mix_precision";
  options.modify_mixlist = path_;
  EXPECT_THAT(std::string(Validate(options).message()), HasSubstr("No such file"));
  ASSERT_FALSE(Read(R"({"black-list": 1})").ok());
  EXPECT_THAT(std::string(Validate(options).message()), HasSubstr("session.modify_mixlist"));
  EXPECT_THAT(std::string(Validate(options).message()), HasSubstr("black-list: expected"));
  ASSERT_TRUE(Read("{}").ok());
  EXPECT_TRUE(Validate(options).ok());
  EXPECT_THAT(NoticesOf(options), IsEmpty());
  options.precision_mode = "force_fp16";
  EXPECT_THAT(NoticesOf(options), ElementsAre(HasSubstr("modify_mixlist has no effect beside "
                                                        "session.precision_mode=force_fp16")));
}

}  // namespace
}  // namespace npumesh
