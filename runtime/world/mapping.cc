#include "runtime/world/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace npumesh {
namespace {

class MappedSegment final : public NodeSegment {
 public:
  MappedSegment(std::vector<std::shared_ptr<Mapping>> parts, uint64_t bytes, UniqueFd own)
      : parts_(std::move(parts)), bytes_(bytes), own_(std::move(own)) {}
  std::byte* part(int world_rank) const override {
    const auto& part = parts_[static_cast<size_t>(world_rank)];
    return part ? part->data() : nullptr;
  }
  uint64_t bytes() const override { return bytes_; }
  int descriptor() const override { return own_.get(); }

 private:
  std::vector<std::shared_ptr<Mapping>> parts_;
  uint64_t bytes_;
  UniqueFd own_;
};

}  // namespace

uint64_t RoundUpToPages(uint64_t bytes) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Result<UniqueFd> MakeSharedMemory(std::string_view label, uint64_t bytes) {
  const std::string name = "npumesh-" + std::string(label);
  UniqueFd fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) {
    return Error(Code::kIo, "shared memory \"{}\": memfd_create: {}", label, std::strerror(errno));
  }
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return Error(Code::kOutOfMemory, "shared memory \"{}\" of {} bytes: {}", label, bytes,
                 std::strerror(errno));
  }
  // A peer that shrank the file would take the pages away from all ranks.
  fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
  return fd;
}

Result<std::shared_ptr<Mapping>> Mapping::Map(const UniqueFd& fd, uint64_t bytes) {
  return Part(fd, 0, bytes);
}

Result<std::shared_ptr<Mapping>> Mapping::Part(const UniqueFd& fd, uint64_t offset,
                                               uint64_t bytes) {
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd.get(),
                    static_cast<off_t>(offset));
  if (data == MAP_FAILED) {
    return Error(
        Code::kOutOfMemory,
        "mapping {} bytes of shared memory: {}; set NPUMESH_HBM_SIZE to less, or raise the "
        "limit of the address space (ulimit -v)",
        bytes, std::strerror(errno));
  }
  return std::shared_ptr<Mapping>(new Mapping(data, bytes));
}

Result<std::shared_ptr<Mapping>> Mapping::OfProcess(std::string_view label, uint64_t bytes) {
  constexpr int kPrivate = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, kPrivate, -1, 0);
  if (data != MAP_FAILED) return std::shared_ptr<Mapping>(new Mapping(data, bytes));
  // A system that counts what private memory might take one day may still have room for a file.
  NPUMESH_ASSIGN_OR_RETURN(const UniqueFd fd, MakeSharedMemory(label, bytes));
  return Map(fd, bytes);
}

Result<std::shared_ptr<Mapping>> Mapping::OfDescriptor(std::string_view label, uint64_t bytes,
                                                       UniqueFd* fd) {
  NPUMESH_ASSIGN_OR_RETURN(*fd, MakeSharedMemory(label, bytes));
  return Map(*fd, bytes);
}

Mapping::Mapping(void* data, uint64_t bytes) : data_(static_cast<std::byte*>(data)), bytes_(bytes) {
  madvise(data, bytes, MADV_HUGEPAGE);  // a wish; systems without huge pages refuse it
  madvise(data, bytes, MADV_DONTDUMP);  // core files stay of a size one can keep
}

Mapping::~Mapping() {
  munmap(data_, bytes_);
}

std::unique_ptr<NodeSegment> MakeNodeSegment(std::vector<std::shared_ptr<Mapping>> parts,
                                             uint64_t bytes, UniqueFd own) {
  return std::make_unique<MappedSegment>(std::move(parts), bytes, std::move(own));
}

}  // namespace npumesh
