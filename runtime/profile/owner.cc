#include "runtime/profile/owner.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "runtime/base/files/secure_file.h"
#include "runtime/base/process/host_name.h"
#include "runtime/profile/profiler.h"

namespace npumesh {
namespace {

constexpr size_t kMostCommandBytes = 4096;

}  // namespace

int64_t RealTime() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

ProfileOwner OwnerOf(const World& world) {
  ProfileOwner owner;
  owner.rank = world.rank();
  owner.world_size = world.size();
  owner.node = world.node();
  owner.local_rank = world.local_rank();
  owner.process = getpid();
  owner.host = HostName();
  owner.boot_id = BootId();
  owner.start_monotonic_ns = Profiler::Now();
  owner.start_realtime_ns = RealTime();
  owner.version = NPUMESH_VERSION;
  return owner;
}

std::string CommandLine() {
  Result<std::string> words = ReadFile("/proc/self/cmdline");
  if (!words.ok()) return "";
  words->resize(std::min(words->size(), kMostCommandBytes));
  while (!words->empty() && words->back() == '\0') words->pop_back();
  std::replace(words->begin(), words->end(), '\0', ' ');
  return *std::move(words);
}

}  // namespace npumesh
