// Allocators of the client, one for each stream: acl_rt_allocator.h. npumesh keeps them for those
// who ask and takes its own memory itself.
#include "acl/acl_rt_allocator.h"

#include "acl/acl_rt.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/process.h"

using npumesh::AclAllocator;
using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::Fail;

namespace {

aclError NeedAllocator(const char* function, aclrtAllocatorDesc handle,
                       std::shared_ptr<AclAllocator>* allocator) {
  *allocator = AclProcess::Get().allocators.Find(handle);
  if (*allocator != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function,
              "{} was not returned by aclrtAllocatorCreateDesc, or was destroyed",
              fmt::ptr(handle));
}

// Sets one member of a description.
template <typename Value>
aclError SetMember(const char* function, aclrtAllocatorDesc handle, Value AclAllocator::*member,
                   Value value) {
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "the value is null");
  std::shared_ptr<AclAllocator> allocator;
  NPUMESH_ACL_TRY(NeedAllocator(function, handle, &allocator));
  (*allocator).*member = value;
  return ACL_SUCCESS;
}

aclError NeedExplicitStream(const char* function, aclrtStream handle,
                            std::shared_ptr<AclStream>* stream) {
  if (handle == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, function, "stream is null");
  return AclProcess::Get().NeedStream(function, handle, stream);
}

}  // namespace

aclrtAllocatorDesc aclrtAllocatorCreateDesc(void) try {
  return AclProcess::Get().allocators.Add(std::make_shared<AclAllocator>());
} catch (...) {
  npumesh::FailThrown(__func__);
  return nullptr;
}

aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc) try {
  std::shared_ptr<AclAllocator> allocator;
  NPUMESH_ACL_TRY(NeedAllocator(__func__, allocatorDesc, &allocator));
  static_cast<void>(AclProcess::Get().allocators.Take(allocatorDesc));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc,
                                    aclrtAllocator allocator) try {
  return SetMember(__func__, allocatorDesc, &AclAllocator::object, allocator);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                          aclrtAllocatorAllocFunc func) try {
  return SetMember(__func__, allocatorDesc, &AclAllocator::allocate, func);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                         aclrtAllocatorFreeFunc func) try {
  return SetMember(__func__, allocatorDesc, &AclAllocator::free, func);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                aclrtAllocatorAllocAdviseFunc func) try {
  return SetMember(__func__, allocatorDesc, &AclAllocator::allocate_near, func);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                     aclrtAllocatorGetAddrFromBlockFunc func) try {
  return SetMember(__func__, allocatorDesc, &AclAllocator::address, func);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(NeedExplicitStream(__func__, stream, &found));
  std::shared_ptr<AclAllocator> allocator;
  NPUMESH_ACL_TRY(NeedAllocator(__func__, allocatorDesc, &allocator));
  NPUMESH_ACL_EXPECT(allocator->object != nullptr && allocator->allocate != nullptr &&
                         allocator->free != nullptr && allocator->address != nullptr,
                     "the allocator lacks its object, or one of its functions allocate, free and "
                     "address of a block");
  const std::lock_guard lock(found->allocator_mutex);
  found->allocator = std::make_shared<AclAllocator>(*allocator);
  found->allocator_handle = allocatorDesc;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc* allocatorDesc,
                                   aclrtAllocator* allocator, aclrtAllocatorAllocFunc* allocFunc,
                                   aclrtAllocatorFreeFunc* freeFunc,
                                   aclrtAllocatorAllocAdviseFunc* allocAdviseFunc,
                                   aclrtAllocatorGetAddrFromBlockFunc* getAddrFromBlockFunc) try {
  NPUMESH_ACL_EXPECT(allocatorDesc != nullptr && allocator != nullptr && allocFunc != nullptr &&
                         freeFunc != nullptr && allocAdviseFunc != nullptr &&
                         getAddrFromBlockFunc != nullptr,
                     "a pointer for a result is null");
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(NeedExplicitStream(__func__, stream, &found));
  const std::lock_guard lock(found->allocator_mutex);
  NPUMESH_ACL_EXPECT(found->allocator != nullptr, "stream {} has no allocator", found->id);
  *allocatorDesc = found->allocator_handle;
  *allocator = found->allocator->object;
  *allocFunc = found->allocator->allocate;
  *freeFunc = found->allocator->free;
  *allocAdviseFunc = found->allocator->allocate_near;
  *getAddrFromBlockFunc = found->allocator->address;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAllocatorUnregister(aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(NeedExplicitStream(__func__, stream, &found));
  const std::lock_guard lock(found->allocator_mutex);
  NPUMESH_ACL_EXPECT(found->allocator != nullptr, "stream {} has no allocator", found->id);
  found->allocator.reset();
  found->allocator_handle = nullptr;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}
