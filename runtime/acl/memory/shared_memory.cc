#include "runtime/acl/memory/shared_memory.h"

#include <cstring>
#include <utility>
#include <vector>

#include "runtime/acl/process/errors.h"

namespace npumesh {
namespace {

// The vendor's length of a key.
constexpr size_t kKeyRoom = 65;
static_assert(SharedTicket::kKeyBytes < kKeyRoom);

}  // namespace

aclError PutKey(std::string_view function, const SharedTicket& ticket, char* key, size_t len) {
  if (key == nullptr || len < kKeyRoom) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "key is {}, len is {}, expected room for {}",
                fmt::ptr(key), len, kKeyRoom);
  }
  const std::string text = ticket.key();
  std::memcpy(key, text.c_str(), text.size() + 1);
  return ACL_SUCCESS;
}

aclError ReportImport(std::string_view function, const Status& status) {
  if (status.ok()) return ACL_SUCCESS;
  if (status.code() == Code::kUnsupported) {
    return FailWith(ACL_ERROR_RT_NO_PERMISSION, function, status.message());
  }
  if (status.code() == Code::kNotFound) {
    return FailWith(ACL_ERROR_INVALID_PARAM, function, status.message());
  }
  return Report(function, status);
}

aclError ImportTicket(std::string_view function, const char* key, SharedKind kind,
                      std::shared_ptr<SharedTicket>* ticket) {
  auto found = SharedTicket::Import(std::string_view(key, strnlen(key, kKeyRoom)), kind);
  NPUMESH_ACL_TRY(ReportImport(function, found.status()));
  *ticket = *std::move(found);
  return ACL_SUCCESS;
}

aclError AllowProcesses(std::string_view function, SharedTicket& ticket, const int32_t* processes,
                        size_t count) {
  if (processes == nullptr || count == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "pid is null, or num is 0");
  }
  if (!ticket.owned()) {
    return Fail(ACL_ERROR_INVALID_PARAM, function,
                "process {} shares this, and says itself who may import it", ticket.owner());
  }
  return Report(function, ticket.Allow({processes, count}));
}

aclError SharedMemory::Export(std::string_view function, void* pointer, uint64_t bytes, bool anyone,
                              std::string* key) {
  const auto shared = book_.Shareable(pointer, bytes);
  if (!shared.ok()) return Report(function, shared.status());
  auto ticket = SharedTicket::Create(SharedKind::kMemory, *shared);
  NPUMESH_ACL_TRY(Report(function, ticket.status()));
  if (anyone) (*ticket)->AllowAnyone();
  *key = (*ticket)->key();
  const std::lock_guard lock(mutex_);
  exports_[*key] = *std::move(ticket);
  return ACL_SUCCESS;
}

std::shared_ptr<SharedTicket> SharedMemory::Exported(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = exports_.find(key);
  return found == exports_.end() ? nullptr : found->second;
}

aclError SharedMemory::Import(std::string_view function, const char* key, void** pointer) {
  Imported imported;
  NPUMESH_ACL_TRY(ImportTicket(function, key, SharedKind::kMemory, &imported.ticket));
  auto block = imported.ticket->MapBlock();
  NPUMESH_ACL_TRY(ReportImport(function, block.status()));
  imported.block = *std::move(block);
  *pointer = imported.block.start;
  book_.AddForeign(imported.block.start, imported.ticket->page().bytes);
  const std::lock_guard lock(mutex_);
  imports_.emplace(key, std::move(imported));
  return ACL_SUCCESS;
}

aclError SharedMemory::Close(std::string_view function, const std::string& key) {
  const std::lock_guard lock(mutex_);
  if (const auto found = imports_.find(key); found != imports_.end()) {
    book_.RemoveForeign(found->second.block.start);
    imports_.erase(found);
    return ACL_SUCCESS;
  }
  if (exports_.erase(key) != 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "\"{}\" is shared or imported by no call",
              std::string_view(key).substr(0, kKeyRoom));
}

void SharedMemory::Clear() {
  const std::lock_guard lock(mutex_);
  for (const auto& [key, imported] : imports_) book_.RemoveForeign(imported.block.start);
  imports_.clear();
  exports_.clear();
}

}  // namespace npumesh
