// The program `npu-smi`.
#include <cstdio>
#include <string>
#include <vector>

#include "launch/npu_smi/npu_smi.h"

namespace {

constexpr int kUsageExit = 2;

}  // namespace

int main(int argc, char** argv) {
  const npumesh::Result<npumesh::Env> env = npumesh::Env::FromProcess();
  const std::vector<std::string> words(argv + 1, argv + argc);
  const npumesh::Result<std::string> answer =
      env.ok() ? npumesh::NpuSmi(*env, words) : npumesh::Result<std::string>(env.status());
  if (!answer.ok()) {
    std::fprintf(stderr, "npu-smi: %s\n", std::string(answer.status().message()).c_str());
    return kUsageExit;
  }
  std::fputs(answer->c_str(), stdout);
  return 0;
}
