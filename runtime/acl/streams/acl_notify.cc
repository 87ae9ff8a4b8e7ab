// Notifies, plain and counting: a part of acl_rt.h.
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/acl/memory/shared_memory.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"
#include "runtime/device/running_task.h"

using npumesh::AclContext;
using npumesh::AclNotify;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::AwaitInTask;
using npumesh::Fail;
using npumesh::SharedKind;
using npumesh::SharedTicket;
using npumesh::Status;

namespace {

aclError NeedNotify(const char* function, const void* handle, std::shared_ptr<AclNotify>* notify) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "notify is null");
  *notify = AclProcess::Get().notifies.Find(handle);
  if (*notify != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, function, "{} is not a notify", fmt::ptr(handle));
}

aclError NeedNotifyAndStream(const char* function, const void* handle, aclrtStream stream,
                             std::shared_ptr<AclNotify>* notify,
                             std::shared_ptr<AclStream>* found) {
  NPUMESH_ACL_TRY(NeedNotify(function, handle, notify));
  return AclProcess::Get().NeedReadyStream(function, stream, found);
}

void* KeepNotify(std::shared_ptr<SharedTicket> ticket = nullptr) {
  static std::atomic<uint32_t> next{0};
  return AclProcess::Get().notifies.Add(std::make_shared<AclNotify>(next++, std::move(ticket)));
}

aclError CreateNotify(const char* function, void** notify, uint64_t flag) {
  if (notify == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "notify is null");
  if (flag > ACL_NOTIFY_DEVICE_USE_ONLY) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "flag is {}, expected 0 or 1", flag);
  }
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(function, &context));
  NPUMESH_ACL_TRY(
      AclProcess::Get().card_limits.Permit(function, "notifies", ACL_ERROR_RT_NO_NOTIFY_RESOURCE,
                                           [] { return AclProcess::Get().notifies.size(); }));
  *notify = KeepNotify();
  return ACL_SUCCESS;
}

aclError DestroyNotify(const char* function, void* handle) {
  std::shared_ptr<AclNotify> notify;
  NPUMESH_ACL_TRY(NeedNotify(function, handle, &notify));
  static_cast<void>(AclProcess::Get().notifies.Take(handle));
  return ACL_SUCCESS;
}

aclError IdOf(const char* function, void* handle, uint32_t* id) {
  if (id == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "notifyId is null");
  std::shared_ptr<AclNotify> notify;
  NPUMESH_ACL_TRY(NeedNotify(function, handle, &notify));
  *id = notify->id();
  return ACL_SUCCESS;
}

// Takes the one record of a notify.
Status TakeRecord(AclNotify& notify, std::chrono::seconds limit) {
  const auto taken = [&notify] {
    return notify.With([](std::atomic<uint64_t>& word) {
      uint64_t one = 1;
      return word.compare_exchange_strong(one, 0);
    });
  };
  return AwaitInTask(taken, {.what = "for a notify", .limit = limit, .watch = [&notify] {
                               const auto ticket = notify.ticket();
                               return ticket == nullptr ? Status() : ticket->CheckOthers();
                             }});
}

void SetWord(AclNotify& notify, uint64_t value) {
  notify.With([value](std::atomic<uint64_t>& word) { word = value; });
}

void Change(std::atomic<uint64_t>& word, const aclrtCntNotifyRecordInfo& info) {
  switch (info.mode) {
    case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE:
      word.fetch_add(info.value);
      break;
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE:
      word.fetch_or(info.value);
      break;
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE:
      word.fetch_and(info.value);
      break;
    default:
      word.store(info.value);
      break;
  }
}

bool IsRecordMode(aclrtCntNotifyRecordMode mode) {
  return mode == ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE ||
         mode == ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE ||
         mode == ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE ||
         mode == ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE;
}

bool Satisfied(uint64_t word, const aclrtCntNotifyWaitInfo& info) {
  const auto value = static_cast<uint32_t>(word);
  switch (info.mode) {
    case ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE:
      return value < info.value;
    case ACL_RT_CNT_NOTIFY_WAIT_EQUAL_MODE:
      return value == info.value;
    case ACL_RT_CNT_NOTIFY_WAIT_BIGGER_MODE:
      return value > info.value;
    case ACL_RT_CNT_NOTIFY_WAIT_BIGGER_OR_EQUAL_MODE:
      return value >= info.value;
    default:
      return (value & info.value) == info.value;
  }
}

}  // namespace

aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) try {
  return CreateNotify(__func__, notify, flag);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDestroyNotify(aclrtNotify notify) try {
  return DestroyNotify(__func__, notify);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) try {
  std::shared_ptr<AclNotify> found;
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(NeedNotifyAndStream(__func__, notify, stream, &found, &on));
  on->stream.Enqueue([found] {
    SetWord(*found, 1);
    return Status();
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) try {
  std::shared_ptr<AclNotify> found;
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(NeedNotifyAndStream(__func__, notify, stream, &found, &on));
  on->stream.Enqueue(
      [found, limit = std::chrono::seconds(timeout)] { return TakeRecord(*found, limit); });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num) try {
  NPUMESH_ACL_EXPECT(notifies != nullptr && num > 0, "notifies is null, or num is 0");
  for (size_t i = 0; i < num; ++i) {
    std::shared_ptr<AclNotify> found;
    NPUMESH_ACL_TRY(NeedNotify(__func__, notifies[i], &found));
    SetWord(*found, 0);
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId) try {
  return IdOf(__func__, notify, notifyId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtNotifyGetExportKey(aclrtNotify notify, char* key, size_t len, uint64_t flags) try {
  NPUMESH_ACL_EXPECT((flags & ~ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION) == 0,
                     "flags is {:#x}, expected 0 or 2", flags);
  std::shared_ptr<AclNotify> found;
  NPUMESH_ACL_TRY(NeedNotify(__func__, notify, &found));
  const auto ticket = found->Share();
  NPUMESH_ACL_TRY(npumesh::Report(__func__, ticket.status()));
  if (flags != 0 && (*ticket)->owned()) (*ticket)->AllowAnyone();
  return npumesh::PutKey(__func__, **ticket, key, len);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtNotifyImportByKey(aclrtNotify* notify, const char* key, uint64_t flags) try {
  NPUMESH_ACL_EXPECT(notify != nullptr && key != nullptr, "notify or key is null");
  NPUMESH_ACL_EXPECT((flags & ~ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS) == 0,
                     "flags is {:#x}, expected 0 or 2", flags);
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  std::shared_ptr<SharedTicket> ticket;
  NPUMESH_ACL_TRY(npumesh::ImportTicket(__func__, key, SharedKind::kNotify, &ticket));
  *notify = KeepNotify(std::move(ticket));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t* pid, size_t num) try {
  std::shared_ptr<AclNotify> found;
  NPUMESH_ACL_TRY(NeedNotify(__func__, notify, &found));
  const auto ticket = found->ticket();
  NPUMESH_ACL_EXPECT(ticket != nullptr,
                     "the notify is not shared; aclrtNotifyGetExportKey does it");
  return npumesh::AllowProcesses(__func__, *ticket, pid, num);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCntNotifyCreate(aclrtCntNotify* cntNotify, uint64_t flag) try {
  return CreateNotify(__func__, cntNotify, flag);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify) try {
  return DestroyNotify(__func__, cntNotify);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream,
                              aclrtCntNotifyRecordInfo* info) try {
  NPUMESH_ACL_EXPECT(info != nullptr, "info is null");
  NPUMESH_ACL_EXPECT(IsRecordMode(info->mode), "mode is {}, expected 0, 1, 2 or 4",
                     static_cast<int>(info->mode));
  std::shared_ptr<AclNotify> found;
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(NeedNotifyAndStream(__func__, cntNotify, stream, &found, &on));
  on->stream.Enqueue([found, info = *info] {
    found->With([&info](std::atomic<uint64_t>& word) { Change(word, info); });
    return Status();
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify, aclrtStream stream,
                                       aclrtCntNotifyWaitInfo* info) try {
  NPUMESH_ACL_EXPECT(info != nullptr, "info is null");
  NPUMESH_ACL_EXPECT(info->mode >= ACL_RT_CNT_NOTIFY_WAIT_LESS_MODE &&
                         info->mode <= ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE,
                     "mode is {}, expected 0 to 4", static_cast<int>(info->mode));
  std::shared_ptr<AclNotify> found;
  std::shared_ptr<AclStream> on;
  NPUMESH_ACL_TRY(NeedNotifyAndStream(__func__, cntNotify, stream, &found, &on));
  on->stream.Enqueue([found, info = *info]() -> Status {
    const auto ready = [&] {
      return found->With([&info](std::atomic<uint64_t>& word) { return Satisfied(word, info); });
    };
    NPUMESH_RETURN_IF_ERROR(AwaitInTask(
        ready, {.what = "for a counting notify", .limit = std::chrono::seconds(info.timeout)}));
    if (info.isClear != 0) SetWord(*found, 0);
    return Status();
  });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream) try {
  aclrtCntNotifyRecordInfo zero = {ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE, 0};
  return aclrtCntNotifyRecord(cntNotify, stream, &zero);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t* notifyId) try {
  return IdOf(__func__, cntNotify, notifyId);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
