#include "graph/static_kernel/record/output_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/flaky_file_system.h"
#include "tests/unit/base/plain_user.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// 2026-11-22 19:20:02.000007 UTC, standing still.
std::chrono::system_clock::time_point Noon() {
  return std::chrono::system_clock::time_point(std::chrono::microseconds(1795375202000007));
}

class OutputTreeTest : public testing::Test {
 protected:
  OutputTreeTest() {
    setenv("TZ", "UTC-1", 1);  // an hour east, so that local time is not UTC
    tzset();
  }
  ~OutputTreeTest() override {
    unsetenv("TZ");
    tzset();
  }
  std::string OutputsOf(const std::string& build_dir) const {
    return build_dir + "/aclnn_static_shape_kernel_outputs";
  }
  std::string Refusal(const std::string& build_dir) const {
    const Result<OutputTree> tree = OutputTree::Create(build_dir);
    EXPECT_FALSE(tree.ok());
    EXPECT_EQ(tree.status().code(), Code::kInvalidArgument) << tree.status().message();
    return std::string(tree.status().message());
  }

  const TemporaryFolder folder_;
  const std::string pid_ = std::to_string(getpid());
};

TEST_F(OutputTreeTest, HasTheNamesOfTheVendor) {
  Result<OutputTree> tree = OutputTree::Create(folder_.path(), RealFileSystem(), Noon);
  ASSERT_TRUE(tree.ok()) << tree.status().message();
  EXPECT_EQ(tree->folder(),
            OutputsOf(folder_.path()) + "/20261122202002000007_" + pid_ + "_outputs");
  EXPECT_THAT(NamesIn(tree->folder()), ElementsAre(pid_, pid_ + "_debug"));
  EXPECT_EQ(tree->PackagePath(), tree->folder() + "/static_kernel_20261122202002.run");
}

TEST_F(OutputTreeTest, FoldersAreNotForOthers) {
  const mode_t before = umask(0);
  const Result<OutputTree> tree = OutputTree::Create(folder_.path());
  umask(before);
  ASSERT_TRUE(tree.ok());
  for (const std::string& path :
       {OutputsOf(folder_.path()), tree->folder(), tree->folder() + "/" + pid_,
        tree->folder() + "/" + pid_ + "_debug"}) {
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0750u) << path;
  }
}

TEST_F(OutputTreeTest, EachPackageHasANewName) {
  Result<OutputTree> tree = OutputTree::Create(folder_.path(), RealFileSystem(), Noon);
  ASSERT_TRUE(tree.ok());
  EXPECT_THAT(tree->PackagePath(), HasSubstr("_20261122202002.run"));
  EXPECT_THAT(tree->PackagePath(), HasSubstr("_20261122202003.run"));
  EXPECT_THAT(tree->PackagePath(), HasSubstr("_20261122202004.run"));
}

TEST_F(OutputTreeTest, RecordsAreWrittenOnceAndCounted) {
  Result<OutputTree> tree = OutputTree::Create(folder_.path());
  ASSERT_TRUE(tree.ok());
  const OpRecord first{.stem = "MatMulV2_float_ND_1_2048", .json = "{1}\n"};
  const OpRecord same_stem{.stem = "MatMulV2_float_ND_1_2048", .json = "{2}\n"};
  const OpRecord other{.stem = "Add", .json = "{3}\n"};
  for (int twice = 0; twice < 2; ++twice) {
    ASSERT_TRUE(tree->Add(first, true).ok());
    ASSERT_TRUE(tree->Add(other, false).ok());
    ASSERT_TRUE(tree->Add(same_stem, true).ok());
  }
  EXPECT_THAT(NamesIn(tree->folder() + "/" + pid_),
              ElementsAre("MatMulV2_float_ND_1_2048_0.json", "MatMulV2_float_ND_1_2048_1.json"));
  EXPECT_THAT(NamesIn(tree->folder() + "/" + pid_ + "_debug"),
              ElementsAre("Add_1.json", "MatMulV2_float_ND_1_2048_0.json",
                          "MatMulV2_float_ND_1_2048_2.json"));
  EXPECT_EQ(*ReadFile(tree->folder() + "/" + pid_ + "/MatMulV2_float_ND_1_2048_1.json"), "{2}\n");
  EXPECT_EQ(*ReadFile(tree->folder() + "/" + pid_ + "_debug/Add_1.json"), "{3}\n");
}

TEST_F(OutputTreeTest, ARecordThatIsChosenLaterIsWrittenThere) {
  Result<OutputTree> tree = OutputTree::Create(folder_.path());
  ASSERT_TRUE(tree.ok());
  const OpRecord record{.stem = "Add", .json = "{}\n"};
  ASSERT_TRUE(tree->Add(record, false).ok());
  EXPECT_THAT(NamesIn(tree->folder() + "/" + pid_), IsEmpty());
  ASSERT_TRUE(tree->Add(record, true).ok());
  EXPECT_THAT(NamesIn(tree->folder() + "/" + pid_), ElementsAre("Add_0.json"));
  EXPECT_THAT(NamesIn(tree->folder() + "/" + pid_ + "_debug"), ElementsAre("Add_0.json"));
}

TEST_F(OutputTreeTest, AFailureAtAnyCallLeavesNoHalfFileAndCanBeRepeated) {
  for (int fail_at = 1;; ++fail_at) {
    const TemporaryFolder folder;
    FlakyFileSystem fs(fail_at);
    Result<OutputTree> tree = OutputTree::Create(folder.path(), fs);
    if (!tree.ok()) {
      EXPECT_EQ(tree.status().code(), Code::kIo);
      continue;
    }
    const OpRecord record{.stem = "Add", .json = "{}\n"};
    if (const Status status = tree->Add(record, true); !status.ok()) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("injected"));
      EXPECT_TRUE(tree->Add(record, true).ok());
    }
    for (const std::string& kind : {pid_, pid_ + "_debug"}) {
      ASSERT_THAT(NamesIn(tree->folder() + "/" + kind), ElementsAre("Add_0.json"));
      EXPECT_EQ(*ReadFile(tree->folder() + "/" + kind + "/Add_0.json"), "{}\n");
    }
    if (!fs.failed()) break;
  }
}

// Containers: two processes with one pid, in one microsecond.
TEST_F(OutputTreeTest, ATakenNameIsPassedOver) {
  std::set<std::string> folders;
  for (int n = 0; n < 3; ++n) {
    const Result<OutputTree> tree = OutputTree::Create(folder_.path(), RealFileSystem(), Noon);
    ASSERT_TRUE(tree.ok());
    folders.insert(std::filesystem::path(tree->folder()).filename());
  }
  EXPECT_THAT(folders, ElementsAre("20261122202002000007_" + pid_ + "_outputs",
                                   "20261122202002000008_" + pid_ + "_outputs",
                                   "20261122202002000009_" + pid_ + "_outputs"));
}

TEST_F(OutputTreeTest, ProcessesShareABuildFolder) {
  constexpr int kProcesses = 8;
  std::vector<pid_t> children;
  for (int n = 0; n < kProcesses; ++n) {
    children.push_back(fork());
    if (children.back() == 0) {
      alarm(60);
      _exit(OutputTree::Create(folder_.path()).ok() ? 0 : 1);
    }
  }
  for (const pid_t child : children) {
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_EQ(state, 0);
  }
  EXPECT_EQ(NamesIn(OutputsOf(folder_.path())).size(), static_cast<size_t>(kProcesses));
}

TEST_F(OutputTreeTest, WithoutAFolderItIsTheWorkingFolder) {
  const std::filesystem::path before = std::filesystem::current_path();
  ASSERT_TRUE(std::filesystem::create_directory(folder_.Path("sub")));
  std::filesystem::current_path(folder_.path());
  const Result<OutputTree> here = OutputTree::Create("");
  const Result<OutputTree> below = OutputTree::Create("./sub/");
  std::filesystem::current_path(before);
  ASSERT_TRUE(here.ok()) << here.status().message();
  EXPECT_THAT(here->folder(),
              MatchesRegex(OutputsOf(folder_.path()) + "/[0-9]{20}_" + pid_ + "_outputs"));
  ASSERT_TRUE(below.ok()) << below.status().message();
  EXPECT_EQ(NamesIn(OutputsOf(folder_.Path("sub"))).size(), 1u);
}

TEST_F(OutputTreeTest, RefusesPathsThatItDoesNotTrust) {
  EXPECT_THAT(Refusal(std::string("/tmp\0/x", 7)), HasSubstr("\"/tmp\\x00/x\" contains a NUL"));
  EXPECT_THAT(Refusal(folder_.path() + "/../x"), HasSubstr("contains \"..\""));
  EXPECT_THAT(Refusal(".."), HasSubstr("contains \"..\""));
  EXPECT_THAT(Refusal(folder_.Path("gone")), HasSubstr("No such file or directory"));
  ASSERT_TRUE(WriteFile(folder_.Path("file"), "", FileKind::kData).ok());
  EXPECT_THAT(Refusal(folder_.Path("file")), HasSubstr("where " + folder_.Path("file") + " is a"));
  EXPECT_THAT(Refusal(folder_.Path("file/below")), HasSubstr("is a file"));
  EXPECT_THAT(Refusal(folder_.Path("file")), Not(HasSubstr("\n")));
}

TEST_F(OutputTreeTest, ADotInANameIsNoWayUp) {
  ASSERT_TRUE(std::filesystem::create_directory(folder_.Path("..a")));
  EXPECT_TRUE(OutputTree::Create(folder_.Path("..a")).ok());
  EXPECT_TRUE(OutputTree::Create(folder_.Path("./..a//")).ok());
}

TEST_F(OutputTreeTest, RefusesSymbolicLinksAnywhere) {
  ASSERT_TRUE(std::filesystem::create_directories(folder_.Path("real/below")));
  std::filesystem::create_directory_symlink(folder_.Path("real"), folder_.Path("link"));
  for (const char* path : {"link", "link/", "link/below"}) {
    EXPECT_THAT(Refusal(folder_.Path(path)), HasSubstr("the symbolic link " + folder_.Path("link")))
        << path;
  }
  EXPECT_THAT(NamesIn(folder_.Path("real")), ElementsAre("below"));
}

TEST_F(OutputTreeTest, RefusesALinkInThePlaceOfItsFolder) {
  ASSERT_TRUE(std::filesystem::create_directory(folder_.Path("elsewhere")));
  std::filesystem::create_directory_symlink(folder_.Path("elsewhere"), OutputsOf(folder_.path()));
  EXPECT_THAT(Refusal(folder_.path()), HasSubstr("symbolic link"));
  EXPECT_THAT(NamesIn(folder_.Path("elsewhere")), IsEmpty());
}

TEST_F(OutputTreeTest, RefusesAFolderThatMayNotBeWritten) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
  std::string refusal;
  {
    const PlainUser user;
    refusal = Refusal(folder_.path());
  }
  chmod(folder_.path().c_str(), 0700);
  EXPECT_THAT(refusal, HasSubstr("may not be read and written"));
}

TEST_F(OutputTreeTest, SaysWhyAFolderCannotBeMade) {
  ASSERT_TRUE(WriteFile(OutputsOf(folder_.path()), "", FileKind::kData).ok());
  const Result<OutputTree> tree = OutputTree::Create(folder_.path());
  ASSERT_FALSE(tree.ok());
  EXPECT_EQ(tree.status().code(), Code::kIo);
  EXPECT_THAT(std::string(tree.status().message()), HasSubstr(OutputsOf(folder_.path())));
}

}  // namespace
}  // namespace npumesh
