// StagedFolder: files of several ranks that appear in a folder all together or not at all.
//
// Files are written aside, into a work folder (work_folder.h). Publishing is one rename that
// nothing can interrupt: of the new folder, or by exchanging it with the one that exists, to which
// what else lay there has been carried over. Where folders cannot change places (the working
// folder, another file system, another user's) files are replaced one by one after a journal of
// them was written; a process killed in the middle of that leaves old and new ones side by side,
// `npumesh validate` tells, and the next export takes it back. An error takes everything back.
//
// Ranks that share a file system share the folder: one owns it, creates and publishes, the others
// only write. Symbolic links are refused: as the folder, as a folder in it, as a file.
//
// Thread-safety: none; each rank has a separate object.
#ifndef NPUMESH_GRAPH_EXPORT_STAGED_FOLDER_H_
#define NPUMESH_GRAPH_EXPORT_STAGED_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/export/work_folder.h"
#include "runtime/base/files/file_system.h"
#include "runtime/base/files/path_lock.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {

class StagedFolder {
 public:
  // `target` is the folder; `token`, equal on all ranks, tells this publication from others. The
  // work folder lies beside the target, or in it.
  enum class Place { kBeside, kIn };
  StagedFolder(const std::string& target, Place place, const std::string& token, FileSystem& fs);
  // Beside the target, if files can be moved from there into it.
  static Place PlaceFor(const std::string& target);
  // Takes back what was not kept.
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  // Refuses links, and anything but files and folders, where `names` (relative to the folder) would
  // go. Writes nothing.
  Status CheckTargets(const std::vector<std::string>& names) const;

  // Creates the work folder and owns it, unless another rank does already. Clears what killed
  // exports have left before.
  Status Open();
  bool owner() const { return owner_; }
  // The work folder is there, for this rank to see.
  bool Visible() const;

  // Starts `name`, which may lie in a separate folder. REQUIRES: Visible().
  Result<std::unique_ptr<SecureFile>> Start(const std::string& name);
  Status Write(const std::string& name, std::string_view content);
  // Where Start writes `name`, for writers that open files themselves. REQUIRES: Visible().
  std::string PathOf(const std::string& name) const;
  // Gives a file that was written permission 0400.
  Status Protect(const std::string& name);

  // The owner's: puts everything that was written, by all ranks, where it belongs. On failure
  // everything is as it was.
  Status Publish();
  // After Publish: takes it back, because another rank failed.
  void TakeBack();
  // After Publish: it stays; what it replaced is removed.
  void Keep();

 private:
  enum class Published { kNothing, kRenamed, kExchanged, kReplaced };
  Status CheckTarget(const std::string& name) const;
  Status CheckPublished(const std::vector<std::string>& names) const;
  Status PublishFolder();
  // False: the folders cannot change places here.
  Result<bool> PublishByExchange();
  Status PublishFileByFile(const std::vector<std::string>& names);
  Status PublishFile(const std::string& name);
  Status EnsureFolder(const std::string& path);

  FileSystem& fs_;
  std::string target_;  // absolute, without a slash at its end
  WorkFolder work_;
  PathLock lock_;
  bool existed_;  // the target was there before
  bool owner_ = false;
  Published published_ = Published::kNothing;
  std::vector<std::string> made_;  // folders this rank created outside of the work folder, in order
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_STAGED_FOLDER_H_
