#include "runtime/base/files/leftovers.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/base/files/secure_file.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

TEST(IsAsideName, KnowsWhatSecureFileAndRecordsWriteAside) {
  for (const char* name :
       {".out.123.0.tmp", ".manifest.json.7.12.tmp", ".rank_0.npr.77.tmp", ".5.npy.1.2.tmp"}) {
    EXPECT_TRUE(IsAsideName(name)) << name;
  }
  for (const char* name : {"", ".", ".tmp", "out.1.tmp", ".out.tmp", ".1.tmp", ".out.1.tmpx",
                           ".out.x.tmp", ".out.1..tmp", ".vimrc", "a.tmp"}) {
    EXPECT_FALSE(IsAsideName(name)) << name;
  }
}

// A process that begins `path`, writes to it and is killed.
void KillWriterOf(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    auto file = SecureFile::Create(path, FileKind::kData);
    if (file.ok()) (void)(*file)->Append("half");
    raise(SIGKILL);
  }
  int state = 0;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  ASSERT_TRUE(WIFSIGNALED(state));
}

TEST(Leftovers, OfAKilledWriterAreRemoved) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.Path("a/b"));
  KillWriterOf(folder.Path("out"));
  KillWriterOf(folder.Path("a/b/manifest.json"));
  ASSERT_EQ(folder.List().size(), 2u);
  EXPECT_EQ(RemoveLeftovers(folder.path(), LeftoverDepth::kFolder).size(), 1u);
  EXPECT_THAT(folder.List(), ElementsAre("a"));
  EXPECT_EQ(RemoveLeftovers(folder.path(), LeftoverDepth::kTree).size(), 1u);
  EXPECT_THAT(RemoveLeftovers(folder.path(), LeftoverDepth::kTree), IsEmpty());
}

TEST(Leftovers, OfALivingWriterStayAtEveryStep) {
  const TemporaryFolder folder;
  const auto nothing = [&] {
    EXPECT_THAT(RemoveLeftovers(folder.path(), LeftoverDepth::kTree), IsEmpty());
  };
  auto file = SecureFile::Create(folder.Path("out"), FileKind::kData);
  ASSERT_TRUE(file.ok());
  nothing();
  ASSERT_TRUE((*file)->Append("all").ok());
  nothing();
  ASSERT_TRUE((*file)->Commit().ok());
  EXPECT_EQ(*ReadFile(folder.Path("out")), "all");
}

TEST(Leftovers, AreNoOtherFilesAndNoLinks) {
  const TemporaryFolder folder;
  std::ofstream(folder.Path("precious")) << "x";
  std::ofstream(folder.Path(".config.tmp")) << "x";
  std::filesystem::create_symlink(folder.Path("precious"), folder.Path(".link.1.2.tmp"));
  std::filesystem::create_directory(folder.Path(".folder.1.2.tmp"));
  EXPECT_THAT(RemoveLeftovers(folder.path(), LeftoverDepth::kTree), IsEmpty());
  EXPECT_EQ(folder.List().size(), 4u);
  EXPECT_THAT(RemoveLeftovers(folder.Path("absent"), LeftoverDepth::kTree), IsEmpty());
}

// A file between its creation and its lock has no owner for a moment: what cleans then, the
// writer still ends with his file.
TEST(Leftovers, CleaningDisturbsNoWriter) {
  const TemporaryFolder folder;
  std::atomic<bool> done{false};
  std::thread cleaner([&] {
    while (!done.load()) RemoveLeftovers(folder.path(), LeftoverDepth::kFolder);
  });
  for (int i = 0; i < 150; ++i) {
    const Status written = WriteFile(folder.Path("out"), std::to_string(i), FileKind::kData);
    EXPECT_TRUE(written.ok()) << written.ToString();
    EXPECT_EQ(*ReadFile(folder.Path("out")), std::to_string(i));
  }
  done.store(true);
  cleaner.join();
  EXPECT_THAT(folder.List(), ElementsAre("out"));
}

}  // namespace
}  // namespace npumesh
