// Pools of device memory: acl_rt_memory_soma.h.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "acl/acl_rt_memory_soma.h"
#include "runtime/acl/process/errors.h"
#include "runtime/acl/process/handle_table.h"
#include "runtime/acl/process/process.h"
#include "runtime/base/log.h"

using npumesh::AclProcess;
using npumesh::AclStream;
using npumesh::DeviceMemory;
using npumesh::Fail;
using npumesh::HandleTable;

namespace {

struct Pool {
  DeviceMemory* memory = nullptr;
  uint64_t most = 0;  // bytes
  // Guarded by the mutex of Pools.
  uint64_t used = 0;
  uint64_t peak = 0;
  std::map<aclrtMemPoolAttr, uint64_t> kept;  // attributes that were set
};

class Pools {
 public:
  static Pools& Get() {
    static Pools* const pools = new Pools;
    return *pools;
  }

  HandleTable<Pool> handles;
  std::mutex mutex;  // guards the rest, and pools
  struct Block {
    std::shared_ptr<Pool> pool;
    uint64_t bytes = 0;
    bool freeing = false;  // a stream is on its way to that
  };
  std::map<void*, Block> blocks;

  // A stream has come to where the block is freed, or will not come there.
  void End(void* block) {
    {
      const std::lock_guard lock(mutex);
      const auto found = blocks.find(block);
      if (found == blocks.end()) return;
      found->second.pool->used -= found->second.bytes;
      blocks.erase(found);
    }
    // A device that was reset has freed its memory by itself.
    static_cast<void>(AclProcess::Get().memory.Free(block));
  }
};

aclError NeedPool(const char* function, const void* handle, std::shared_ptr<Pool>* pool) {
  *pool = Pools::Get().handles.Find(handle);
  if (*pool != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, function, "{} is no pool, or was destroyed",
              fmt::ptr(handle));
}

bool IsKept(aclrtMemPoolAttr attr) {
  return attr >= ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
         attr <= ACL_RT_MEM_POOL_ATTR_RELEASE_THRESHOLD;
}

bool IsHighMark(aclrtMemPoolAttr attr) {
  return attr == ACL_RT_MEM_POOL_ATTR_RESERVED_MEM_HIGH ||
         attr == ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH;
}

aclError CheckAttribute(const char* function, aclrtMemPoolAttr attr, const void* value) {
  if (value != nullptr && attr >= ACL_RT_MEM_POOL_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
      attr <= ACL_RT_MEM_POOL_ATTR_USED_MEM_HIGH) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, function, "attr is {}, expected 1 to 8; value is {}",
              static_cast<int>(attr), fmt::ptr(value));
}

}  // namespace

aclError aclrtMemPoolCreate(aclrtMemPool* memPool, const aclrtMemPoolProps* poolProps) try {
  NPUMESH_ACL_EXPECT(memPool != nullptr && poolProps != nullptr, "memPool or poolProps is null");
  if (poolProps->location.type != ACL_MEM_LOCATION_TYPE_DEVICE) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, __func__,
                "location type is {}; only a device has pools",
                static_cast<int>(poolProps->location.type));
  }
  auto pool = std::make_shared<Pool>();
  NPUMESH_ACL_TRY(AclProcess::Get().FindMemory(
      __func__, static_cast<int32_t>(poolProps->location.id), &pool->memory));
  pool->most = poolProps->maxSize == 0 ? pool->memory->total_bytes() : poolProps->maxSize;
  *memPool = Pools::Get().handles.Add(std::move(pool));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemPoolDestroy(const aclrtMemPool memPool) try {
  std::shared_ptr<Pool> pool;
  NPUMESH_ACL_TRY(NeedPool(__func__, memPool, &pool));
  const std::lock_guard lock(Pools::Get().mutex);
  NPUMESH_ACL_EXPECT(pool->used == 0, "{} bytes of the pool are still in use", pool->used);
  static_cast<void>(Pools::Get().handles.Take(memPool));
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemPoolSetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void* value) try {
  std::shared_ptr<Pool> pool;
  NPUMESH_ACL_TRY(NeedPool(__func__, memPool, &pool));
  NPUMESH_ACL_TRY(CheckAttribute(__func__, attr, value));
  uint64_t number = 0;
  std::memcpy(&number, value, sizeof number);
  NPUMESH_ACL_EXPECT(IsKept(attr) || (IsHighMark(attr) && number == 0),
                     "attr is {}, value is {}: amounts are only asked for, and high marks set to 0",
                     static_cast<int>(attr), number);
  const std::lock_guard lock(Pools::Get().mutex);
  if (IsKept(attr)) {
    pool->kept[attr] = number;
  } else {
    pool->peak = pool->used;
  }
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemPoolGetAttr(aclrtMemPool memPool, aclrtMemPoolAttr attr, void* value) try {
  std::shared_ptr<Pool> pool;
  NPUMESH_ACL_TRY(NeedPool(__func__, memPool, &pool));
  NPUMESH_ACL_TRY(CheckAttribute(__func__, attr, value));
  const std::lock_guard lock(Pools::Get().mutex);
  const auto kept = pool->kept.find(attr);
  const uint64_t number = kept != pool->kept.end() ? kept->second
                          : IsKept(attr)           ? 0
                          : IsHighMark(attr)       ? pool->peak
                                                   : pool->used;
  std::memcpy(value, &number, sizeof number);
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemPoolMallocAsync(void** ptr, size_t size, aclrtMemPool memPool,
                                 aclrtStream stream) try {
  NPUMESH_ACL_EXPECT(ptr != nullptr && size > 0, "ptr is {}, size is {}", fmt::ptr(ptr), size);
  std::shared_ptr<Pool> pool;
  NPUMESH_ACL_TRY(NeedPool(__func__, memPool, &pool));
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedStream(__func__, stream, &found));
  const std::lock_guard lock(Pools::Get().mutex);
  if (size > pool->most - std::min(pool->most, pool->used)) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, __func__,
                "{} bytes on top of {} are more than maxSize, {}", size, pool->used, pool->most);
  }
  const auto block = AclProcess::Get().memory.Allocate(*pool->memory, size);
  NPUMESH_ACL_TRY(npumesh::Report(__func__, block.status()));
  pool->used += size;
  pool->peak = std::max(pool->peak, pool->used);
  Pools::Get().blocks[*block] = {pool, size, false};
  *ptr = *block;
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemPoolFreeAsync(void* ptr, aclrtStream stream) try {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(__func__, stream, &found));
  {
    const std::lock_guard lock(Pools::Get().mutex);
    const auto block = Pools::Get().blocks.find(ptr);
    NPUMESH_ACL_EXPECT(block != Pools::Get().blocks.end() && !block->second.freeing,
                       "{} is no memory of aclrtMemPoolMallocAsync, or is freed already",
                       fmt::ptr(ptr));
    block->second.freeing = true;
  }
  // The end of the task, run or dropped, is the end of the block.
  const std::shared_ptr<void> end(ptr, [](void* block) { Pools::Get().End(block); });
  found->stream.Enqueue([end] { return npumesh::Status(); });
  return ACL_SUCCESS;
} catch (...) {
  return npumesh::FailThrown(__func__);
}

aclError aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t) try {
  std::shared_ptr<Pool> pool;
  return NeedPool(__func__, memPool, &pool);
} catch (...) {
  return npumesh::FailThrown(__func__);
}
