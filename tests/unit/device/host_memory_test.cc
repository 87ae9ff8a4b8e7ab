#include "runtime/device/host_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "runtime/base/files/secure_file.h"
#include "runtime/device/device_memory.h"
#include "tests/unit/base/temporary_folder.h"

namespace npumesh {
namespace {

// A root folder with files of a pretended system.
class FakeSystem {
 public:
  FakeSystem& File(const std::string& path, const std::string& content) {
    const std::string full = folder_.path() + path;
    EXPECT_TRUE(MakeFolders(full.substr(0, full.rfind('/')), FileKind::kTemporary).ok());
    EXPECT_TRUE(WriteFile(full, content, FileKind::kTemporary).ok());
    return *this;
  }
  uint64_t Available() const { return AvailableMemory(folder_.path()); }
  std::string root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

constexpr char kMeminfo[] = "MemTotal:        2000 kB\nMemAvailable:    1000 kB\nCached: 7 kB\n";

TEST(AvailableMemory, WithoutGroupsIsWhatTheSystemHas) {
  FakeSystem system;
  EXPECT_EQ(system.File("/proc/meminfo", kMeminfo).Available(), 1000u << 10);
}

TEST(AvailableMemory, UnknownIsNoLimit) {
  EXPECT_EQ(FakeSystem().Available(), ~uint64_t{0});
}

TEST(AvailableMemory, Version2LimitsWhatIsLeft) {
  FakeSystem system;
  system.File("/proc/meminfo", kMeminfo)
      .File("/proc/self/cgroup", "0::/job/step\n")
      .File("/sys/fs/cgroup/job/step/memory.max", "600000\n")
      .File("/sys/fs/cgroup/job/step/memory.current", "500000\n");
  EXPECT_EQ(system.Available(), 100000u);
  system.File("/sys/fs/cgroup/job/step/memory.stat", "anon 1\ninactive_file 50000\nslab 3\n");
  EXPECT_EQ(system.Available(), 150000u);
}

TEST(AvailableMemory, AGroupAroundMayBeTighter) {
  FakeSystem system;
  system.File("/proc/meminfo", kMeminfo)
      .File("/proc/self/cgroup", "0::/job/step\n")
      .File("/sys/fs/cgroup/job/step/memory.max", "max\n")
      .File("/sys/fs/cgroup/job/memory.max", "70000\n")
      .File("/sys/fs/cgroup/job/memory.current", "1000\n");
  EXPECT_EQ(system.Available(), 69000u);
}

TEST(AvailableMemory, AContainerSeesItsGroupAtTheMount) {
  FakeSystem system;
  system.File("/proc/meminfo", kMeminfo)
      .File("/proc/self/cgroup", "0::/host/only/path\n")
      .File("/sys/fs/cgroup/memory.max", "4096\n")
      .File("/sys/fs/cgroup/memory.current", "5000\n");
  EXPECT_EQ(system.Available(), 0u);
}

TEST(AvailableMemory, Version1HasOtherNames) {
  FakeSystem system;
  system.File("/proc/meminfo", kMeminfo)
      .File("/proc/self/cgroup", "9:cpu,cpuacct:/other\n4:memory:/job\n0::/unified\n")
      .File("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .File("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "300000\n")
      .File("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "200000\n")
      .File("/sys/fs/cgroup/memory/job/memory.stat", "cache 5\ntotal_inactive_file 60000\n");
  EXPECT_EQ(system.Available(), 160000u);
}

TEST(AvailableMemory, HostileFilesAreIgnored) {
  FakeSystem system;
  system.File("/proc/meminfo", "MemAvailable\nMemAvailable:\nMemAvailable: many\n")
      .File("/proc/self/cgroup", "\n:\nno colons\n0::\n")
      .File("/sys/fs/cgroup/memory.max", "");
  EXPECT_EQ(system.Available(), ~uint64_t{0});
}

TEST(AvailableAddresses, AreTheLimitWithoutWhatIsTaken) {
  FakeSystem system;
  system.File("/proc/self/statm", "100 50 10 1 0 20 0\n");
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(AvailableAddresses(~uint64_t{0}, system.root()), ~uint64_t{0});
  EXPECT_EQ(AvailableAddresses(1000 * page, system.root()), 900 * page);
  EXPECT_EQ(AvailableAddresses(99 * page, system.root()), 0u);
}

TEST(MemoryShare, IsEvenAndLeavesAnEighth) {
  const uint64_t available = AvailableMemory();
  ASSERT_LT(available, ~uint64_t{0});
  const uint64_t alone = MemoryShare(1);
  EXPECT_GT(alone, 0u);
  EXPECT_LT(alone, available);
  EXPECT_LT(MemoryShare(4), alone / 2);
}

}  // namespace
}  // namespace npumesh
