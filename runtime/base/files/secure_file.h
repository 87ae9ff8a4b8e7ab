// SecureFile: files appear whole or not at all, with the permissions of the security page.
//
// Written aside as ".<name>.<thread id>.<n>.tmp" in the same folder, synced, renamed. A symbolic
// link as the target, or as its folder, is refused. Permissions come from one table
// (docs/security.md) and are never wider than the umask allows.
#ifndef NPUMESH_RUNTIME_BASE_FILES_SECURE_FILE_H_
#define NPUMESH_RUNTIME_BASE_FILES_SECURE_FILE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

// What a file is for; decides its permission (PermissionTable).
enum class FileKind {
  kConfig,
  kLog,  // what SecureFile commits is finished
  kDebug,
  kGraphDump,
  kDataDump,
  kData,     // business data
  kProgram,  // is run
  kKernel,   // machine code that this user runs, and what it was made from
  kTemporary,
};

// One row of the permission table, which docs/security.md prints.
struct Permission {
  FileKind kind;
  std::string_view what;  // what of npumesh is of this kind
  mode_t file;            // while written
  mode_t finished;
  mode_t folder;
};
std::span<const Permission> PermissionTable();

mode_t FileMode(FileKind kind);  // while written
mode_t FolderMode(FileKind kind);

// Creates `path` and its missing parents. An existing symbolic link at `path` is refused
// (kInvalidArgument); one among its parents is followed.
Status MakeFolders(const std::string& path, FileKind kind, FileSystem& fs = RealFileSystem());

// Creates `root` as above, and the folders of the relative path `below` in it. Of these, too, a
// symbolic link is refused, whichever it is.
Status MakeFoldersBelow(const std::string& root, const std::string& below, FileKind kind,
                        FileSystem& fs = RealFileSystem());

// One file on its way. Destroying it before Commit removes what was written aside.
class SecureFile {
 public:
  // Starts writing `path`, whose folder must exist. Errors: kIo names the path and the system's
  // reason; kInvalidArgument for a symbolic link or a folder.
  static Result<std::unique_ptr<SecureFile>> Create(const std::string& path, FileKind kind,
                                                    FileSystem& fs = RealFileSystem());
  ~SecureFile();
  SecureFile(const SecureFile&) = delete;
  SecureFile& operator=(const SecureFile&) = delete;

  Status Append(std::span<const std::byte> bytes);
  Status Append(std::string_view text);

  // Sync, close, rename, sync of the folder. After an error the target is whole: what it was
  // before, or, when only the last step failed, the new content (the message says so). REQUIRES:
  // not called before.
  Status Commit();

  // Close and rename, without sync: whole for every reader, also when this process is
  // killed, but not after a power failure. For files in great number whose loss costs a second run.
  // After an error the target is what it was before. REQUIRES: neither Commit was called before.
  Status CommitUnsynced();

 private:
  Status Publish();

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

// Adds `text` at the end of `path`, which is created when it is missing, with one write. For
// journals only, whose readers pass over a line that is cut off. Errors as SecureFile::Create.
Status AppendToFile(const std::string& path, std::string_view text, FileKind kind,
                    FileSystem& fs = RealFileSystem());

// The whole file. Errors: kNotFound; kInvalidArgument when it may not be opened; kIo; kCorrupt when
// it is longer than `max_bytes`.
Result<std::string> ReadFile(const std::string& path, uint64_t max_bytes = uint64_t{1} << 32);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_SECURE_FILE_H_
