// Device memory and events over processes: a part of acl_rt.h.
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/acl/memory/shared_memory.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclContext;
using npumesh::AclEvent;
using npumesh::AclProcess;
using npumesh::Fail;
using npumesh::SharedKind;
using npumesh::SharedTicket;

aclError aclrtIpcMemGetExportKey(void* devPtr, size_t size, char* key, size_t len,
                                 uint64_t flags) try {
  NPUMESH_ACL_EXPECT((flags & ~ACL_RT_IPC_MEM_EXPORT_FLAG_DISABLE_PID_VALIDATION) == 0,
                     "flags is {:#x}, expected 0 or 1", flags);
  NPUMESH_ACL_EXPECT(devPtr != nullptr && size > 0, "devPtr is {}, size is {}", fmt::ptr(devPtr),
                     size);
  NPUMESH_ACL_EXPECT(key != nullptr && len >= 65, "key is {}, len is {}, expected room for 65",
                     fmt::ptr(key), len);
  std::string text;
  NPUMESH_ACL_TRY(AclProcess::Get().shared.Export(__func__, devPtr, size, flags != 0, &text));
  std::memcpy(key, text.c_str(), text.size() + 1);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtIpcMemImportByKey(void** devPtr, const char* key, uint64_t flags) try {
  NPUMESH_ACL_EXPECT(devPtr != nullptr && key != nullptr, "devPtr or key is null");
  NPUMESH_ACL_EXPECT((flags & ~ACL_RT_IPC_MEM_IMPORT_FLAG_ENABLE_PEER_ACCESS) == 0,
                     "flags is {:#x}, expected 0 or 1", flags);
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  return AclProcess::Get().shared.Import(__func__, key, devPtr);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtIpcMemClose(const char* key) try {
  NPUMESH_ACL_EXPECT(key != nullptr, "key is null");
  return AclProcess::Get().shared.Close(__func__, key);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtIpcMemSetImportPid(const char* key, int32_t* pid, size_t num) try {
  NPUMESH_ACL_EXPECT(key != nullptr, "key is null");
  const auto ticket = AclProcess::Get().shared.Exported(key);
  NPUMESH_ACL_EXPECT(ticket != nullptr, "this process does not share \"{}\"", key);
  return npumesh::AllowProcesses(__func__, *ticket, pid, num);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtIpcGetEventHandle(aclrtEvent event, aclrtIpcEventHandle* handle) try {
  NPUMESH_ACL_EXPECT(event != nullptr && handle != nullptr, "event or handle is null");
  const auto found = AclProcess::Get().events.Find(event);
  if (found == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, __func__, "{} is not an event", fmt::ptr(event));
  }
  NPUMESH_ACL_EXPECT(found->shared != nullptr,
                     "the event was created without ACL_EVENT_IPC; "
                     "aclrtCreateEventExWithFlag takes it");
  *handle = {};
  const std::string key = found->shared->key();
  std::memcpy(handle->reserved, key.data(), key.size());
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtIpcOpenEventHandle(aclrtIpcEventHandle handle, aclrtEvent* event) try {
  NPUMESH_ACL_EXPECT(event != nullptr, "event is null");
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  const std::string key(handle.reserved, strnlen(handle.reserved, sizeof handle.reserved));
  std::shared_ptr<SharedTicket> ticket;
  NPUMESH_ACL_TRY(npumesh::ImportTicket(__func__, key.c_str(), SharedKind::kEvent, &ticket));
  auto opened = std::make_shared<AclEvent>(AclEvent::Family::kEx, npumesh::Event::Kind::kPoint,
                                           uint32_t{ACL_EVENT_IPC});
  opened->shared = std::move(ticket);
  *event = AclProcess::Get().events.Add(std::move(opened));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
