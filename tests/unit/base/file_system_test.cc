#include "runtime/base/files/file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/flaky_file_system.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

TEST(RealFileSystem, CreatesOnlyWhatIsNotThere) {
  const TemporaryFolder folder;
  FileSystem& fs = RealFileSystem();
  ASSERT_TRUE(fs.Create(folder.Path("a"), 0600).ok());
  const auto again = fs.Create(folder.Path("a"), 0600);
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().code(), Code::kIo);
  EXPECT_EQ(again.status().message(),
            fmt::format("cannot create {}: File exists", folder.Path("a")));
}

TEST(RealFileSystem, DoesNotCreateThroughADanglingLink) {
  const TemporaryFolder folder;
  ASSERT_EQ(symlink(folder.Path("elsewhere").c_str(), folder.Path("link").c_str()), 0);
  EXPECT_FALSE(RealFileSystem().Create(folder.Path("link"), 0600).ok());
  EXPECT_THAT(folder.List(), testing::ElementsAre("link"));
}

TEST(RealFileSystem, RenamesAndRemoves) {
  const TemporaryFolder folder;
  FileSystem& fs = RealFileSystem();
  ASSERT_TRUE(WriteFile(folder.Path("a"), "a", FileKind::kData).ok());
  ASSERT_TRUE(WriteFile(folder.Path("b"), "b", FileKind::kData).ok());
  ASSERT_TRUE(fs.Rename(folder.Path("a"), folder.Path("b")).ok());
  EXPECT_EQ(*ReadFile(folder.Path("b")), "a");
  EXPECT_EQ(fs.Rename(folder.Path("a"), folder.Path("b")).code(), Code::kIo);
  ASSERT_TRUE(fs.Remove(folder.Path("b")).ok());
  EXPECT_TRUE(fs.Remove(folder.Path("b")).ok());
}

TEST(RealFileSystem, RemovesOnlyEmptyFolders) {
  const TemporaryFolder folder;
  FileSystem& fs = RealFileSystem();
  ASSERT_TRUE(fs.MakeFolder(folder.Path("f"), 0750).ok());
  ASSERT_TRUE(WriteFile(folder.Path("f/a"), "a", FileKind::kData).ok());
  EXPECT_EQ(fs.Remove(folder.Path("f")).code(), Code::kIo);
  EXPECT_EQ(*ReadFile(folder.Path("f/a")), "a");
  ASSERT_TRUE(fs.Remove(folder.Path("f/a")).ok());
  EXPECT_TRUE(fs.Remove(folder.Path("f")).ok());
}

TEST(RealFileSystem, MakesFolders) {
  const TemporaryFolder folder;
  FileSystem& fs = RealFileSystem();
  EXPECT_TRUE(fs.MakeFolder(folder.Path("f"), 0750).ok());
  EXPECT_TRUE(fs.MakeFolder(folder.Path("f"), 0750).ok());
  EXPECT_TRUE(fs.SyncFolder(folder.Path("f")).ok());
  EXPECT_EQ(fs.MakeFolder(folder.Path("g/h"), 0750).code(), Code::kIo);
  EXPECT_EQ(fs.SyncFolder(folder.Path("g")).code(), Code::kIo);
  ASSERT_TRUE(WriteFile(folder.Path("file"), "", FileKind::kData).ok());
  EXPECT_EQ(fs.MakeFolder(folder.Path("file"), 0750).code(), Code::kIo);
  ASSERT_EQ(symlink(folder.Path("f").c_str(), folder.Path("link").c_str()), 0);
  EXPECT_EQ(fs.MakeFolder(folder.Path("link"), 0750).code(), Code::kIo);
}

TEST(FlakyFileSystem, FailsExactlyOnce) {
  const TemporaryFolder folder;
  FlakyFileSystem fs(2);
  EXPECT_TRUE(fs.MakeFolder(folder.Path("a"), 0750).ok());
  EXPECT_FALSE(fs.failed());
  EXPECT_EQ(fs.MakeFolder(folder.Path("b"), 0750).code(), Code::kIo);
  EXPECT_TRUE(fs.failed());
  EXPECT_TRUE(fs.MakeFolder(folder.Path("c"), 0750).ok());
  EXPECT_THAT(folder.List(), testing::ElementsAre("a", "c"));
}

}  // namespace
}  // namespace npumesh
