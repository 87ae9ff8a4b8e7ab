// StagedFolder: files of several ranks that appear in a folder all together or not at all.
//
// Files are written aside. Publishing renames: where the folder is new, it alone, in one step that
// nothing can interrupt; into a folder that exists, file by file, each whole, with what was there
// kept aside until all are in place. An error takes everything back. A process that is killed
// between those renames leaves old and new files side by side, and the rest in a folder whose name
// starts with ".npumesh-export"; `npumesh validate` tells.
//
// Ranks that share a file system share the folder: one owns it, creates and publishes, the others
// only write. Symbolic links are refused: as the folder, as a folder in it, as a file.
//
// Thread-safety: none; each rank has an object of its own.
#ifndef NPUMESH_GRAPH_EXPORT_STAGED_FOLDER_H_
#define NPUMESH_GRAPH_EXPORT_STAGED_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/file_system.h"
#include "runtime/base/secure_file.h"

namespace npumesh {

class StagedFolder {
 public:
  // `target` is the folder; `token`, equal on all ranks, tells this publication from others.
  StagedFolder(const std::string& target, const std::string& token, FileSystem& fs);
  // Takes back what was not kept.
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  // Refuses links, and anything but files and folders, where `names` (relative to the folder) would
  // go. Writes nothing.
  Status CheckTargets(const std::vector<std::string>& names) const;

  // Creates the folder aside and owns it, unless another rank does already.
  Status Open();
  bool owner() const { return owner_; }
  // The folder aside is there, for this rank to see.
  bool Visible() const;

  // Starts `name`, which may lie in a folder of its own. REQUIRES: Visible().
  Result<std::unique_ptr<SecureFile>> Start(const std::string& name);
  Status Write(const std::string& name, std::string_view content);
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
  struct Move {
    std::string from;
    std::string to;
  };
  Status CheckTarget(const std::string& name) const;
  Status PublishInto(const std::vector<std::string>& names);
  Status PublishFile(const std::string& name);
  Status EnsureFolder(const std::string& path);
  Status MoveFile(const std::string& from, const std::string& to);
  void RemoveTree(const std::string& path);

  FileSystem& fs_;
  std::string target_;  // absolute, without a slash at its end
  std::string aside_;   // absolute
  std::string old_;     // where replaced files wait
  bool existed_;        // the target was there before
  bool owner_ = false;
  std::vector<std::string> made_;  // folders this rank created outside of `aside_`, in order
  std::vector<Move> moves_;        // done, in order
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_STAGED_FOLDER_H_
