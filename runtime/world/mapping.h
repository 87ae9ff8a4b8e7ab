// Memory without a name: what both transports build their node segments from.
#ifndef NPUMESH_RUNTIME_WORLD_MAPPING_H_
#define NPUMESH_RUNTIME_WORLD_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/files/unique_fd.h"
#include "runtime/base/status.h"
#include "runtime/world/transport.h"

namespace npumesh {

// `bytes` of zero memory in an anonymous file; pages are taken when touched.
Result<UniqueFd> MakeSharedMemory(std::string_view label, uint64_t bytes);

// A writable mapping, touched lazily, with huge pages where granted.
class Mapping {
 public:
  // A whole descriptor, shared with all that map it.
  static Result<std::shared_ptr<Mapping>> Map(const UniqueFd& fd, uint64_t bytes);
  // A part of a file: `offset` and `bytes` are whole pages.
  static Result<std::shared_ptr<Mapping>> Part(const UniqueFd& fd, uint64_t offset, uint64_t bytes);
  // Zero memory that no other process needs: private, because systems grant huge pages to private
  // memory that asks for them and seldom to shared memory. (A read of 3 MiB that are in no cache
  // and no TLB takes 0.17 ms with small pages, 0.09 ms with huge ones.)
  static Result<std::shared_ptr<Mapping>> OfProcess(std::string_view label, uint64_t bytes);
  // The same, but other processes can map `*fd`, which is made.
  static Result<std::shared_ptr<Mapping>> OfDescriptor(std::string_view label, uint64_t bytes,
                                                       UniqueFd* fd);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::byte* data() const { return data_; }

 private:
  Mapping(void* data, uint64_t bytes);
  std::byte* data_;
  uint64_t bytes_;
};

// A NodeSegment over one mapping for each world rank (null: another node). `own`: NodeSegment::
// descriptor, if there is one.
std::unique_ptr<NodeSegment> MakeNodeSegment(std::vector<std::shared_ptr<Mapping>> parts,
                                             uint64_t bytes, UniqueFd own = {});

uint64_t RoundUpToPages(uint64_t bytes);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_WORLD_MAPPING_H_
