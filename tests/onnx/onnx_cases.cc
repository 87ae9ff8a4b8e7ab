// Runs cases of ONNX's own suite and says of each whether it passes:
//
//   onnx_cases <folder of cases>... [--only <part of a name>] [--atol <number>] [--damaged]
//   onnx_cases --serve
//
// Each case runs in a separate process, for a minute at most. With --damaged a case passes that
// ends in a run or in clear errors, one line each. The exit code is 0 whatever passes; the caller
// knows what has to. With --serve it answers requests from standard input (onnx_server.h).
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/text/parse.h"
#include "tests/onnx/onnx_case.h"
#include "tests/onnx/onnx_server.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kSeconds = 60;

struct CaseWords {
  std::vector<std::string> folders;
  std::string only;
  CaseBounds bounds;
  bool damaged = false;
  bool serve = false;
};

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

// An error of one line, or a list that begins with "N errors:" and has a line for each.
bool IsClear(const Status& status) {
  const std::string_view text = status.message();
  const size_t first = text.find('\n');
  if (text.empty() || first == std::string_view::npos) return !text.empty();
  return text.substr(0, first).ends_with(" errors:");
}

[[noreturn]] void RunChild(const fs::path& folder, const CaseWords& words, int fd) {
  alarm(kSeconds);
  Status status = RunOnnxCase(folder.string(), words.bounds);
  if (words.damaged && IsClear(status)) status = Status();
  const std::string text = status.ok() ? "" : std::string(status.message());
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  _exit(status.ok() && written ? 0 : 1);
}

// Empty: it passes; otherwise why not.
std::string Verdict(const fs::path& folder, const CaseWords& words) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) RunChild(folder, words, ends[1]);
  close(ends[1]);
  std::string text = ReadToEnd(ends[0]);
  close(ends[0]);
  int how = 0;
  waitpid(child, &how, 0);
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return "";
  if (WIFSIGNALED(how)) return fmt::format("killed by signal {}", WTERMSIG(how));
  return text.empty() ? "failed without a word" : text;
}

Result<CaseWords> ReadWords(const std::vector<std::string>& words) {
  CaseWords read;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool takes_one = words[i] == "--only" || words[i] == "--atol";
    if (takes_one && i + 1 == words.size()) {
      return Error(Code::kInvalidArgument, "{} takes a value", words[i]);
    }
    if (words[i] == "--serve") {
      read.serve = true;
    } else if (words[i] == "--damaged") {
      read.damaged = true;
    } else if (words[i] == "--only") {
      read.only = words[++i];
    } else if (words[i] == "--atol") {
      NPUMESH_ASSIGN_OR_RETURN(read.bounds.atol, ParseDouble(words[++i], 0, 1, "--atol"));
    } else {
      read.folders.push_back(words[i]);
    }
  }
  return read;
}

int Main(const std::vector<std::string>& line) {
  const Result<CaseWords> words = ReadWords(line);
  if (!words.ok()) {
    std::fprintf(stderr, "%s\n", words.status().ToString().c_str());
    return 2;
  }
  if (words->serve) {
    const Status served = ServeOnnx(stdin, stdout);
    if (!served.ok()) std::fprintf(stderr, "%s\n", served.ToString().c_str());
    return served.ok() ? 0 : 1;
  }
  size_t passed = 0, all = 0;
  for (const std::string& folder : words->folders) {
    for (const fs::path& one : CasesIn(folder, words->only)) {
      const std::string why = Verdict(one, *words);
      ++all;
      passed += why.empty() ? 1 : 0;
      std::printf("%s %s%s%s\n", why.empty() ? "pass" : "FAIL", one.filename().c_str(),
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
