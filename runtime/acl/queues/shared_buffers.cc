#include "runtime/acl/queues/shared_buffers.h"

#include <cstring>
#include <utility>

#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

namespace npumesh {
namespace {

aclError CheckUserRange(std::string_view function, const void* pointer, size_t size,
                        size_t offset) {
  if (pointer != nullptr && size <= SharedBuffer::kUserBytes &&
      offset <= SharedBuffer::kUserBytes - size) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "dataPtr is {}, size is {}, offset is {}, expected a place within {} bytes",
              fmt::ptr(pointer), size, offset, SharedBuffer::kUserBytes);
}

}  // namespace

SharedBuffer::Area::~Area() {
  static_cast<void>(AclProcess::Get().memory.FreeHost(bytes));
}

SharedBuffers& SharedBuffers::OfProcess() {
  static SharedBuffers* const buffers = new SharedBuffers;
  return *buffers;
}

aclError SharedBuffers::Make(std::string_view function, size_t size,
                             std::shared_ptr<SharedBuffer>* buffer) {
  if (size == 0 || size > kMostBytes) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "size is {}, expected 1 to {}", size,
                kMostBytes);
  }
  void* const bytes = AclProcess::Get().memory.AllocateHost(size);
  if (bytes == nullptr) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, function, "the host has no {} bytes", size);
  }
  *buffer = std::make_shared<SharedBuffer>();
  (*buffer)->area = std::make_shared<SharedBuffer::Area>(static_cast<std::byte*>(bytes), size);
  return ACL_SUCCESS;
}

void* SharedBuffers::Add(std::shared_ptr<SharedBuffer> head) {
  for (const auto& part : head->rest) handles_.Add(part);
  return handles_.Add(std::move(head));
}

aclError SharedBuffers::Take(std::string_view function, const void* handle,
                             std::shared_ptr<SharedBuffer>* head) {
  const std::lock_guard lock(mutex_);
  NPUMESH_ACL_TRY(Find(function, handle, head));
  if ((*head)->is_part) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "{} is a part of a chain, which is used and freed by its head", fmt::ptr(handle));
  }
  static_cast<void>(handles_.Take(handle));
  for (const auto& part : (*head)->rest) static_cast<void>(handles_.Take(part.get()));
  return ACL_SUCCESS;
}

aclError SharedBuffers::Find(std::string_view function, const void* handle,
                             std::shared_ptr<SharedBuffer>* buffer) const {
  *buffer = handles_.Find(handle);
  if (*buffer != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "{} is no buffer: null, freed, or in a queue at present", fmt::ptr(handle));
}

aclError SharedBuffers::Look(std::string_view function, const void* handle, View* view) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedBuffer> buffer;
  NPUMESH_ACL_TRY(Find(function, handle, &buffer));
  *view = {buffer->area->bytes, buffer->area->size, buffer->length};
  return ACL_SUCCESS;
}

aclError SharedBuffers::Copy(std::string_view function, const void* handle, void** copy) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedBuffer> buffer;
  NPUMESH_ACL_TRY(Find(function, handle, &buffer));
  auto made = std::make_shared<SharedBuffer>(*buffer);
  made->rest.clear();
  made->is_part = false;
  *copy = handles_.Add(std::move(made));
  return ACL_SUCCESS;
}

aclError SharedBuffers::Append(std::string_view function, const void* head, const void* part) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedBuffer> chain;
  std::shared_ptr<SharedBuffer> added;
  NPUMESH_ACL_TRY(Find(function, head, &chain));
  NPUMESH_ACL_TRY(Find(function, part, &added));
  if (chain->is_part || added->is_part || !added->rest.empty() || chain == added) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "expected the head of a chain, and a buffer that is in no chain");
  }
  if (chain->rest.size() + 1 >= kMostParts) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "the chain has {} buffers already, the most",
                kMostParts);
  }
  added->is_part = true;
  chain->rest.push_back(std::move(added));
  return ACL_SUCCESS;
}

aclError SharedBuffers::CountParts(std::string_view function, const void* head,
                                   uint32_t* count) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedBuffer> chain;
  NPUMESH_ACL_TRY(Find(function, head, &chain));
  *count = static_cast<uint32_t>(chain->rest.size() + 1);
  return ACL_SUCCESS;
}

aclError SharedBuffers::PartAt(std::string_view function, const void* head, uint32_t index,
                               void** part) const {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedBuffer> chain;
  NPUMESH_ACL_TRY(Find(function, head, &chain));
  if (index > chain->rest.size()) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "index is {}, the chain has {} buffers", index,
                chain->rest.size() + 1);
  }
  *part = index == 0 ? chain.get() : chain->rest[index - 1].get();
  return ACL_SUCCESS;
}

aclError SharedBuffers::SetLength(std::string_view function, const void* handle, size_t length) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedBuffer> buffer;
  NPUMESH_ACL_TRY(Find(function, handle, &buffer));
  if (length > buffer->area->size) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "len is {}, the buffer has {} bytes", length,
                buffer->area->size);
  }
  buffer->length = length;
  return ACL_SUCCESS;
}

aclError SharedBuffers::WriteUser(std::string_view function, const void* handle, const void* from,
                                  size_t size, size_t offset) {
  NPUMESH_ACL_TRY(CheckUserRange(function, from, size, offset));
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedBuffer> buffer;
  NPUMESH_ACL_TRY(Find(function, handle, &buffer));
  std::memcpy(buffer->user.data() + offset, from, size);
  return ACL_SUCCESS;
}

aclError SharedBuffers::ReadUser(std::string_view function, const void* handle, void* to,
                                 size_t size, size_t offset) const {
  NPUMESH_ACL_TRY(CheckUserRange(function, to, size, offset));
  const std::lock_guard lock(mutex_);
  std::shared_ptr<SharedBuffer> buffer;
  NPUMESH_ACL_TRY(Find(function, handle, &buffer));
  std::memcpy(to, buffer->user.data() + offset, size);
  return ACL_SUCCESS;
}

std::shared_ptr<SharedBuffer> SharedBuffers::Reference(const SharedBuffer& head) {
  auto copy = std::make_shared<SharedBuffer>(head);
  for (auto& part : copy->rest) part = std::make_shared<SharedBuffer>(*part);
  return copy;
}

}  // namespace npumesh
