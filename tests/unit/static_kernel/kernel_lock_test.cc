#include "graph/static_kernel/store/kernel_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "tests/unit/static_kernel/store_fixture.h"

namespace npumesh {
namespace {

using npumesh::testing::InProcess;
using npumesh::testing::InProcesses;
using npumesh::testing::Write;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A process that has ended.
LockOwner DeadOwner() {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  InProcess([&ends] {
    const std::string me = LockOwner::Me().ToString();
    return write(ends[1], me.data(), me.size()) > 0 ? 0 : 1;
  });
  char text[512] = {};
  EXPECT_GT(read(ends[0], text, sizeof(text) - 1), 0);
  close(ends[0]);
  close(ends[1]);
  return *LockOwner::Parse(text);
}

void MakeOld(const std::string& path, int seconds) {
  const timespec old{time(nullptr) - seconds, 0};
  const timespec times[] = {old, old};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

bool Takes(const std::string& path) {
  const auto lock = KernelLock::TryTake(path);
  EXPECT_TRUE(lock.ok()) << lock.status().message();
  return lock.ok() && lock->has_value();
}

TEST(LockOwner, ReadsWhatItWrites) {
  const LockOwner me = LockOwner::Me();
  EXPECT_EQ(me.pid, getpid());
  EXPECT_GT(me.started, 0u);
  EXPECT_GT(me.space, 0u);
  EXPECT_FALSE(me.gone());
  EXPECT_EQ(LockOwner::Parse(me.ToString()), me);
  EXPECT_EQ(LockOwner::Parse(me.ToString() + "\n"), me);
  for (const char* text : {"", "host boot 1 2", "host boot 1 2 3 4", "host boot 0 2 3",
                           "host boot -1 2 3", "host boot 1 x 3", " boot 1 2 3", "host  1 2 3",
                           "host boot 99999999999 2 3", "host boot 1 2 3x"}) {
    EXPECT_EQ(LockOwner::Parse(text), std::nullopt) << text;
  }
}

TEST(LockOwner, IsGoneOnlyWhenThisHostKnows) {
  const LockOwner dead = DeadOwner();
  EXPECT_TRUE(dead.gone());
  LockOwner other = dead;
  other.host = "elsewhere";
  EXPECT_FALSE(other.gone());
  other = dead;
  other.space += 1;
  EXPECT_FALSE(other.gone()) << "a container of this host";
  other = LockOwner::Me();
  other.boot = "another-boot";
  EXPECT_TRUE(other.gone());
  other = LockOwner::Me();
  other.started += 1;
  EXPECT_TRUE(other.gone()) << "its number was given to another process";
}

TEST(KernelLock, ExcludesOthersUntilItIsReleased) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("lock");
  {
    const auto lock = KernelLock::TryTake(path);
    ASSERT_TRUE(lock.ok() && *lock);
    EXPECT_THAT(folder.List(), ElementsAre("lock"));
    EXPECT_EQ(OwnerOf(path), LockOwner::Me());
    EXPECT_FALSE(Takes(path)) << "in one process";
    EXPECT_EQ(InProcess([&] { return Takes(path) ? 1 : 0; }), 0);
    EXPECT_FALSE(MayBeTaken(path));
    struct stat info;
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);
  }
  EXPECT_THAT(folder.List(), IsEmpty());
  EXPECT_TRUE(MayBeTaken(path));
  EXPECT_EQ(OwnerOf(path), std::nullopt);
}

TEST(KernelLock, ACopyInAForkedProcessReleasesNothing) {
  const TemporaryFolder folder;
  auto lock = KernelLock::TryTake(folder.Path("lock"));
  ASSERT_TRUE(lock.ok() && *lock);
  InProcess([&] {
    (*lock)->Release();
    return 0;
  });
  EXPECT_THAT(folder.List(), ElementsAre("lock"));
  KernelLock moved = *std::move(*lock);
  (*lock)->Release();
  EXPECT_THAT(folder.List(), ElementsAre("lock"));
  moved.Release();
  moved.Release();
  EXPECT_THAT(folder.List(), IsEmpty());
}

TEST(KernelLock, OfADeadProcessIsTakenOver) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("lock");
  LockOwner dead = DeadOwner();
  LockOwner rebooted = LockOwner::Me();
  rebooted.boot = "another-boot";
  for (const LockOwner& owner : {dead, rebooted}) {
    Write(path, owner.ToString() + "\n");
    EXPECT_TRUE(MayBeTaken(path));
    EXPECT_TRUE(Takes(path)) << owner.ToString();
    EXPECT_THAT(folder.List(), IsEmpty());
  }
}

TEST(KernelLock, OfAnotherHostStays) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("lock");
  LockOwner other = DeadOwner();
  other.host = "elsewhere";
  Write(path, other.ToString());
  EXPECT_FALSE(Takes(path));
  EXPECT_FALSE(MayBeTaken(path));
  EXPECT_EQ(OwnerOf(path), other);
}

TEST(KernelLock, ThatCannotBeReadStaysForTenSeconds) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("lock");
  for (const char* text : {"", "nonsense", "half a li"}) {
    Write(path, text);
    EXPECT_FALSE(Takes(path)) << text;
    MakeOld(path, 9);
    EXPECT_FALSE(Takes(path)) << text;
    MakeOld(path, 15);
    EXPECT_TRUE(Takes(path)) << text;
    EXPECT_THAT(folder.List(), IsEmpty());
  }
}

TEST(KernelLock, IsTakenFromALateOwner) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("lock");
  LockOwner late = DeadOwner();
  late.host = "elsewhere";
  Write(path, late.ToString());
  LockOwner another = late;
  another.pid += 1;
  auto missed = KernelLock::TakeFrom(path, another);
  ASSERT_TRUE(missed.ok());
  EXPECT_FALSE(missed->has_value());
  auto lock = KernelLock::TakeFrom(path, late);
  ASSERT_TRUE(lock.ok() && *lock);
  EXPECT_EQ(OwnerOf(path), LockOwner::Me());
  // The late one ends after all.
  Write(path, late.ToString());
  (*lock)->Release();
  EXPECT_EQ(OwnerOf(path), late);
}

// A process was killed while it took a lock over.
TEST(KernelLock, AGuardOfADeadProcessDoesNotStay) {
  const TemporaryFolder folder;
  const std::string path = folder.Path("lock");
  const LockOwner dead = DeadOwner();
  Write(path, dead.ToString());
  Write(path + ".taking", dead.ToString());
  EXPECT_TRUE(Takes(path));
  EXPECT_THAT(folder.List(), IsEmpty());
  Write(path, dead.ToString());
  Write(path + ".taking", LockOwner::Me().ToString());
  EXPECT_FALSE(Takes(path)) << "a living process takes it over";
  const auto lock = KernelLock::TakeFrom(path, dead);
  EXPECT_TRUE(lock.ok() && *lock) << "and has stopped";
}

TEST(KernelLock, AFolderThatTakesNoFilesIsAnError) {
  const TemporaryFolder folder;
  const Status status = KernelLock::TryTake(folder.Path("missing/lock")).status();
  EXPECT_EQ(status.code(), Code::kIo);
  EXPECT_THAT(std::string(status.message()), HasSubstr("cannot write lock "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("No such file or directory"));
  chmod(folder.path().c_str(), 0555);
  EXPECT_EQ(InProcess([&] {
              if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) return 1;
              const Status refused = KernelLock::TryTake(folder.Path("lock")).status();
              return refused.code() == Code::kIo &&
                             refused.message().find("Permission denied") != std::string_view::npos
                         ? 0
                         : 2;
            }),
            0);
  chmod(folder.path().c_str(), 0700);
}

// Of many that find the lock of a dead process, one takes it over.
TEST(KernelLock, IsTakenOverOnce) {
  const LockOwner dead = DeadOwner();
  for (int round = 0; round < 20; ++round) {
    const TemporaryFolder folder;
    const std::string path = folder.Path("lock");
    Write(path, dead.ToString());
    std::optional<KernelLock> held;
    const auto said = InProcesses(8, [&](int) -> std::string {
      for (int k = 0; k < 10; ++k) {
        auto lock = KernelLock::TryTake(path);
        if (!lock.ok()) return std::string(lock.status().message());
        if (*lock) {
          held.emplace(*std::move(*lock));
          return "taken";
        }
      }
      return "not taken";
    });
    EXPECT_EQ(std::count(said.begin(), said.end(), "taken"), 1);
    EXPECT_EQ(std::count(said.begin(), said.end(), "not taken"), 7);
    EXPECT_THAT(folder.List(), ElementsAre("lock"));
  }
}

}  // namespace
}  // namespace npumesh
