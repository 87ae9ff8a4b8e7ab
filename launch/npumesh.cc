// The `npumesh` command.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "launch/commands/command.h"

namespace {

// Threads of OpenMP wait for some 150 us before they sleep. The default is 16 ms after each kernel,
// in which they take a core from whatever else runs: beside two busy processes on two cores a step
// of MobileNetV2 took 496 ms on two threads, now 13, and 11 on one thread. Alone on the machine two
// threads are 7 % slower for it; a shorter wait would cost more. OpenMP reads the variable when it
// is loaded, so `run` starts again with it, and goes on as it is where that fails, or with one
// thread, which never waits; ranks inherit it from `launch`.
void WaitBriefly(const char* const* argv) {
  constexpr char kSpins[] = "GOMP_SPINCOUNT";
  const bool runs = argv[0] != nullptr && argv[1] != nullptr && argv[1] == std::string_view("run");
  if (getenv(kSpins) != nullptr || getenv("OMP_WAIT_POLICY") != nullptr) return;
  const char* const threads = getenv("OMP_NUM_THREADS");
  const bool waits = threads == nullptr || threads != std::string_view("1");
  if (setenv(kSpins, "3000", 0) != 0 || !runs || !waits) return;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) execv(self.c_str(), const_cast<char* const*>(argv));  // NOLINT: as exec takes them
}

}  // namespace

int main(int argc, char** argv) {
  WaitBriefly(argv);
  return npumesh::NpumeshMain(argc, argv);
}
