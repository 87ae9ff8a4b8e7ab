// The program `msprof`.
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "launch/msprof/msprof.h"

namespace {

constexpr int kUsageExit = 2;
constexpr int kInputExit = 3;
// The analysis of torch_npu looks for the exports each 0.1 s, and only as long as msprof runs; the
// vendor's takes seconds.
constexpr std::chrono::milliseconds kSeen{300};

}  // namespace

int main(int argc, char** argv) {
  const npumesh::Result<std::string> answer =
      npumesh::Msprof(std::vector<std::string>(argv + 1, argv + argc));
  if (!answer.ok()) {
    std::fprintf(stderr, "msprof: %s\n", std::string(answer.status().message()).c_str());
    return answer.status().code() == npumesh::Code::kInvalidArgument ? kUsageExit : kInputExit;
  }
  std::fputs(answer->c_str(), stdout);
  if (argc > 2) std::this_thread::sleep_for(kSeen);
  return 0;
}
