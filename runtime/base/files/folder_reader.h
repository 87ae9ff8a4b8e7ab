// FolderReader: the names in a folder, one after the other.
//
// In the place of std::filesystem::directory_iterator: that of libstdc++ ends the process where
// there is no memory for a name, because its functions below are noexcept.
//
// Thread-safety: one thread at a time.
#ifndef NPUMESH_RUNTIME_BASE_FILES_FOLDER_READER_H_
#define NPUMESH_RUNTIME_BASE_FILES_FOLDER_READER_H_

#include <dirent.h>

#include <string>

namespace npumesh {

class FolderReader {
 public:
  explicit FolderReader(const std::string& folder);
  ~FolderReader();
  FolderReader(const FolderReader&) = delete;
  FolderReader& operator=(const FolderReader&) = delete;

  // The next name but "." and "..", in no order; valid until the next call. Null after the last
  // one, and when the folder cannot be read, which `error` says.
  const char* Next();

  int error() const { return error_; }  // an errno; 0: all went well so far

 private:
  DIR* folder_;  // null: it cannot be opened
  int error_ = 0;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_FOLDER_READER_H_
