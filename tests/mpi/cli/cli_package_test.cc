// The weights that run are those of the package that was named.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string PackageReportText(const std::string& file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

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
  EXPECT_THAT(valid.out, HasSubstr("the package lacks 1 weight"));
  const CommandRun refused = RunPackage("bad", {"--check", "out"});
  EXPECT_EQ(refused.code, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("bad/export.air: the package lacks 1 weight; it is: node "));
  const CommandRun run =
      RunPackage("bad", {"--allow-outside", "--report", "r.json", "--junit", "r.xml"});
  EXPECT_EQ(run.code, 0) << run.err;
  const std::string warning = "bad lacks weight files; taken from outside: good/w";
  EXPECT_THAT(run.err, HasSubstr(warning));
  EXPECT_THAT(PackageReportText("r.json"), HasSubstr(warning));
  EXPECT_THAT(PackageReportText("r.xml"), ContainsRegex("<system-err>warning: .*" + warning));
}

// Weights stood at "../out/..", which led nowhere from any other folder.
TEST_F(CliPackage, AnExportToAPathThatClimbsWorksFromEverywhere) {
  folder_.PutPackage("one", "./one/w", 10);
  fs::create_directories("work");
  fs::current_path("work");
  const CommandRun written =
      RunAlone({"export", "../one", "--path", "../out", "--weight-limit", "0"});
  ASSERT_EQ(written.code, 0) << written.err;
  fs::current_path("..");
  EXPECT_EQ(RunAlone({"validate", "out"}).out.find("warning"), std::string::npos);
  fs::create_directories("deep/er");
  fs::rename("out", "deep/er/renamed");
  const CommandRun run = RunPackage("deep/er/renamed");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("min 11 max 11"));
  EXPECT_EQ(RunAlone({"validate", "deep/er/renamed"}).code, 0);
}

TEST_F(CliPackage, AbsolutePathsOutsideArePrintedByEveryCommandThatReads) {
  folder_.PutPackage("other", "none", 30);
  folder_.PutPackage("mp", folder_ / "other/w", 20);
  const std::string warning =
      "weight file " + (folder_ / "other/w") + " is outside of the package ";
  // The package's own weight comes first.
  EXPECT_THAT(RunPackage("mp").out, HasSubstr("min 21 max 21"));
  EXPECT_THAT(RunPackage("mp").err, HasSubstr("other/w\" has the same name and other content"));
  fs::remove("mp/w");
  EXPECT_EQ(RunPackage("mp").code, 3);
  const CommandRun run = RunPackage("mp", {"--allow-outside"});
  EXPECT_THAT(run.out, HasSubstr("min 31 max 31"));
  EXPECT_THAT(run.err, HasSubstr("npumesh run: warning: " + warning));
  EXPECT_THAT(RunAlone({"graph", "mp/export.air", "--allow-outside"}).err,
              HasSubstr("npumesh graph: warning: " + warning));
  EXPECT_THAT(RunAlone({"validate", "mp", "--allow-outside"}).out,
              HasSubstr("warning: export.air: " + warning));
  EXPECT_THAT(RunAlone({"export", "mp", "--path", "copy", "--allow-outside"}).err,
              HasSubstr("npumesh export: warning: " + warning));
}

// Files appeared where the link leads.
TEST_F(CliPackage, OutputsAreNotWrittenThroughALink) {
  folder_.PutPackage("mp", "mp/w", 20);
  fs::create_directories("target/rank_0");
  fs::create_directory_symlink("target", "link");
  for (const char* outputs : {"link", "link/"}) {
    const CommandRun run = RunPackage("mp", {"--outputs", outputs});
    EXPECT_EQ(run.code, 3) << run.err;
    EXPECT_THAT(run.err, HasSubstr("refusing to write through folder link: it is a symbolic link"));
  }
  EXPECT_TRUE(fs::is_empty("target/rank_0"));
}

TEST_F(CliPackage, AGraphIsLookedInto) {
  folder_.PutPackage("a", "./a/w", 10);
  folder_.PutPackage("b", "./b/w", 20);
  const CommandRun node = RunAlone({"graph", "a/export.air", "--node", "w"});
  EXPECT_EQ(node.code, 0) << node.err;
  EXPECT_THAT(node.out, HasSubstr("weight file \"./a/w\": /"));
  EXPECT_THAT(node.out, testing::EndsWith("/a/w\n"));
  EXPECT_THAT(node.out, HasSubstr("read by Add.x2"));
  const CommandRun none = RunAlone({"graph", "a/export.air", "--node", "ww"});
  EXPECT_EQ(none.code, 3);
  EXPECT_THAT(none.err, HasSubstr("a/export.air: no node is called \"ww\"; did you mean w"));
  const CommandRun diff = RunAlone({"graph", "a/export.air", "--diff", "b/export.air"});
  EXPECT_EQ(diff.code, 1) << diff.err;
  EXPECT_THAT(diff.out, HasSubstr("node \"w\" (FileConstant): 4 of 4 elements differ, first 0: 10, "
                                  "there 20\n1 node differs\n"));
  EXPECT_EQ(RunAlone({"graph", "a/export.air", "--diff", "a/export.air"}).code, 0);
  const CommandRun json = RunAlone({"graph", "a/export.air", "--json", "--html", "page.html"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_THAT(json.out, HasSubstr("\"command\": \"graph\""));
  EXPECT_THAT(json.out, HasSubstr("\"file\": \"./a/w\""));
  EXPECT_THAT(PackageReportText("page.html"), HasSubstr("npumesh graph a/export.air"));
  const CommandRun folder = RunAlone({"graph", "a"});
  EXPECT_EQ(folder.code, 3);
  EXPECT_THAT(folder.err, HasSubstr("a is a folder; name one graph, such as a/export.air"));
}

TEST_F(CliPackage, AFileWhereAFolderIsMeantIsToldAsSuch) {
  folder_.PutPackage("mp", "mp/w", 20);
  EXPECT_THAT(RunPackage("mp/export.air", {"--check", "mp/w"}).err,
              HasSubstr("mp/w is a file, not a folder; name a folder of .npy files"));
  EXPECT_THAT(RunAlone({"validate", "mp/export.air"}).err,
              HasSubstr("mp/export.air is a file, not a folder; name the folder of a package"));
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
