// FileSystem: the few operations by which npumesh writes files, as a seam for tests.
//
// The product uses `RealFileSystem()`; tests wrap it in one that fails at the n-th call and check
// that whatever was there before is still whole.
//
// Thread-safety: implementations may be called from several threads at once.
#ifndef NPUMESH_RUNTIME_BASE_FILES_FILE_SYSTEM_H_
#define NPUMESH_RUNTIME_BASE_FILES_FILE_SYSTEM_H_

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace npumesh {

// An open file that is being written.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status Append(std::span<const std::byte> bytes) = 0;
  virtual Status Sync() = 0;   // data is on the disk
  virtual Status Close() = 0;  // no further calls
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates `path`, which must not exist, with exactly `mode` & ~umask. Does not follow symlinks.
  virtual Result<std::unique_ptr<WritableFile>> Create(const std::string& path, mode_t mode) = 0;
  // Opens `path` to write at its end, creating it as Create does. Does not follow symlinks.
  virtual Result<std::unique_ptr<WritableFile>> OpenAtEnd(const std::string& path, mode_t mode) = 0;
  // Atomically replaces `to`, a file or, by a folder, an empty folder. On failure `to` is
  // unchanged.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // A file, or an empty folder. Removing what is not there is success.
  virtual Status Remove(const std::string& path) = 0;
  // Creates one folder; an existing folder is success, anything else there is an error.
  virtual Status MakeFolder(const std::string& path, mode_t mode) = 0;
  // Makes a rename in this folder durable.
  virtual Status SyncFolder(const std::string& path) = 0;
};

FileSystem& RealFileSystem();

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_FILE_SYSTEM_H_
