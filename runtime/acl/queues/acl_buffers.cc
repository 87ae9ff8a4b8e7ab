// Buffers of queues, under both of their names: acl_tdt_queue.h (acltdt*) and acl_rt.h (aclrt*).
#include "acl/acl_rt.h"
#include "acl/acl_tdt_queue.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/queues/shared_buffers.h"

using npumesh::SharedBuffer;
using npumesh::SharedBuffers;

namespace {

aclError Allocate(const char* function, size_t size, void** handle) {
  if (handle == nullptr) {
    return npumesh::Fail(ACL_ERROR_INVALID_PARAM, function, "buf is null");
  }
  std::shared_ptr<SharedBuffer> buffer;
  NPUMESH_ACL_TRY(SharedBuffers::OfProcess().Make(function, size, &buffer));
  *handle = SharedBuffers::OfProcess().Add(std::move(buffer));
  return ACL_SUCCESS;
}

aclError Free(const char* function, void* handle) {
  std::shared_ptr<SharedBuffer> head;
  return SharedBuffers::OfProcess().Take(function, handle, &head);
}

aclError Data(const char* function, const void* handle, void** data, size_t* size) {
  if (data == nullptr || size == nullptr) {
    return npumesh::Fail(ACL_ERROR_INVALID_PARAM, function, "dataPtr or size is null");
  }
  SharedBuffers::View view;
  NPUMESH_ACL_TRY(SharedBuffers::OfProcess().Look(function, handle, &view));
  *data = view.bytes;
  *size = view.size;
  return ACL_SUCCESS;
}

aclError Length(const char* function, const void* handle, size_t* length) {
  if (length == nullptr) {
    return npumesh::Fail(ACL_ERROR_INVALID_PARAM, function, "len is null");
  }
  SharedBuffers::View view;
  NPUMESH_ACL_TRY(SharedBuffers::OfProcess().Look(function, handle, &view));
  *length = view.length;
  return ACL_SUCCESS;
}

aclError CopyReference(const char* function, const void* handle, void** copy) {
  if (copy == nullptr) {
    return npumesh::Fail(ACL_ERROR_INVALID_PARAM, function, "newBuf is null");
  }
  return SharedBuffers::OfProcess().Copy(function, handle, copy);
}

aclError Count(const char* function, const void* head, uint32_t* count) {
  if (count == nullptr) return npumesh::Fail(ACL_ERROR_INVALID_PARAM, function, "num is null");
  return SharedBuffers::OfProcess().CountParts(function, head, count);
}

aclError PartAt(const char* function, const void* head, uint32_t index, void** part) {
  if (part == nullptr) return npumesh::Fail(ACL_ERROR_INVALID_PARAM, function, "buf is null");
  return SharedBuffers::OfProcess().PartAt(function, head, index, part);
}

}  // namespace

aclError acltdtAllocBuf(size_t size, uint32_t type, acltdtBuf* buf) try {
  NPUMESH_ACL_EXPECT(type == ACL_TDT_NORMAL_MEM, "type is {}, expected 0 (ACL_TDT_NORMAL_MEM)",
                     type);
  return Allocate(__func__, size, buf);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAllocBuf(aclrtMbuf* buf, size_t size) try {
  return Allocate(__func__, size, buf);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtFreeBuf(acltdtBuf buf) try { return Free(__func__, buf); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtFreeBuf(aclrtMbuf buf) try { return Free(__func__, buf); } catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGetBufData(const acltdtBuf buf, void** dataPtr, size_t* size) try {
  return Data(__func__, buf, dataPtr, size);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetBufData(const aclrtMbuf buf, void** dataPtr, size_t* size) try {
  return Data(__func__, buf, dataPtr, size);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtSetBufDataLen(acltdtBuf buf, size_t len) try {
  return SharedBuffers::OfProcess().SetLength(__func__, buf, len);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetBufDataLen(aclrtMbuf buf, size_t len) try {
  return SharedBuffers::OfProcess().SetLength(__func__, buf, len);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGetBufDataLen(acltdtBuf buf, size_t* len) try {
  return Length(__func__, buf, len);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetBufDataLen(aclrtMbuf buf, size_t* len) try {
  return Length(__func__, buf, len);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtSetBufUserData(acltdtBuf buf, const void* dataPtr, size_t size, size_t offset) try {
  return SharedBuffers::OfProcess().WriteUser(__func__, buf, dataPtr, size, offset);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtSetBufUserData(aclrtMbuf buf, const void* dataPtr, size_t size, size_t offset) try {
  return SharedBuffers::OfProcess().WriteUser(__func__, buf, dataPtr, size, offset);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGetBufUserData(const acltdtBuf buf, void* dataPtr, size_t size, size_t offset) try {
  return SharedBuffers::OfProcess().ReadUser(__func__, buf, dataPtr, size, offset);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetBufUserData(const aclrtMbuf buf, void* dataPtr, size_t size, size_t offset) try {
  return SharedBuffers::OfProcess().ReadUser(__func__, buf, dataPtr, size, offset);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtCopyBufRef(const acltdtBuf buf, acltdtBuf* newBuf) try {
  return CopyReference(__func__, buf, newBuf);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtCopyBufRef(const aclrtMbuf buf, aclrtMbuf* newBuf) try {
  return CopyReference(__func__, buf, newBuf);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtAppendBufChain(acltdtBuf headBuf, acltdtBuf buf) try {
  return SharedBuffers::OfProcess().Append(__func__, headBuf, buf);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtAppendBufChain(aclrtMbuf headBuf, aclrtMbuf buf) try {
  return SharedBuffers::OfProcess().Append(__func__, headBuf, buf);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGetBufChainNum(acltdtBuf headBuf, uint32_t* num) try {
  return Count(__func__, headBuf, num);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetBufChainNum(aclrtMbuf headBuf, uint32_t* num) try {
  return Count(__func__, headBuf, num);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError acltdtGetBufFromChain(acltdtBuf headBuf, uint32_t index, acltdtBuf* buf) try {
  return PartAt(__func__, headBuf, index, buf);
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtGetBufFromChain(aclrtMbuf headBuf, uint32_t index, aclrtMbuf* buf) try {
  return PartAt(__func__, headBuf, index, buf);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
