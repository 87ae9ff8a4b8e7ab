#include "runtime/base/files/secure_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "tests/unit/base/flaky_file_system.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

mode_t ModeOf(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

// Sets the umask of this process while it lives.
class Umask {
 public:
  explicit Umask(mode_t mask) : before_(umask(mask)) {}
  ~Umask() { umask(before_); }

 private:
  mode_t before_;
};

constexpr struct {
  FileKind kind;
  mode_t file;
} kKinds[] = {
    {FileKind::kConfig, 0640},    {FileKind::kLog, 0440},       {FileKind::kDebug, 0640},
    {FileKind::kGraphDump, 0600}, {FileKind::kDataDump, 0600},  {FileKind::kData, 0640},
    {FileKind::kProgram, 0550},   {FileKind::kTemporary, 0640}, {FileKind::kKernel, 0600}};

TEST(SecureFile, AppearsOnlyAtCommit) {
  const TemporaryFolder folder;
  auto file = SecureFile::Create(folder.Path("out"), FileKind::kData);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE((*file)->Append("hello ").ok());
  ASSERT_TRUE((*file)->Append(std::as_bytes(std::span("world", 5))).ok());
  EXPECT_NE(access(folder.Path("out").c_str(), F_OK), 0);
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(*ReadFile(folder.Path("out")), "hello world");
  EXPECT_THAT(folder.List(), ElementsAre("out"));
}

TEST(SecureFile, CommitUnsyncedSyncsNothingAndIsWholeAllTheSame) {
  for (int fail_at = 0;; ++fail_at) {
    const TemporaryFolder folder;
    FlakyFileSystem fs(fail_at);
    Status status;
    {
      auto file = SecureFile::Create(folder.Path("out"), FileKind::kDataDump, fs);
      status = file.status();
      if (status.ok()) status = (*file)->Append("hello");
      if (status.ok()) status = (*file)->CommitUnsynced();
    }
    if (fail_at == 0) {
      EXPECT_EQ(fs.calls(), 4);  // create, append, close, rename
    }
    EXPECT_EQ(status.ok(), !fs.failed());
    if (status.ok()) {
      EXPECT_EQ(*ReadFile(folder.Path("out")), "hello");
      EXPECT_THAT(folder.List(), ElementsAre("out"));
      if (fail_at > 0) break;
    } else {
      EXPECT_THAT(folder.List(), IsEmpty());
    }
  }
}

TEST(AppendToFile, AddsToWhatIsThere) {
  const TemporaryFolder folder;
  ASSERT_TRUE(AppendToFile(folder.Path("log"), "a\n", FileKind::kDataDump).ok());
  ASSERT_TRUE(AppendToFile(folder.Path("log"), "b\n", FileKind::kDataDump).ok());
  EXPECT_EQ(*ReadFile(folder.Path("log")), "a\nb\n");
  EXPECT_EQ(ModeOf(folder.Path("log")), 0600);
  ASSERT_EQ(symlink("log", folder.Path("link").c_str()), 0);
  EXPECT_EQ(AppendToFile(folder.Path("link"), "c", FileKind::kData).code(), Code::kInvalidArgument);
  EXPECT_EQ(AppendToFile(folder.Path("no/log"), "c", FileKind::kData).code(), Code::kIo);
  EXPECT_EQ(*ReadFile(folder.Path("log")), "a\nb\n");
}

TEST(SecureFile, WithoutCommitNothingIsLeft) {
  const TemporaryFolder folder;
  {
    auto file = SecureFile::Create(folder.Path("out"), FileKind::kData);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Append("half").ok());
    EXPECT_EQ(folder.List().size(), 1u);
  }
  EXPECT_THAT(folder.List(), IsEmpty());
}

TEST(SecureFile, PermissionsAreThoseOfTheTable) {
  const TemporaryFolder folder;
  const Umask none(0);
  for (const auto& [kind, mode] : kKinds) {
    const std::string path = folder.Path(std::to_string(static_cast<int>(kind)));
    ASSERT_TRUE(WriteFile(path, "x", kind).ok());
    EXPECT_EQ(ModeOf(path), mode) << path;
    ASSERT_TRUE(MakeFolders(path + ".folder", kind).ok());
    EXPECT_EQ(ModeOf(path + ".folder"), kind == FileKind::kKernel ? 0700u : 0750u) << path;
  }
  EXPECT_EQ(FileMode(FileKind::kLog), 0640u);
}

// TorchAir's security page: what each kind may have at most.
TEST(SecureFile, NoKindIsWiderThanTheTableAllows) {
  ASSERT_EQ(PermissionTable().size(), std::size(kKinds));
  for (const Permission& row : PermissionTable()) {
    const mode_t most = row.kind == FileKind::kProgram ? 0550u : 0640u;
    EXPECT_EQ(row.file & ~most, 0u) << row.what;
    EXPECT_EQ(row.finished & ~(row.kind == FileKind::kLog ? 0440u : most), 0u) << row.what;
    EXPECT_EQ(row.folder & ~0750u, 0u) << row.what;
    EXPECT_EQ(FileMode(row.kind), row.file);
    EXPECT_EQ(FolderMode(row.kind), row.folder);
    EXPECT_FALSE(row.what.empty());
  }
}

TEST(SecureFile, PermissionsAreNeverWiderThanTheUmask) {
  const TemporaryFolder folder;
  const Umask owner_only(0077);
  for (const auto& [kind, mode] : kKinds) {
    const std::string path = folder.Path(std::to_string(static_cast<int>(kind)));
    ASSERT_TRUE(WriteFile(path, "x", kind).ok());
    EXPECT_EQ(ModeOf(path), mode & 0700u) << path;
    ASSERT_TRUE(MakeFolders(path + ".folder", kind).ok());
    EXPECT_EQ(ModeOf(path + ".folder"), 0700u) << path;
  }
}

TEST(SecureFile, AWiderFileIsReplacedByANarrowOne) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.Path("out"), "old", FileKind::kDataDump).ok());
  ASSERT_EQ(chmod(folder.Path("out").c_str(), 0666), 0);
  ASSERT_TRUE(WriteFile(folder.Path("out"), "new", FileKind::kDataDump).ok());
  EXPECT_EQ(ModeOf(folder.Path("out")), 0600u);
}

TEST(SecureFile, RefusesLinks) {
  const TemporaryFolder folder;
  ASSERT_TRUE(MakeFolders(folder.Path("real"), FileKind::kData).ok());
  ASSERT_TRUE(WriteFile(folder.Path("real/file"), "old", FileKind::kData).ok());
  ASSERT_EQ(symlink("real", folder.Path("link").c_str()), 0);
  ASSERT_EQ(symlink("file", folder.Path("real/alias").c_str()), 0);
  ASSERT_EQ(symlink("absent", folder.Path("dangling").c_str()), 0);

  for (const std::string& path :
       {folder.Path("link/new"), folder.Path("real/alias"), folder.Path("dangling")}) {
    const Status status = WriteFile(path, "new", FileKind::kData);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << path;
    EXPECT_THAT(std::string(status.message()), HasSubstr("symbolic link"));
  }
  EXPECT_EQ(MakeFolders(folder.Path("link"), FileKind::kData).code(), Code::kInvalidArgument);
  EXPECT_EQ(MakeFolders(folder.Path("link/"), FileKind::kData).code(), Code::kInvalidArgument);
  EXPECT_EQ(*ReadFile(folder.Path("real/file")), "old");
}

TEST(SecureFile, RefusesALinkThatAppearsWhileWriting) {
  const TemporaryFolder folder;
  auto file = SecureFile::Create(folder.Path("out"), FileKind::kData);
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(symlink("elsewhere", folder.Path("out").c_str()), 0);
  EXPECT_EQ((*file)->Commit().code(), Code::kInvalidArgument);
  file->reset();
  EXPECT_THAT(folder.List(), ElementsAre("out"));
}

TEST(SecureFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(WriteFile(folder.path(), "x", FileKind::kData).code(), Code::kInvalidArgument);
  EXPECT_EQ(WriteFile(folder.path() + "/", "x", FileKind::kData).code(), Code::kInvalidArgument);
  EXPECT_EQ(WriteFile("", "x", FileKind::kData).code(), Code::kInvalidArgument);
  const Status absent = WriteFile(folder.Path("absent/file"), "x", FileKind::kData);
  EXPECT_EQ(absent.code(), Code::kIo);
  EXPECT_THAT(std::string(absent.message()), HasSubstr("No such file or directory"));
}

TEST(SecureFile, EveryFailingCallLeavesAWholeFile) {
  for (int fail_at = 1;; ++fail_at) {
    ASSERT_LT(fail_at, 100);
    const TemporaryFolder folder;
    ASSERT_TRUE(WriteFile(folder.Path("out"), "the old content", FileKind::kData).ok());
    FlakyFileSystem fs(fail_at);
    const Status status = WriteFile(folder.Path("out"), "the new content", FileKind::kData, fs);
    EXPECT_THAT(folder.List(), ElementsAre("out")) << "failing call " << fail_at;
    if (!fs.failed()) {
      EXPECT_TRUE(status.ok());
      EXPECT_EQ(*ReadFile(folder.Path("out")), "the new content");
      EXPECT_EQ(fail_at, 7);  // create, append, sync, close, rename, sync folder, and none
      return;
    }
    EXPECT_EQ(status.code(), Code::kIo) << fail_at;
    EXPECT_THAT(std::string(status.message()), HasSubstr("injected"));
    const bool renamed = std::string(status.message()).find("sync folder") != std::string::npos;
    EXPECT_EQ(*ReadFile(folder.Path("out")), renamed ? "the new content" : "the old content");
  }
}

TEST(SecureFile, StepsOverWhatAKilledProcessLeft) {
  const TemporaryFolder folder;
  const std::string left = fmt::format(".out.{}.0.tmp", gettid());
  ASSERT_TRUE(WriteFile(folder.Path(left), "left", FileKind::kData).ok());
  ASSERT_TRUE(WriteFile(folder.Path("out"), "new", FileKind::kData).ok());
  EXPECT_EQ(*ReadFile(folder.Path("out")), "new");
  EXPECT_THAT(folder.List(), ElementsAre(left, "out"));
}

TEST(SecureFile, AnyNameTheSystemTakesIsFine) {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  ASSERT_TRUE(WriteFile(folder.Path(name), "x", FileKind::kData).ok());
  EXPECT_THAT(folder.List(), ElementsAre(name));
}

TEST(SecureFile, WritersOfOneFileNeverMix) {
  const TemporaryFolder folder;
  std::vector<std::thread> writers;
  for (char c : {'a', 'b', 'c', 'd'}) {
    writers.emplace_back([&folder, c] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(WriteFile(folder.Path("out"), std::string(5000, c), FileKind::kData).ok());
      }
    });
  }
  for (auto& writer : writers) writer.join();
  const std::string content = *ReadFile(folder.Path("out"));
  EXPECT_EQ(content, std::string(5000, content[0]));
  EXPECT_THAT(folder.List(), ElementsAre("out"));
}

TEST(MakeFolders, CreatesMissingParents) {
  const TemporaryFolder folder;
  ASSERT_TRUE(MakeFolders(folder.Path("a/b//c/"), FileKind::kDebug).ok());
  ASSERT_TRUE(MakeFolders(folder.Path("a/b/c"), FileKind::kDebug).ok());
  EXPECT_TRUE(WriteFile(folder.Path("a/b/c/file"), "x", FileKind::kDebug).ok());
  EXPECT_EQ(MakeFolders(folder.Path("a/b/c/file"), FileKind::kDebug).code(), Code::kIo);
  EXPECT_EQ(MakeFolders(folder.Path("a/b/c/file/d"), FileKind::kDebug).code(), Code::kIo);
  EXPECT_EQ(MakeFolders("", FileKind::kDebug).code(), Code::kInvalidArgument);
}

TEST(MakeFolders, RefusesALinkAnywhereBelowTheNamedFolder) {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& root, const std::string& below) {
    return MakeFoldersBelow(folder.Path(root), below, FileKind::kData);
  };
  ASSERT_TRUE(make("real", "step_0/rank_0").ok());
  ASSERT_TRUE(make("real", "step_0/rank_1").ok());
  EXPECT_TRUE(WriteFile(folder.Path("real/step_0/rank_1/file"), "x", FileKind::kData).ok());
  ASSERT_EQ(symlink("real", folder.Path("link").c_str()), 0);
  ASSERT_EQ(symlink("step_0", folder.Path("real/step_1").c_str()), 0);
  ASSERT_EQ(symlink("rank_0", folder.Path("real/step_0/rank_2").c_str()), 0);
  for (const Status& status : {make("link", "step_0/rank_0"), make("real", "step_1/rank_0"),
                               make("real", "step_0/rank_2")}) {
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
    EXPECT_THAT(std::string(status.message()), HasSubstr("it is a symbolic link"));
  }
}

TEST(MakeFolders, FailsCleanlyAtEveryCall) {
  for (int fail_at = 1; fail_at <= 3; ++fail_at) {
    const TemporaryFolder folder;
    FlakyFileSystem fs(fail_at);
    EXPECT_EQ(MakeFolders(folder.Path("a/b/c"), FileKind::kDebug, fs).code(), Code::kIo);
    EXPECT_TRUE(MakeFolders(folder.Path("a/b/c"), FileKind::kDebug, fs).ok());
  }
}

TEST(ReadFile, ReadsUpToItsLimit) {
  const TemporaryFolder folder;
  ASSERT_TRUE(WriteFile(folder.Path("f"), "12345", FileKind::kData).ok());
  EXPECT_EQ(*ReadFile(folder.Path("f"), 5), "12345");
  const Status longer = ReadFile(folder.Path("f"), 4).status();
  EXPECT_EQ(longer.code(), Code::kCorrupt);
  EXPECT_THAT(std::string(longer.message()), HasSubstr("longer than the 4 bytes"));
  ASSERT_TRUE(WriteFile(folder.Path("empty"), "", FileKind::kData).ok());
  EXPECT_EQ(*ReadFile(folder.Path("empty"), 0), "");
}

TEST(ReadFile, ReadsFilesWithoutASize) {
  const auto status = ReadFile("/proc/self/status");
  ASSERT_TRUE(status.ok());
  EXPECT_THAT(*status, HasSubstr("VmSize"));
  EXPECT_EQ(ReadFile("/proc/self/status", 10).status().code(), Code::kCorrupt);
}

TEST(ReadFile, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_EQ(ReadFile(folder.Path("absent")).status().code(), Code::kNotFound);
  EXPECT_EQ(ReadFile(folder.path()).status().code(), Code::kIo);
  ASSERT_EQ(mkfifo(folder.Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(folder.Path("pipe")).status().code(), Code::kIo);
}

}  // namespace
}  // namespace npumesh
