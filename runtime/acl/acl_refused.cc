// Functions of acl_rt.h that are there so that programs link, and refuse each call.
#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/without_effect.h"

aclError aclrtGetGroupCount(uint32_t*) try { return npumesh::Refuse(__func__); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetAllGroupInfo(aclrtGroupInfo*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetGroupInfoDetail(const aclrtGroupInfo*, int32_t, aclrtGroupAttr, void*, size_t,
                                 size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetGroup(int32_t) try { return npumesh::Refuse(__func__); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDestroyGroupInfo(aclrtGroupInfo*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetHardwareSyncAddr(void**) try { return npumesh::Refuse(__func__); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCtxGetFloatOverflowAddr(void**) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceGetHostAtomicCapabilities(uint32_t*, const aclrtAtomicOperation*,
                                              const uint32_t, int32_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceGetP2PAtomicCapabilities(uint32_t*, const aclrtAtomicOperation*, const uint32_t,
                                             int32_t, int32_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceGetLimit(aclrtDeviceLimit, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtDeviceSetLimit(aclrtDeviceLimit, size_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtIpcMemImportPidInterServer(const char*, aclrtServerPid*, size_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtNotifySetImportPidInterServer(aclrtNotify, aclrtServerPid*, size_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemManagedGetAttr(aclrtMemManagedRangeAttribute, const void*, size_t, void*,
                                size_t) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemManagedGetAttrs(aclrtMemManagedRangeAttribute*, size_t, const void*, size_t,
                                 void**, size_t*) try {
  return npumesh::Refuse(__func__);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclrtGroupInfo* aclrtCreateGroupInfo() try {
  static_cast<void>(npumesh::Refuse(__func__));
  return nullptr;
} catch (...) {
  static_cast<void>(npumesh::FailThrown(__func__));
  return nullptr;
}
