#include "runtime/base/files/mapped_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <span>

#include "runtime/base/files/system_call.h"
#include "runtime/base/files/system_error.h"

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

// The part of `bytes` from `data` on that consists of whole pages, as madvise takes it.
struct Pages {
  void* start = nullptr;
  size_t bytes = 0;
};

enum class Partial : bool { kIn, kOut };

Pages PagesOf(const std::byte* data, uint64_t bytes, Partial partial) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto up = [page](uintptr_t at) { return (at + page - 1) / page * page; };
  const auto down = [page](uintptr_t at) { return at / page * page; };
  const auto first = reinterpret_cast<uintptr_t>(data);
  const uintptr_t start = partial == Partial::kIn ? down(first) : up(first);
  const uintptr_t end = partial == Partial::kIn ? up(first + bytes) : down(first + bytes);
  return {reinterpret_cast<void*>(start), end > start ? end - start : 0};
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: a pipe must be refused, not waited for.
  const int fd =
      Uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  if (fd < 0) {
    return SystemError("open", path, errno,
                       errno == ENOENT ? Code::kNotFound : Code::kInvalidArgument);
  }
  const auto mapped = Map(fd, path);
  close(fd);
  if (!mapped.ok()) return mapped.status();
  return std::shared_ptr<const MappedFile>(new MappedFile(mapped->data(), mapped->size()));
}

void MappedFile::ReadAhead(const std::byte* data, uint64_t bytes) const {
  const Pages pages = PagesOf(data, bytes, Partial::kIn);
  if (pages.bytes != 0) madvise(pages.start, pages.bytes, MADV_WILLNEED);
}

void MappedFile::Release(const std::byte* data, uint64_t bytes) const {
  const Pages pages = PagesOf(data, bytes, Partial::kOut);
  if (pages.bytes != 0) madvise(pages.start, pages.bytes, MADV_DONTNEED);
}

MappedFile::~MappedFile() {
  if (size_ != 0) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace npumesh
