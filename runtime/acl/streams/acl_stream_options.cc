// Options of streams, and what hears of them: parts of acl_rt.h.
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/acl/limits/soc.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclContext;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::Fail;

namespace {

constexpr uint32_t kStreamFlags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC |
                                  ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE |
                                  ACL_STREAM_CPU_SCHEDULE | ACL_STREAM_DEVICE_USE_ONLY;

aclError NeedConfig(const char* function, const aclrtStreamConfigHandle* handle,
                    std::shared_ptr<aclrtStreamConfigHandle>* config) {
  *config = AclProcess::Get().stream_configs.Find(handle);
  if (*config != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "{} was not returned by aclrtCreateStreamConfigHandle, or was destroyed",
              fmt::ptr(handle));
}

// Where an attribute lies, and how long it is; null: there is no such attribute.
void* FieldOf(aclrtStreamConfigHandle& config, aclrtStreamConfigAttr attribute, size_t* bytes) {
  switch (attribute) {
    case ACL_RT_STREAM_WORK_ADDR_PTR:
      *bytes = sizeof config.workptr;
      return &config.workptr;
    case ACL_RT_STREAM_WORK_SIZE:
      *bytes = sizeof config.workSize;
      return &config.workSize;
    case ACL_RT_STREAM_FLAG:
      *bytes = sizeof config.flag;
      return &config.flag;
    case ACL_RT_STREAM_PRIORITY:
      *bytes = sizeof config.priority;
      return &config.priority;
  }
  return nullptr;
}

aclError NeedAttributed(const char* function, aclrtStream stream, const aclrtStreamAttrValue* value,
                        std::shared_ptr<AclStream>* found) {
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "value is null");
  return AclProcess::Get().NeedStream(function, stream, found);
}

// Registers a callback under a name; a null one removes what has the name.
template <typename Callbacks, typename Callback>
aclError Register(const char* function, Callbacks& callbacks, const char* name, Callback callback,
                  void* args) {
  if (name == nullptr || *name == '\0') {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "regName is null or empty");
  }
  if (callback == nullptr) {
    if (callbacks.Remove(name)) return ACL_SUCCESS;
    return Fail(ACL_ERROR_INVALID_PARAM, function, "no callback has the name \"{}\"", name);
  }
  if (callbacks.Add(name, callback, args)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "a callback has the name \"{}\" already; a null callback removes it", name);
}

}  // namespace

namespace npumesh {

aclError CheckStreamOptions(std::string_view function, const AclStreamOptions& options) {
  if ((options.flags & ~kStreamFlags) != 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, function, "flag is {:#x}, expected a union of {:#x}",
                options.flags, kStreamFlags);
  }
  if (options.priority <= static_cast<uint32_t>(kLeastStreamPriority)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "priority is {}, expected {} to {}",
              options.priority, kGreatestStreamPriority, kLeastStreamPriority);
}

}  // namespace npumesh

aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle(void) try {
  auto config = std::make_shared<aclrtStreamConfigHandle>();
  aclrtStreamConfigHandle* const handle = config.get();
  AclProcess::Get().stream_configs.Add(std::move(config));
  return handle;
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle) try {
  std::shared_ptr<aclrtStreamConfigHandle> config;
  NPUMESH_ACL_TRY(NeedConfig(__func__, handle, &config));
  static_cast<void>(AclProcess::Get().stream_configs.Take(handle));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, aclrtStreamConfigAttr attr,
                                 const void* attrValue, size_t valueSize) try {
  std::shared_ptr<aclrtStreamConfigHandle> config;
  NPUMESH_ACL_TRY(NeedConfig(__func__, handle, &config));
  NPUMESH_ACL_EXPECT(attrValue != nullptr, "attrValue is null");
  size_t bytes = 0;
  void* const field = FieldOf(*config, attr, &bytes);
  NPUMESH_ACL_EXPECT(field != nullptr, "attr is {}, expected 0 to 3", static_cast<int>(attr));
  // Clients also give the flags as the 32 bits that aclrtCreateStreamWithConfig takes.
  const bool short_flags = attr == ACL_RT_STREAM_FLAG && valueSize == sizeof(uint32_t);
  if (short_flags) bytes = sizeof(uint32_t);
  NPUMESH_ACL_EXPECT(valueSize == bytes, "valueSize is {}, expected {} for attr {}", valueSize,
                     bytes, static_cast<int>(attr));
  if (short_flags) config->flag = 0;
  std::memcpy(field, attrValue, bytes);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle) try {
  std::shared_ptr<aclrtStreamConfigHandle> config;
  NPUMESH_ACL_TRY(NeedConfig(__func__, handle, &config));
  return aclrtCreateStreamWithConfig(stream, config->priority, static_cast<uint32_t>(config->flag));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) try {
  NPUMESH_ACL_EXPECT(flags != nullptr, "flags is null");
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  *flags = found->flags;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) try {
  NPUMESH_ACL_EXPECT(priority != nullptr, "priority is null");
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  *priority = found->priority;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(NeedAttributed(__func__, stream, value, &found));
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return aclrtSetStreamFailureMode(stream, value->failureMode);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      return aclrtSetStreamOverflowSwitch(stream, value->overflowSwitch);
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      found->custom_tag = value->userCustomTag;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      NPUMESH_ACL_EXPECT(value->cacheOpInfoSwitch <= 1, "cacheOpInfoSwitch is {}, expected 0 or 1",
                         value->cacheOpInfoSwitch);
      found->cache_op_info = value->cacheOpInfoSwitch;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_PRIORITY:
      NPUMESH_ACL_TRY(npumesh::CheckStreamOptions(__func__, {value->streamPriority, 0}));
      found->priority = value->streamPriority;
      return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, __func__, "stmAttrType is {}, expected 1 to 5",
              static_cast<int>(stmAttrType));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(NeedAttributed(__func__, stream, value, &found));
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      value->failureMode = found->failure_mode;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      value->overflowSwitch = found->overflow_switch;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      value->userCustomTag = found->custom_tag;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      value->cacheOpInfoSwitch = found->cache_op_info;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_PRIORITY:
      value->streamPriority = found->priority;
      return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, __func__, "stmAttrType is {}, expected 1 to 5",
              static_cast<int>(stmAttrType));
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) try {
  NPUMESH_ACL_EXPECT(streamCount != nullptr, "streamCount is null");
  std::shared_ptr<AclContext> context;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedContext(__func__, &context));
  const size_t used = context->Streams().size();
  constexpr size_t kStreamsOfSoc = 2048;
  *streamCount = static_cast<uint32_t>(used < kStreamsOfSoc ? kStreamsOfSoc - used : 0);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtRegStreamStateCallback(const char* regName, aclrtStreamStateCallback callback,
                                     void* args) try {
  return Register(__func__, AclProcess::Get().stream_callbacks, regName, callback, args);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtRegDeviceStateCallback(const char* regName, aclrtDeviceStateCallback callback,
                                     void* args) try {
  return Register(__func__, AclProcess::Get().device_callbacks, regName, callback, args);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
