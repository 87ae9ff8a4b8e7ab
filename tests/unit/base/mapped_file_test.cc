#include "runtime/base/files/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

TEST(MappedFile, ShowsTheWholeFile) {
  const TemporaryFolder folder;
  const std::string content(10'000, 'x');
  ASSERT_TRUE(WriteFile(folder.Path("data"), content, FileKind::kData).ok());
  const auto file = MappedFile::Open(folder.Path("data"));
  ASSERT_TRUE(file.ok());
  ASSERT_EQ((*file)->size(), content.size());
  EXPECT_EQ(std::memcmp((*file)->data(), content.data(), content.size()), 0);
}

TEST(MappedFile, SurvivesTheReplacementOfItsFile) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.Path("data"), "old", FileKind::kData).ok());
  const auto file = MappedFile::Open(folder.Path("data"));
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(WriteFile(folder.Path("data"), "new", FileKind::kData).ok());
  EXPECT_EQ(std::memcmp((*file)->data(), "old", 3), 0);
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.Path("empty"), "", FileKind::kData).ok());
  const auto file = MappedFile::Open(folder.Path("empty"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ((*file)->size(), 0u);
}

TEST(MappedFile, RefusesWhatIsNotAFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(MappedFile::Open(folder.Path("absent")).status().code(), Code::kNotFound);
  EXPECT_EQ(MappedFile::Open(folder.path()).status().code(), Code::kInvalidArgument);
  ASSERT_EQ(mkfifo(folder.Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(MappedFile::Open(folder.Path("pipe")).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace npumesh
