#include "launch/mpirun/segment_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

TEST(SegmentFolder, IsRemovedWithAllInIt) {
  const TemporaryFolder base;
  {
    const auto folder = SegmentFolder::Make({"/nowhere", base.path()}, 2);
    ASSERT_NE(folder, nullptr);
    EXPECT_THAT(folder->path(), StartsWith(base.path() + "/npumesh-job."));
    std::ofstream(folder->path() + "/vader_segment.host.0.1.0") << "x";
    EXPECT_THAT(RemoveDeadFolders({base.path()}), IsEmpty()) << "its job lives";
  }
  EXPECT_THAT(base.List(), IsEmpty());
}

TEST(SegmentFolder, WithoutRoomThereIsNone) {
  const TemporaryFolder base;
  EXPECT_EQ(SegmentFolder::Make({base.path()}, 1 << 30), nullptr);
  EXPECT_THAT(base.List(), IsEmpty());
}

// A process that makes a folder and is killed; `child` runs on when it is true.
TEST(SegmentFolder, OfAKilledJobIsRemovedWhenItsChildIsDeadToo) {
  const TemporaryFolder base;
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t launcher = fork();
  if (launcher == 0) {
    const auto folder = SegmentFolder::Make({base.path()}, 1);
    if (fork() == 0) {
      // What mpirun is to `npumesh launch`: another program that lives a little longer.
      char byte;
      close(ends[1]);
      execl("/bin/sh", "sh", "-c", fmt::format("cat <&{}", ends[0]).c_str(), nullptr);
      _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    raise(SIGKILL);
  }
  int state = 0;
  ASSERT_EQ(waitpid(launcher, &state, 0), launcher);
  ASSERT_EQ(base.List().size(), 1u);
  EXPECT_THAT(RemoveDeadFolders({base.path()}), IsEmpty()) << "its child lives";
  close(ends[1]);
  for (int i = 0; i < 500 && !base.List().empty(); ++i) {
    RemoveDeadFolders({base.path()});
    usleep(10000);
  }
  EXPECT_THAT(base.List(), IsEmpty());
  close(ends[0]);
}

std::string SegmentName(const std::string& folder, int rank, const char* kind = "vader") {
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  const std::string_view name(host);
  return fmt::format("{}/{}_segment.{}.{}.1234.{}", folder, kind, name.substr(0, name.find('.')),
                     geteuid(), rank);
}

TEST(DeadSegments, AreThoseThatNobodyUses) {
  const TemporaryFolder base;
  const std::string dead = SegmentName(base.path(), 0);
  const std::string open_one = SegmentName(base.path(), 1);
  const std::string mapped = SegmentName(base.path(), 2);
  for (const std::string& path : {dead, open_one, mapped}) std::ofstream(path) << "x";
  std::ofstream(base.Path("vader_segment.otherhost.0.1234.0")) << "x";
  std::ofstream(base.Path("precious")) << "x";
  const std::ifstream reader(open_one);
  const int fd = open(mapped.c_str(), O_RDONLY | O_CLOEXEC);
  void* const data = mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  EXPECT_THAT(RemoveDeadSegments(base.path()), ElementsAre(dead));
  EXPECT_EQ(base.List().size(), 4u);
  munmap(data, 1);
  EXPECT_THAT(RemoveDeadSegments(base.path()), ElementsAre(mapped));
}

TEST(DeadSegments, OfOpenMpi5AreCalledOtherwise) {
  const TemporaryFolder base;
  const std::string dead = SegmentName(base.path(), 0, "sm");
  std::ofstream(dead) << "x";
  std::ofstream(base.Path("sm_segment.otherhost.0.1234.0")) << "x";
  EXPECT_THAT(RemoveDeadSegments(base.path()), ElementsAre(dead));
  EXPECT_EQ(base.List().size(), 1u);
}

}  // namespace
}  // namespace npumesh
