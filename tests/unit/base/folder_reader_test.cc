#include "runtime/base/files/folder_reader.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <fstream>
#include <set>

#include "tests/unit/base/temporary_folder.h"

namespace npumesh::testing {
namespace {

std::set<std::string> NamesIn(FolderReader& folder) {
  std::set<std::string> names;
  while (const char* const name = folder.Next()) names.insert(name);
  return names;
}

TEST(FolderReader, GivesEachNameAndNotTheFolderItself) {
  const TemporaryFolder folder;
  for (const char* name : {"a", ".hidden", "..b"}) std::ofstream(folder.path() + "/" + name);
  FolderReader reader(folder.path());
  EXPECT_THAT(NamesIn(reader), ::testing::ElementsAre("..b", ".hidden", "a"));
  EXPECT_EQ(reader.error(), 0);
  EXPECT_EQ(reader.Next(), nullptr);
}

TEST(FolderReader, AnEmptyFolderHasNoNames) {
  const TemporaryFolder folder;
  FolderReader reader(folder.path());
  EXPECT_EQ(reader.Next(), nullptr);
  EXPECT_EQ(reader.error(), 0);
}

TEST(FolderReader, SaysWhyAFolderCannotBeRead) {
  FolderReader missing("/proc/self/no_such_folder");
  EXPECT_EQ(missing.Next(), nullptr);
  EXPECT_EQ(missing.error(), ENOENT);
  FolderReader file("/proc/self/stat");
  EXPECT_EQ(file.Next(), nullptr);
  EXPECT_EQ(file.error(), ENOTDIR);
}

}  // namespace
}  // namespace npumesh::testing
