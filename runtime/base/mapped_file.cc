#include "runtime/base/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>

#include "runtime/base/system_error.h"

namespace npumesh {
namespace {

// Maps the open file; an empty span for an empty one.
Result<std::span<const std::byte>> Map(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return SystemError("inspect", path, errno);
  if (!S_ISREG(info.st_mode)) {
    return Error(Code::kInvalidArgument, "cannot map {}: it is not a regular file", path);
  }
  const auto size = static_cast<size_t>(info.st_size);
  if (size == 0) return std::span<const std::byte>();
  const void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return SystemError("map", path, errno);
  return std::span(static_cast<const std::byte*>(data), size);
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: a pipe must be refused, not waited for.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return SystemError("open", path, errno, errno == ENOENT ? Code::kNotFound : Code::kIo);
  }
  const auto mapped = Map(fd, path);
  close(fd);
  if (!mapped.ok()) return mapped.status();
  return std::shared_ptr<const MappedFile>(new MappedFile(mapped->data(), mapped->size()));
}

MappedFile::~MappedFile() {
  if (size_ != 0) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace npumesh
