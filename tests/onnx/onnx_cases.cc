// Runs cases of ONNX's own suite and says of each whether it passes:
//
//   onnx_cases <folder of cases>... [--only <part of a name>]
//
// Each case runs in a process of its own, for a minute at most. The exit code is 0 whatever passes;
// the caller knows what has to.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/onnx/onnx_case.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kSeconds = 60;

std::vector<fs::path> CasesIn(const fs::path& folder, const std::string& only) {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const bool wanted = entry.path().filename().string().find(only) != std::string::npos;
    if (wanted && fs::exists(entry.path() / "model.onnx")) cases.push_back(entry.path());
  }
  std::sort(cases.begin(), cases.end());
  return cases;
}

// What the child wrote, until it ended.
std::string ReadToEnd(int fd) {
  std::string text;
  char block[4096];
  for (ssize_t n = 0; (n = read(fd, block, sizeof block)) > 0;) {
    text.append(block, static_cast<size_t>(n));
  }
  return text;
}

[[noreturn]] void RunChild(const fs::path& folder, int fd) {
  alarm(kSeconds);
  const Status status = RunOnnxCase(folder.string());
  const std::string text = status.ok() ? "" : std::string(status.message());
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  _exit(status.ok() && written ? 0 : 1);
}

// Empty: it passes; otherwise why not.
std::string Verdict(const fs::path& folder) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) RunChild(folder, ends[1]);
  close(ends[1]);
  std::string text = ReadToEnd(ends[0]);
  close(ends[0]);
  int how = 0;
  waitpid(child, &how, 0);
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return "";
  if (WIFSIGNALED(how)) return fmt::format("killed by signal {}", WTERMSIG(how));
  return text.empty() ? "failed without a word" : text;
}

int Main(const std::vector<std::string>& words) {
  std::string only;
  size_t passed = 0, all = 0;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == "--only") only = words[i + 1];
  }
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--only") break;
    for (const fs::path& folder : CasesIn(words[i], only)) {
      const std::string why = Verdict(folder);
      ++all;
      passed += why.empty() ? 1 : 0;
      std::printf("%s %s%s%s\n", why.empty() ? "pass" : "FAIL", folder.filename().c_str(),
                  why.empty() ? "" : ": ", why.c_str());
      std::fflush(stdout);
    }
  }
  std::printf("%zu of %zu cases pass\n", passed, all);
  return 0;
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  return npumesh::Main({argv + 1, argv + argc});
}
