// WorkFolder: where the files of a publication lie until they are where they belong, and what an
// export that was killed has left.
//
//   .npumesh-export.<target>.<token>/     beside the target, or in it where there is no room beside
//     .owner                              whose process locks the folder while it lives
//     new/                                the files to publish; after an exchange, the old ones
//     old/                                files that were replaced one by one
//     journal                             names that are being replaced one by one, a line each
//
// A folder without a lock was left behind. With a journal the target has old and new files side by
// side; without, the target is whole.
#ifndef NPUMESH_GRAPH_EXPORT_WORK_FOLDER_H_
#define NPUMESH_GRAPH_EXPORT_WORK_FOLDER_H_

#include <string>
#include <vector>

#include "runtime/base/files/file_system.h"

namespace npumesh {

struct WorkFolder {
  std::string path;
  std::string target;  // absolute, without a slash at its end

  std::string owner_mark() const { return path + "/.owner"; }
  std::string fresh() const { return path + "/new"; }
  std::string old() const { return path + "/old"; }
  std::string journal() const { return path + "/journal"; }

  // Of a publication into `target`, told from others by `token`.
  static WorkFolder Beside(const std::string& target, const std::string& token);
  static WorkFolder In(const std::string& target, const std::string& token);

  // Undoes what was replaced one by one, if anything was. May be killed and called again.
  Status TakeBack(FileSystem& fs) const;
  // Removes the folder and all in it; what cannot be removed is said in the log.
  void Remove(FileSystem& fs) const;
};

struct Leftover {
  WorkFolder folder;
  bool running = false;      // its export is still at work
  bool interrupted = false;  // the target has old and new files side by side
};

// The work folders of `target`, which need not exist.
std::vector<Leftover> LeftoversOf(const std::string& target);

// Takes back and removes what killed exports into `target` have left, and says so in the log.
Status ClearLeftovers(const std::string& target, FileSystem& fs);

// All work folders in `place`, whatever their target; which it is is not known (empty).
std::vector<Leftover> WorkFoldersIn(const std::string& place);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_EXPORT_WORK_FOLDER_H_
