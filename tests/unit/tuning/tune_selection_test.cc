// The file that says which operators are tuned.
#include "graph/tuning/tune_selection.h"

#include <gmock/gmock.h>

#include "runtime/base/files/secure_file.h"
#include "tests/unit/tuning/tuning_fixture.h"

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TuneSelectionFile : public ::testing::Test {
 protected:
  Result<TuneSelection> Read(const std::string& text) {
    EXPECT_TRUE(WriteFile(path_, text, FileKind::kConfig).ok());
    return ReadTuneSelection(path_);
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.Path("tune.cfg");
};

TEST_F(TuneSelectionFile, OfTheVendorIsRead) {
  const auto read = Read(
      R"({"tune_ops_name":["bert/add_1","loss/MatMul"], "tune_ops_type":["Add", "Mul"],
          "tune_optimization_level": "O1"})");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_THAT(read->names, ElementsAre("bert/add_1", "loss/MatMul"));
  EXPECT_THAT(read->types, ElementsAre("Add", "Mul"));
  EXPECT_TRUE(read->quick);
  EXPECT_FALSE(Read("{}")->quick);
}

TEST_F(TuneSelectionFile, UnknownMembersAreToldOnce) {
  testing::AdviceLog advice;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Read(R"({"feature": ["deeper_opat"]})").ok());
  EXPECT_THAT(advice.said(), ElementsAre(HasSubstr(path_ + ": feature has no effect; known are")));
}

TEST_F(TuneSelectionFile, WrongOnesAreErrors) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "found text that is no JSON"},
      {"[1]", "found array"},
      {R"({"tune_ops_type": "Add"})", "tune_ops_type: expected a list of texts"},
      {R"({"tune_ops_name": [1]})", "tune_ops_name: expected a list of texts"},
      {R"({"tune_optimization_level": "O3"})", "expected \"O1\" or \"O2\", found \"O3\""},
  };
  for (const auto& [text, answer] : cases) {
    const auto read = Read(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(path_));
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(answer));
  }
  EXPECT_EQ(ReadTuneSelection(folder_.Path("absent")).status().code(), Code::kNotFound);
}

TEST(TuneSelection, MatchesWholeNamesAndTypes) {
  const TunableStep step = testing::StepOf(4);  // way_1, Way
  EXPECT_TRUE(TuneSelection().Has(step));
  EXPECT_TRUE(TuneSelection({.names = {"x", "way_1"}, .types = {}}).Has(step));
  EXPECT_TRUE(TuneSelection({.names = {"x"}, .types = {"Way"}}).Has(step));
  EXPECT_FALSE(TuneSelection({.names = {"way"}, .types = {"Wa"}}).Has(step));
}

}  // namespace
}  // namespace npumesh
