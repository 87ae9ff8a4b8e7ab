// The progress line of loading weights: on a terminal, and nowhere else.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

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

// `npumesh run` with standard error on a terminal of its own, standard output thrown away.
Said RunOnTerminal(const TestFolder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> words = {NPUMESH_COMMAND, "run", folder / "m.air"};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  Said said;
  EXPECT_GT(child, 0) << "no terminal";
  if (child <= 0) return said;
  // The end of the terminal's other side is an error on Linux, not an end of file.
  char bytes[256];
  for (ssize_t got = 0; (got = read(terminal, bytes, sizeof bytes)) > 0;) {
    said.on_terminal.append(bytes, static_cast<size_t>(got));
  }
  EXPECT_EQ(waitpid(child, &said.status, 0), child);
  close(terminal);
  return said;
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

}  // namespace
}  // namespace npumesh
