#include "tests/fuzz/engine/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace npumesh::fuzz {
namespace {

void Send(int pipe, const std::string& message) {
  std::string bytes(sizeof(uint32_t), '\0');
  const auto length = static_cast<uint32_t>(message.size());
  std::memcpy(bytes.data(), &length, sizeof(length));
  bytes += message;
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = write(pipe, bytes.data() + sent, bytes.size() - sent);
    if (n <= 0) _exit(1);
    sent += static_cast<size_t>(n);
  }
}

[[noreturn]] void BeChild(int pipe, const std::function<void(const Say& say)>& body,
                          const ChildLimits& limits) {
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
#ifndef NPUMESH_SANITIZED
  rlimit space = {limits.address_space, limits.address_space};
  setrlimit(RLIMIT_AS, &space);
#else
  static_cast<void>(limits);
#endif
  body([pipe](const std::string& message) { Send(pipe, message); });
  _exit(0);
}

// Takes whole messages from the front of `bytes`.
void TakeMessages(std::string& bytes, std::vector<std::string>& said) {
  uint32_t length = 0;
  while (bytes.size() >= sizeof(length)) {
    std::memcpy(&length, bytes.data(), sizeof(length));
    if (bytes.size() < sizeof(length) + length) return;
    said.push_back(bytes.substr(sizeof(length), length));
    bytes.erase(0, sizeof(length) + length);
  }
}

// False: nothing came for too long.
bool Listen(int pipe, std::chrono::seconds silence, std::vector<std::string>& said) {
  std::string bytes;
  char chunk[4096];
  while (true) {
    pollfd ready = {pipe, POLLIN, 0};
    const int found = poll(&ready, 1, static_cast<int>(silence.count() * 1000));
    if (found < 0 && errno == EINTR) continue;
    if (found <= 0) return false;
    const ssize_t n = read(pipe, chunk, sizeof(chunk));
    if (n <= 0) return true;
    bytes.append(chunk, static_cast<size_t>(n));
    TakeMessages(bytes, said);
  }
}

std::string EndOf(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  const int code = WEXITSTATUS(status);
  return code == 0 ? "" : "exit code " + std::to_string(code);
}

}  // namespace

ChildReport RunInChild(const std::function<void(const Say& say)>& body, const ChildLimits& limits) {
  int ends[2];
  if (pipe(ends) != 0) return {{}, "no pipe"};
  const pid_t child = fork();
  if (child < 0) return {{}, "no process"};
  if (child == 0) {
    close(ends[0]);
    BeChild(ends[1], body, limits);
  }
  close(ends[1]);
  ChildReport report;
  const bool ended = Listen(ends[0], limits.silence, report.said);
  if (!ended) kill(child, SIGKILL);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  report.end = ended ? EndOf(status) : "hangs";
  return report;
}

}  // namespace npumesh::fuzz
