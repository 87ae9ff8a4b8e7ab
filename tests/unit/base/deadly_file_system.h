// DeadlyFileSystem: a file system in which the process dies at the n-th call, for tests of what a
// killed process leaves.
#ifndef NPUMESH_TESTS_UNIT_BASE_DEADLY_FILE_SYSTEM_H_
#define NPUMESH_TESTS_UNIT_BASE_DEADLY_FILE_SYSTEM_H_

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/files/file_system.h"

namespace npumesh {

// The real file system, without waiting for the disk, in which the process dies at the n-th call.
class DeadlyFileSystem final : public FileSystem {
 public:
  explicit DeadlyFileSystem(int at) : at_(at) {}

  Result<std::unique_ptr<WritableFile>> Create(const std::string& path, mode_t mode) override {
    Live();
    NPUMESH_ASSIGN_OR_RETURN(auto file, RealFileSystem().Create(path, mode));
    return std::unique_ptr<WritableFile>(std::make_unique<File>(*this, std::move(file)));
  }
  Result<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path, mode_t mode) override {
    Live();
    return RealFileSystem().OpenAtEnd(path, mode);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    Live();
    return RealFileSystem().Rename(from, to);
  }
  Status Remove(const std::string& path) override {
    Live();
    return RealFileSystem().Remove(path);
  }
  Status MakeFolder(const std::string& path, mode_t mode) override {
    Live();
    return RealFileSystem().MakeFolder(path, mode);
  }
  Status SyncFolder(const std::string&) override {
    Live();
    return Status();
  }

 private:
  class File final : public WritableFile {
   public:
    File(DeadlyFileSystem& owner, std::unique_ptr<WritableFile> base)
        : owner_(owner), base_(std::move(base)) {}
    Status Append(std::span<const std::byte> bytes) override {
      owner_.Live();
      return base_->Append(bytes);
    }
    Status Sync() override { return Status(); }
    Status Close() override { return base_->Close(); }

   private:
    DeadlyFileSystem& owner_;
    std::unique_ptr<WritableFile> base_;
  };

  void Live() {
    if (++calls_ == at_) kill(getpid(), SIGKILL);
  }

  const int at_;
  std::atomic<int> calls_{0};
};

// True when a separate process got through `body`; false when it was killed.
inline bool Survives(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  int state = 0;
  waitpid(child, &state, 0);
  EXPECT_TRUE(WIFSIGNALED(state) || WEXITSTATUS(state) == 0);
  return !WIFSIGNALED(state);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_BASE_DEADLY_FILE_SYSTEM_H_
