// What a terminal gets and nothing else: progress lines, colours, folded lines.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "graph/io/model_file.h"
#include "tests/mpi/cli/run_command.h"

namespace npumesh {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSize = 2048;  // 16 MiB of float32, from where on there is a line

// y = x w for w in a file.
void PutProduct(const TestFolder& folder) {
  const std::string path = folder / "w";
  const int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, kSize * kSize * 4), 0);
  close(fd);
  GraphBuilder g("product");
  const Value x = g.Data("x", {DataType::kFloat, {1, kSize}});
  const Value w = g.FileConstant("w", {DataType::kFloat, {kSize, kSize}}, path);
  g.Output({g.Op("MatMul", {{"x1", x}, {"x2", w}})});
  const Result<Model> model = g.Build();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ASSERT_TRUE(SaveAir(*model, folder / "m.air").ok());
}

struct Said {
  int status = -1;  // as waitpid gives it
  std::string on_terminal;
};

// Becomes npumesh on the terminal; does not return.
void BecomeCommand(int terminal, char* const* argv, bool output) {
  if (login_tty(terminal) != 0) _exit(127);
  const int nowhere = open("/dev/null", O_WRONLY);
  if (!output) dup2(nowhere, STDOUT_FILENO);
  setenv("TERM", "xterm", 1);
  for (const char* name : {"COLUMNS", "PMIX_RANK"}) unsetenv(name);
  execv(argv[0], argv);
  _exit(127);
}

// All that is written to `terminal` until `child` ends, read from its other side. A reader that
// sees the last writer leave may miss what that one wrote last (Linux: n_tty_read), so a word of
// our own is the end.
Said ReadUntilEnd(int reader, int terminal, pid_t child) {
  const std::string_view end = "<end of the command>";
  Said said;
  bool ended = false;
  while (!said.on_terminal.ends_with(end)) {
    if (!ended && waitpid(child, &said.status, WNOHANG) == child) {
      ended = true;
      EXPECT_EQ(write(terminal, end.data(), end.size()), static_cast<ssize_t>(end.size()));
    }
    struct pollfd waited = {reader, POLLIN, 0};
    if (poll(&waited, 1, ended ? 10000 : 20) <= 0) {
      if (!ended) continue;
      ADD_FAILURE() << "nothing came from the terminal";
      return said;
    }
    char bytes[256];
    const ssize_t got = read(reader, bytes, sizeof bytes);
    if (got > 0) said.on_terminal.append(bytes, static_cast<size_t>(got));
  }
  said.on_terminal.resize(said.on_terminal.size() - end.size());
  return said;
}

// npumesh with a terminal of 60 columns; its standard output goes there, too, or is thrown away.
Said OnTerminal(std::vector<std::string> words, bool output) {
  words.insert(words.begin(), NPUMESH_COMMAND);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int reader = -1, terminal = -1;
  const struct winsize size = {24, 60, 0, 0};
  if (openpty(&reader, &terminal, nullptr, nullptr, &size) != 0) {
    ADD_FAILURE() << "no terminal: " << strerror(errno);
    return {};
  }
  fcntl(reader, F_SETFD, FD_CLOEXEC);
  const pid_t child = fork();
  if (child == 0) BecomeCommand(terminal, argv.data(), output);
  Said said = ReadUntilEnd(reader, terminal, child);
  close(terminal);
  close(reader);
  return said;
}

// `npumesh run` with standard error on a terminal, standard output thrown away.
Said RunOnTerminal(const TestFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> words = {"run", folder / "m.air"};
  words.insert(words.end(), more.begin(), more.end());
  return OnTerminal(words, false);
}

TEST(CliProgress, IsALineOnATerminal) {
  const TestFolder folder;
  PutProduct(folder);
  const Said said = RunOnTerminal(folder, {});
  EXPECT_EQ(said.status, 0) << said.on_terminal;
  EXPECT_THAT(said.on_terminal, HasSubstr("\rload weights 100% 16/16 MiB\r\n"));
}

TEST(CliProgress, CanBeLeftOut) {
  const TestFolder folder;
  PutProduct(folder);
  const Said said = RunOnTerminal(folder, {"--no-progress"});
  EXPECT_EQ(said.status, 0) << said.on_terminal;
  EXPECT_THAT(said.on_terminal, Not(HasSubstr("load weights")));
}

TEST(CliProgress, IsNotWrittenIntoAPipe) {
  const TestFolder folder;
  PutProduct(folder);
  const CommandRun run = RunAlone({"run", folder / "m.air"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err + run.out, Not(HasSubstr("load weights")));
}

// More steps than there is time for: how many are done and what is left, over one line, which is
// gone at the end. On a busy machine the ranks may take all of a short time before their first
// step.
TEST(CliProgress, OfStepsSaysWhatIsLeft) {
  const TestFolder folder;
  folder.PutModels(2);
  const auto matches = testing::ContainsRegex("\rstep [0-9]+ of 1000000, [0-9]+ %");
  Said said;
  for (const char* const seconds : {"3", "15", "75"}) {
    said = OnTerminal({"launch", "-n", "2", "--", "run", folder.path(), "--steps", "1000000",
                       "--timeout", seconds},
                      true);
    if (testing::Value(said.on_terminal, matches)) break;
  }
  EXPECT_THAT(said.on_terminal, matches);
  EXPECT_THAT(said.on_terminal, HasSubstr("\r\x1b[K"));
  EXPECT_THAT(said.on_terminal, Not(HasSubstr("\x1e")));
}

TEST(CliColours, AreForTerminalsOnly) {
  const TestFolder folder;
  folder.PutModels(1);
  folder.PutTensor("in", 0, 1);
  folder.PutTensor("golden", 0, 2);
  const std::vector<std::string> words = {"run",         folder / "m0.air", "--inputs",
                                          folder / "in", "--check",         folder / "golden"};
  unsetenv("NO_COLOR");
  const Said coloured = OnTerminal(words, true);
  EXPECT_EQ(coloured.status, 0);
  EXPECT_THAT(coloured.on_terminal, HasSubstr("check: \x1b[32mOK\x1b[0m"));
  setenv("NO_COLOR", "1", 1);
  const Said plain = OnTerminal(words, true);
  EXPECT_EQ(plain.status, 0);
  EXPECT_THAT(plain.on_terminal, HasSubstr("check: OK"));
  unsetenv("NO_COLOR");
  EXPECT_THAT(RunAlone(words).out, HasSubstr("check: OK"));
}

TEST(CliColours, LinesFitTheTerminal) {
  const Said said = OnTerminal({"env"}, true);
  EXPECT_EQ(said.status, 0);
  size_t begin = 0;
  for (size_t end; (end = said.on_terminal.find("\r\n", begin)) != std::string::npos;
       begin = end + 2) {
    EXPECT_LE(end - begin, 60u) << said.on_terminal.substr(begin, end - begin);
  }
}

}  // namespace
}  // namespace npumesh
