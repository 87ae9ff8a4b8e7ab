// SharedMemory: what this process shares of its device memory, and what it has imported; with the
// rules of keys and lists of processes that memory, notifies and events have in common.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_MEMORY_SHARED_MEMORY_H_
#define NPUMESH_RUNTIME_ACL_MEMORY_SHARED_MEMORY_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "acl/acl_rt.h"
#include "runtime/acl/memory/memory_book.h"
#include "runtime/device/shared_ticket.h"

namespace npumesh {

// Writes the key of `ticket`. Error: ACL_ERROR_INVALID_PARAM for a `len` below 65.
aclError PutKey(std::string_view function, const SharedTicket& ticket, char* key, size_t len);

// Errors: ACL_ERROR_INVALID_PARAM for a text that is no such key and for one that was closed,
// ACL_ERROR_RT_NO_PERMISSION when this process may not import it, ACL_ERROR_RT_SUSPECT_REMOTE_ERROR
// when its owner has ended.
aclError ImportTicket(std::string_view function, const char* key, SharedKind kind,
                      std::shared_ptr<SharedTicket>* ticket);
aclError ReportImport(std::string_view function, const Status& status);

// Error: ACL_ERROR_INVALID_PARAM for what was imported, an empty list, and one that is too long.
aclError AllowProcesses(std::string_view function, SharedTicket& ticket, const int32_t* processes,
                        size_t count);

class SharedMemory {
 public:
  explicit SharedMemory(MemoryBook& book) : book_(book) {}

  // Shares [pointer, pointer + bytes) of one block of this process's device memory.
  aclError Export(std::string_view function, void* pointer, uint64_t bytes, bool anyone,
                  std::string* key);
  // Null when this process does not share `key`.
  std::shared_ptr<SharedTicket> Exported(const std::string& key) const;
  aclError Import(std::string_view function, const char* key, void** pointer);
  // Ends the import, or the export, of `key`.
  aclError Close(std::string_view function, const std::string& key);
  // All imports and exports end.
  void Clear();

 private:
  struct Imported {
    std::shared_ptr<SharedTicket> ticket;
    SharedTicket::MappedBlock block;
  };

  MemoryBook& book_;
  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<SharedTicket>> exports_;  // by key
  std::multimap<std::string, Imported> imports_;                  // by key
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_MEMORY_SHARED_MEMORY_H_
