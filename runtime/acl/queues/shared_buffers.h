// SharedBuffers: the buffers that queues carry, with the handles that clients have of them.
//
// Thread-safety: all members may be called from any thread; the bytes of a buffer are the client's.
#ifndef NPUMESH_RUNTIME_ACL_QUEUES_SHARED_BUFFERS_H_
#define NPUMESH_RUNTIME_ACL_QUEUES_SHARED_BUFFERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "acl/acl_base.h"
#include "runtime/acl/process/handle_table.h"

namespace npumesh {

// A buffer, the head of a chain or a later part of one.
struct SharedBuffer {
  static constexpr size_t kUserBytes = 96;

  // Host memory that copies take as that of aclrtMallocHost.
  struct Area {
    Area(std::byte* bytes, size_t size) : bytes(bytes), size(size) {}
    ~Area();
    Area(const Area&) = delete;
    Area& operator=(const Area&) = delete;

    std::byte* const bytes;
    const size_t size;
  };

  std::shared_ptr<Area> area;  // several buffers may have the same
  size_t length = 0;           // bytes of it that are data
  std::array<std::byte, kUserBytes> user{};
  std::vector<std::shared_ptr<SharedBuffer>> rest;  // of a head: the parts behind it
  bool is_part = false;                             // not a head
};

class SharedBuffers {
 public:
  static constexpr size_t kMostParts = 128;
  static constexpr size_t kMostBytes = size_t{4} << 30;

  static SharedBuffers& OfProcess();

  // Errors of all: ACL_ERROR_INVALID_PARAM with the rule that was broken.
  // ACL_ERROR_RT_MEMORY_ALLOCATION.
  aclError Make(std::string_view function, size_t size, std::shared_ptr<SharedBuffer>* buffer);
  void* Add(std::shared_ptr<SharedBuffer> head);  // with its parts
  // With its parts; their handles are dead. Not a part of another one.
  aclError Take(std::string_view function, const void* handle, std::shared_ptr<SharedBuffer>* head);
  struct View {
    std::byte* bytes = nullptr;
    size_t size = 0;
    size_t length = 0;
  };
  aclError Look(std::string_view function, const void* handle, View* view) const;
  // A buffer with the same bytes, in no chain.
  aclError Copy(std::string_view function, const void* handle, void** copy);

  aclError Append(std::string_view function, const void* head, const void* part);
  aclError CountParts(std::string_view function, const void* head, uint32_t* count) const;
  aclError PartAt(std::string_view function, const void* head, uint32_t index, void** part) const;
  aclError SetLength(std::string_view function, const void* handle, size_t length);
  aclError WriteUser(std::string_view function, const void* handle, const void* from, size_t size,
                     size_t offset);
  aclError ReadUser(std::string_view function, const void* handle, void* to, size_t size,
                    size_t offset) const;

  // The same bytes under another head. REQUIRES: no handle of it is live.
  static std::shared_ptr<SharedBuffer> Reference(const SharedBuffer& head);

 private:
  aclError Find(std::string_view function, const void* handle,
                std::shared_ptr<SharedBuffer>* buffer) const;

  mutable std::mutex mutex_;  // guards the buffers' members
  HandleTable<SharedBuffer> handles_;
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_QUEUES_SHARED_BUFFERS_H_
