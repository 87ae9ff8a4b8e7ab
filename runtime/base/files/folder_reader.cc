#include "runtime/base/files/folder_reader.h"

#include <cerrno>
#include <string_view>

namespace npumesh {

FolderReader::FolderReader(const std::string& folder) : folder_(opendir(folder.c_str())) {
  if (folder_ == nullptr) error_ = errno;
}

FolderReader::~FolderReader() {
  if (folder_ != nullptr) closedir(folder_);
}

const char* FolderReader::Next() {
  while (folder_ != nullptr && error_ == 0) {
    errno = 0;
    const dirent* const entry = readdir(folder_);
    if (entry == nullptr) {
      error_ = errno;
      return nullptr;
    }
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry->d_name;
  }
  return nullptr;
}

}  // namespace npumesh
