// BuilderFolder: where one builder writes before it publishes, named by its owner, so that the next
// builder removes that of a dead one. Needs no locks of the file system.
//
// Thread-safety: none; any number of processes and threads in one parent.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_STORE_BUILDER_FOLDER_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_STORE_BUILDER_FOLDER_H_

#include <string>
#include <vector>

#include "runtime/base/files/file_system.h"
#include "runtime/base/status.h"

namespace npumesh {

class BuilderFolder {
 public:
  // Error (kIo): `parent` takes no folders.
  static Result<BuilderFolder> Make(const std::string& parent, FileSystem& fs);
  ~BuilderFolder() { Remove(); }
  BuilderFolder(BuilderFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  BuilderFolder& operator=(BuilderFolder&&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit BuilderFolder(std::string path) : path_(std::move(path)) {}
  void Remove();
  std::string path_;  // empty: moved from
};

// Removes the folders of builders that are gone, with all they hold; their paths.
std::vector<std::string> RemoveDeadBuilders(const std::string& parent);

// True when `parent` has the folder of a builder that is alive for all we know.
bool HasLivingBuilder(const std::string& parent);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_STORE_BUILDER_FOLDER_H_
