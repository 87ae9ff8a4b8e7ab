#include "runtime/msprof/profile_text.h"

#include <fmt/format.h>

#include <ctime>

namespace npumesh {

std::string MicrosecondText(int64_t ns) {
  const uint64_t size = ns < 0 ? -static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

double Microseconds(int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

double Milliseconds(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

double Megabytes(uint64_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

int64_t WallClock(const ProfileOwner& owner, int64_t monotonic_ns) {
  return owner.start_realtime_ns + (monotonic_ns - owner.start_monotonic_ns);
}

std::string Stamp14(int64_t realtime_ns) {
  const std::time_t seconds = realtime_ns / 1'000'000'000;
  std::tm local{};
  localtime_r(&seconds, &local);
  return fmt::format("{:04}{:02}{:02}{:02}{:02}{:02}", local.tm_year + 1900, local.tm_mon + 1,
                     local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

std::string Stamp17(int64_t realtime_ns) {
  return fmt::format("{}{:03}", Stamp14(realtime_ns), realtime_ns / 1'000'000 % 1000);
}

}  // namespace npumesh
