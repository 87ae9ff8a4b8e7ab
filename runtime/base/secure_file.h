// SecureFile: files appear whole or not at all, with the permissions of the security page.
//
// Written aside as ".<name>.<pid>.tmp" in the same folder, synced, renamed. A symbolic link as the
// target, or as its folder, is refused. Permissions come from one table (seed S0.1) and are never
// wider than the umask allows.
#ifndef NPUMESH_RUNTIME_BASE_SECURE_FILE_H_
#define NPUMESH_RUNTIME_BASE_SECURE_FILE_H_

#include <span>
#include <string>
#include <string_view>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

// What a file is for; decides its permission. Maxima of seed S0.1, table 1.
enum class FileKind {
  kConfig,     // 640, folders 750
  kLog,        // 640 while written, 440 when finished
  kDebug,      // 640, folders 750
  kGraphDump,  // 600
  kDataDump,   // 600, folders 750
  kData,       // business data: 640, folders 750
  kTemporary,  // 640, folders 750
};

mode_t FileMode(FileKind kind);
mode_t FolderMode(FileKind kind);

// Creates `path` and its missing parents. An existing symbolic link at `path` is refused.
Status MakeFolders(const std::string& path, FileKind kind, FileSystem& fs = RealFileSystem());

// One file on its way. Destroying it before Commit removes what was written aside.
class SecureFile {
 public:
  // Starts writing `path`. Errors: kIo names the path and the system's reason; kInvalidArgument for
  // a symbolic link.
  static Result<std::unique_ptr<SecureFile>> Create(const std::string& path, FileKind kind,
                                                    FileSystem& fs = RealFileSystem());
  ~SecureFile();
  SecureFile(const SecureFile&) = delete;
  SecureFile& operator=(const SecureFile&) = delete;

  Status Append(std::span<const std::byte> bytes);
  Status Append(std::string_view text);

  // Sync, close, rename. After an error the target is what it was before.
  Status Commit();

 private:
  SecureFile(std::string path, std::string aside, std::unique_ptr<WritableFile> file,
             FileSystem& fs);
  std::string path_;
  std::string aside_;
  std::unique_ptr<WritableFile> file_;
  FileSystem& fs_;
  bool committed_ = false;
};

// Create, Append, Commit in one call.
Status WriteFile(const std::string& path, std::string_view content, FileKind kind,
                 FileSystem& fs = RealFileSystem());

// The whole file. Errors: kNotFound, kIo; kCorrupt when it is longer than `max_bytes`.
Result<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_SECURE_FILE_H_
