#include "runtime/base/files/named_path.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

TEST(NamedPath, SaysWhatIsThere) {
  const TemporaryFolder folder;
  std::ofstream(folder.Path("file")) << "x";
  EXPECT_TRUE(NeedFolder(folder.path(), "").ok());
  EXPECT_TRUE(NeedAnything(folder.Path("file")).ok());
  struct Case {
    std::string path;
    Code code;
    std::string words;
  };
  const Case cases[] = {
      {folder.Path("none"), Code::kNotFound, ": no such folder; name a folder"},
      {folder.Path("file"), Code::kInvalidArgument, " is a file, not a folder; name a folder"},
      {folder.Path("file/x"), Code::kNotFound, ": a part of this path is a file; name a folder"},
  };
  for (const Case& each : cases) {
    const Status status = NeedFolder(each.path, "name a folder");
    EXPECT_EQ(status.code(), each.code) << each.path;
    EXPECT_EQ(status.message(), each.path + each.words);
  }
  EXPECT_EQ(NeedAnything(folder.Path("none")).message(),
            folder.Path("none") + ": no such file or folder");
}

// A folder that this user may not enter looked as if nothing were there.
TEST(NamedPath, SaysThatAFolderCannotBeEntered) {
  if (geteuid() == 0) GTEST_SKIP() << "root enters every folder";
  const TemporaryFolder folder;
  ASSERT_EQ(mkdir(folder.Path("shut").c_str(), 0700), 0);
  std::ofstream(folder.Path("shut/file")) << "x";
  ASSERT_EQ(chmod(folder.Path("shut").c_str(), 0), 0);
  for (const Status& status :
       {NeedFolder(folder.Path("shut/file"), ""), NeedAnything(folder.Path("shut/file"))}) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message(), folder.Path("shut/file") + " cannot be reached: Permission denied");
  }
  ASSERT_EQ(chmod(folder.Path("shut").c_str(), 0700), 0);
}

}  // namespace
}  // namespace npumesh
