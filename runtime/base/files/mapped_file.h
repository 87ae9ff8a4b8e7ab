// A file mapped read-only and privately.
//
// Thread-safety: immutable after construction. Who truncates a mapped file kills its readers.
#ifndef NPUMESH_RUNTIME_BASE_FILES_MAPPED_FILE_H_
#define NPUMESH_RUNTIME_BASE_FILES_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/base/status.h"

namespace npumesh {

class MappedFile {
 public:
  // Maps all of `path`. An empty file maps to size 0. Errors: kNotFound, kIo; kInvalidArgument for
  // one that may not be opened and for anything but a regular file.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

  // Hints for the pages of [data, data + bytes), a part of the mapping: they will be read soon, or
  // are not needed now. Released pages are read from the file again when they are touched.
  void ReadAhead(const std::byte* data, uint64_t bytes) const;
  void Release(const std::byte* data, uint64_t bytes) const;

 private:
  MappedFile(const std::byte* data, uint64_t size) : data_(data), size_(size) {}
  const std::byte* data_;
  uint64_t size_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_MAPPED_FILE_H_
