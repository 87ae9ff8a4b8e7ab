// The weights that run are those of the package that was named.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// Tests run in the folder that paths are recorded relative to.
class CliPackage : public testing::Test {
 protected:
  void SetUp() override {
    before_ = fs::current_path();
    fs::current_path(folder_.path());
    folder_.PutTensor("in", 0, 1);
  }
  void TearDown() override { fs::current_path(before_); }

  // What y = x + w says of w.
  CommandRun RunPackage(const std::string& name, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"run", name, "--inputs", "in"});
    return RunAlone(more);
  }

  const TestFolder folder_;
  fs::path before_;
};

TEST_F(CliPackage, AnotherPackageIsNotTakenAndIsNamed) {
  folder_.PutPackage("good", "./good/w", 10);
  folder_.PutPackage("bad", "./good/w", 20);
  const CommandRun good = RunPackage("good");
  EXPECT_THAT(good.out, HasSubstr("output 0 float32[4]: min 11 max 11"));
  EXPECT_EQ(good.err, "");
  const CommandRun bad = RunPackage("bad");
  EXPECT_EQ(bad.code, 0) << bad.err;
  EXPECT_THAT(bad.out, HasSubstr("output 0 float32[4]: min 21 max 21"));
  EXPECT_THAT(bad.err, HasSubstr("npumesh run: warning: weight file "));
  EXPECT_THAT(bad.err, HasSubstr("bad/w is taken from the package; \"./good/w\" below the working "
                                 "directory has the same name and other content"));
  // The same bytes are no reason for a word.
  folder_.PutPackage("bad", "./good/w", 10);
  EXPECT_EQ(RunPackage("bad").err, "");
}

TEST_F(CliPackage, AMissingWeightIsNotHiddenByAnotherPackage) {
  folder_.PutPackage("good", "./good/w", 10);
  folder_.PutPackage("bad", "./good/w", 20);
  fs::remove("bad/w");
  const CommandRun valid = RunAlone({"validate", "bad"});
  EXPECT_EQ(valid.code, 1) << valid.out;
  EXPECT_THAT(valid.out, HasSubstr("is in none of: "));
  const CommandRun run = RunPackage("bad");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("bad lacks weight files; taken from outside: "));
}

TEST_F(CliPackage, AbsolutePathsOutsideArePrintedByEveryCommandThatReads) {
  folder_.PutPackage("other", "none", 30);
  folder_.PutPackage("mp", folder_ / "other/w", 20);
  const std::string warning =
      "weight file " + (folder_ / "other/w") + " is outside of the package ";
  const CommandRun run = RunPackage("mp");
  EXPECT_THAT(run.out, HasSubstr("min 31 max 31"));
  EXPECT_THAT(run.err, HasSubstr("npumesh run: warning: " + warning));
  EXPECT_THAT(RunAlone({"graph", "mp/export.air"}).err,
              HasSubstr("npumesh graph: warning: " + warning));
  EXPECT_THAT(RunAlone({"validate", "mp"}).out, HasSubstr("warning: export.air: " + warning));
  EXPECT_THAT(RunAlone({"export", "mp", "--path", "copy"}).err,
              HasSubstr("npumesh export: warning: " + warning));
}

TEST_F(CliPackage, LinksThatLeadOutNeedAWord) {
  folder_.PutPackage("other", "none", 30);
  folder_.PutPackage("mp", "mp/w", 20);
  fs::remove("mp/w");
  fs::create_symlink("../other/w", "mp/w");
  const std::vector<std::vector<std::string>> commands = {{"run", "mp", "--inputs", "in"},
                                                          {"graph", "mp/export.air"},
                                                          {"validate", "mp"},
                                                          {"export", "mp", "--path", "copy"}};
  for (std::vector<std::string> words : commands) {
    const CommandRun refused = RunAlone(words);
    EXPECT_EQ(refused.code, words[0] == "validate" ? 1 : 3) << words[0];
    EXPECT_THAT(refused.out + refused.err, HasSubstr("is a link that leads out of ")) << words[0];
    EXPECT_FALSE(fs::exists("copy")) << words[0];
    words.push_back("--allow-outside");
    const CommandRun followed = RunAlone(words);
    EXPECT_EQ(followed.code, 0) << words[0] << ": " << followed.out << followed.err;
  }
}

}  // namespace
}  // namespace npumesh
