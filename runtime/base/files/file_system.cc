#include "runtime/base/files/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/files/path_lock.h"
#include "runtime/base/files/system_call.h"
#include "runtime/base/files/system_error.h"

namespace npumesh {
namespace {

class PosixFile final : public WritableFile {
 public:
  PosixFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~PosixFile() override {
    if (fd_ >= 0) close(fd_);
    if (claim_ >= 0) close(claim_);
  }
  int fd() const { return fd_; }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  Status Append(std::span<const std::byte> bytes) override {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const int reason = WriteAll(fd_, text);
    return reason == 0 ? Status() : SystemError("write", path_, reason);
  }

  Status Sync() override {
    if (Uninterrupted([this] { return fsync(fd_); }) != 0) return SystemError("sync", path_, errno);
    return Status();
  }

  // The claim on the file outlives it, so that it can be renamed before anybody takes it for a
  // leftover.
  Status Close() override {
    const int fd = fd_;
    fd_ = -1;
    claim_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    // Interrupted, it has closed all the same.
    if (close(fd) != 0 && errno != EINTR) return SystemError("close", path_, errno);
    return Status();
  }

 private:
  const std::string path_;
  int fd_;
  int claim_ = -1;  // the same open file
};

class PosixFileSystem final : public FileSystem {
 public:
  Result<std::unique_ptr<WritableFile>> Create(const std::string& path, mode_t mode) override {
    for (;;) {
      auto file = Open(path, O_EXCL, mode);
      if (!file.ok() || ClaimNewFile((*file)->fd())) return Opened(std::move(file));
      file->reset();
      // Who took it for a leftover has it removed in a moment.
      while (access(path.c_str(), F_OK) == 0) sched_yield();
    }
  }

  Result<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path, mode_t mode) override {
    return Opened(Open(path, O_APPEND, mode));
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (rename(from.c_str(), to.c_str()) != 0) {
      return SystemError("replace", to, errno);
    }
    return Status();
  }

  Status Remove(const std::string& path) override {
    if (::remove(path.c_str()) != 0 && errno != ENOENT) return SystemError("remove", path, errno);
    return Status();
  }

  Status MakeFolder(const std::string& path, mode_t mode) override {
    if (mkdir(path.c_str(), mode) == 0) return Status();
    const int reason = errno;
    struct stat info;
    if (reason == EEXIST && lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      return Status();
    }
    return SystemError("create folder", path, reason);
  }

  Status SyncFolder(const std::string& path) override {
    const int fd =
        Uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return SystemError("open folder", path, errno);
    const int reason = Uninterrupted([fd] { return fsync(fd); }) == 0 ? 0 : errno;
    close(fd);
    // EINVAL: a file system whose folders need no sync.
    if (reason != 0 && reason != EINVAL) return SystemError("sync folder", path, reason);
    return Status();
  }

 private:
  static Result<std::unique_ptr<PosixFile>> Open(const std::string& path, int flag, mode_t mode) {
    const int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flag;
    const int fd = Uninterrupted([&] { return open(path.c_str(), flags, mode); });
    if (fd < 0) return SystemError("create", path, errno);
    return std::make_unique<PosixFile>(path, fd);
  }

  static Result<std::unique_ptr<WritableFile>> Opened(Result<std::unique_ptr<PosixFile>> file) {
    if (!file.ok()) return file.status();
    return std::unique_ptr<WritableFile>(*std::move(file));
  }
};

}  // namespace

FileSystem& RealFileSystem() {
  static PosixFileSystem* const file_system = new PosixFileSystem;
  return *file_system;
}

}  // namespace npumesh
