#include "tests/unit/static_kernel/store_fixture.h"
#include "graph/digest/sha256.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace npumesh::testing {
namespace {

std::vector<std::string> LinesIn(const std::string& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

constexpr const char* kScript = R"(#!/bin/sh
folder={}
ready=$folder/ready
case "$*" in *--version*) echo 'fake c++ 1.0'; echo 'more'; exit 0;; esac
last= out= sources=
for word in "$@"; do
  if [ "$last" = -o ]; then out=$word; fi
  case $word in *.cc) sources="$sources $word";; esac
  last=$word
done
echo run >> $folder/runs
sed -n 's,^// COUNT ,,p' $sources >> $folder/compiled
{}
)";

// Reads until the other side is closed, or one message.
std::string Hear(int fd) {
  char text[4096];
  const ssize_t count = read(fd, text, sizeof(text));
  return std::string(text, static_cast<size_t>(std::max<ssize_t>(count, 0)));
}

struct Pipe {
  Pipe() {
    if (pipe(ends) != 0) abort();
  }
  int ends[2] = {-1, -1};
};

struct Process {
  pid_t id;
  int says;  // a descriptor
};

Process Start(const Pipe& begin, const Pipe& end, const std::function<std::string()>& body) {
  const Pipe says;
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    close(begin.ends[1]);
    close(end.ends[1]);
    Hear(begin.ends[0]);
    const std::string text = body() + "\n";
    const bool told = write(says.ends[1], text.data(), text.size()) > 0;
    Hear(end.ends[0]);
    _exit(told ? 0 : 1);
  }
  close(says.ends[1]);
  return {child, says.ends[0]};
}

}  // namespace

Variable::Variable(std::string name, const char* value) : name_(std::move(name)) {
  const char* before = std::getenv(name_.c_str());
  had_ = before != nullptr;
  if (had_) before_ = before;
  if (value != nullptr) {
    setenv(name_.c_str(), value, 1);
  } else {
    unsetenv(name_.c_str());
  }
}

Variable::~Variable() {
  if (had_) {
    setenv(name_.c_str(), before_.c_str(), 1);
  } else {
    unsetenv(name_.c_str());
  }
}

// The header of this program, as that of a shared object without sections.
std::string ObjectBytes() {
  Elf64_Ehdr header{};
  std::ifstream self("/proc/self/exe", std::ios::binary);
  self.read(reinterpret_cast<char*>(&header), sizeof(header));
  header.e_type = ET_DYN;
  header.e_shoff = 0;
  header.e_shnum = 0;
  std::string bytes(sizeof(header), '\0');
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

FakeCompiler::FakeCompiler(const std::string& acts)
    : variable_("CXX", folder_.Path("compiler").c_str()) {
  chmod(folder_.path().c_str(), 0755);  // NOLINT: another user runs it
  Write(folder_.Path("ready"), ObjectBytes());
  Act(acts);
}

void FakeCompiler::Act(const std::string& acts) const {
  Write(Path("new"), fmt::format(kScript, folder_.path(), acts));
  chmod(Path("new").c_str(), 0755);
  rename(Path("new").c_str(), Path("compiler").c_str());
}

int FakeCompiler::runs() const {
  return static_cast<int>(LinesIn(Path("runs")).size());
}

std::vector<std::string> FakeCompiler::compiled() const {
  std::vector<std::string> symbols = LinesIn(Path("compiled"));
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

KernelSource Kernel(int k, const std::string& remark) {
  KernelSource kernel;
  kernel.symbol = fmt::format("k{}", k);
  kernel.key = Sha256(kernel.symbol);
  kernel.title = fmt::format("Add float[{}]", k);
  kernel.record = fmt::format("{{\"op\": {}}}\n", k);
  kernel.program = fmt::format("// COUNT {}\n{}\nextern \"C\" int {}() {{ return base + {}; }}\n",
                               kernel.symbol, remark, kernel.symbol, k);
  return kernel;
}

BuildPlan PlanOf(int kernels) {
  BuildPlan plan;
  plan.beginning = "static const int base = 100;\n";
  plan.generator = "test 1";
  for (int k = 0; k < kernels; ++k) plan.kernels.push_back(Kernel(k));
  return plan;
}

std::vector<std::string> SymbolsOf(int kernels) {
  std::vector<std::string> symbols;
  for (int k = 0; k < kernels; ++k) symbols.push_back(fmt::format("k{}", k));
  std::sort(symbols.begin(), symbols.end());
  return symbols;
}

void Write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> TextsOf(const std::vector<KernelStore::Damage>& damages) {
  std::vector<std::string> texts;
  for (const auto& damage : damages) {
    texts.push_back(fmt::format("{}: {}", damage.file, damage.what));
  }
  return texts;
}

int InProcess(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    _exit(body());
  }
  int state = 0;
  waitpid(child, &state, 0);
  return WIFSIGNALED(state) ? 1000 + WTERMSIG(state) : WEXITSTATUS(state);
}

std::vector<std::string> InProcesses(int count, const std::function<std::string(int)>& body) {
  const Pipe begin;
  const Pipe end;
  std::vector<Process> processes;
  for (int k = 0; k < count; ++k) {
    processes.push_back(Start(begin, end, [&body, k] { return body(k); }));
  }
  close(begin.ends[1]);
  std::vector<std::string> said;
  for (const Process& process : processes) {
    std::string text = Hear(process.says);
    if (!text.empty()) text.pop_back();
    said.push_back(std::move(text));
  }
  close(end.ends[1]);
  for (const Process& process : processes) {
    waitpid(process.id, nullptr, 0);
    close(process.says);
  }
  close(begin.ends[0]);
  close(end.ends[0]);
  return said;
}

}  // namespace npumesh::testing
