// What stands behind the handles of the C interface.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_OBJECTS_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_OBJECTS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "acl/acl_rt.h"
#include "runtime/acl/limits/core_limits.h"
#include "runtime/acl/process/device_context.h"
#include "runtime/acl/process/leaks.h"
#include "runtime/device/shared_ticket.h"

namespace npumesh {

struct AclContext;

// What a client asks of a stream when it makes it.
struct AclStreamOptions {
  uint32_t priority = 0;
  uint32_t flags = 0;  // a union of ACL_STREAM_*
};

// An allocator of the client.
struct AclAllocator {
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc allocate = nullptr;
  aclrtAllocatorFreeFunc free = nullptr;
  aclrtAllocatorAllocAdviseFunc allocate_near = nullptr;  // may stay null
  aclrtAllocatorGetAddrFromBlockFunc address = nullptr;
};

struct AclStream {
  AclStream(int32_t id, bool is_default, std::weak_ptr<AclContext> context, AclDevice* device,
            const AclStreamOptions& options)
      : id(id),
        is_default(is_default),
        context(std::move(context)),
        device(device),
        flags(options.flags),
        priority(options.priority),
        stream(id) {
    stream.StopOnFailure(false);
  }

  const int32_t id;
  const bool is_default;  // of its context: ends with it
  const std::weak_ptr<AclContext> context;
  AclDevice* const device;  // that of the context
  std::atomic<bool> failure_mode_set{false};
  std::atomic<uint64_t> failure_mode{ACL_CONTINUE_ON_FAILURE};
  // Kept for those who ask.
  const uint32_t flags;
  std::atomic<uint32_t> priority;
  std::atomic<uint32_t> custom_tag{0};
  std::atomic<uint32_t> cache_op_info{0};
  std::atomic<uint32_t> overflow_switch{0};
  CoreLimits core_limits;
  const Origin made = Origin::Here();
  std::mutex allocator_mutex;
  std::shared_ptr<const AclAllocator> allocator;  // guarded by it
  aclrtAllocatorDesc allocator_handle = nullptr;  // the same; as it was registered
  Stream stream;
};

struct AclEvent {
  // By which function it was made.
  enum class Family { kPlain, kEx };
  // `flag`: as in aclrtCreateEventWithFlag.
  AclEvent(Family family, Event::Kind kind, uint32_t flag)
      : family(family),
        has_time((flag & ACL_EVENT_TIME_LINE) != 0),
        external((flag & ACL_EVENT_EXTERNAL) != 0),
        flag(flag),
        event(kind),
        kind(kind) {}

  // One of aclrtCreateEventExWithFlag that was never recorded is complete, others are not.
  bool complete() const { return family == Family::kEx ? event.Done() : event.Reached(); }

  const Family family;
  const bool has_time;
  const bool external;
  const uint32_t flag;
  const Event event;
  const Event::Kind kind;  // a signal can be reset
  const Origin made = Origin::Here();
  const uint32_t id = NextId();  // of this process
  // Of an event with ACL_EVENT_IPC, whose records are counted there; null: of others.
  std::shared_ptr<SharedTicket> shared;

 private:
  static uint32_t NextId() {
    static std::atomic<uint32_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }
};

// A device as one or several threads use it. The implicit context of a device is made by its first
// aclrtSetDevice; others by aclrtCreateContext.
struct AclContext {
  int index = 0;  // of the device in the machine
  AclDevice* device = nullptr;
  int32_t device_id = 0;  // as the client called it
  bool implicit = false;
  const Origin made = Origin::Here();
  std::atomic<aclrtFloatOverflowMode> overflow_mode{ACL_RT_OVERFLOW_MODE_SATURATION};
  std::shared_ptr<AclStream> default_stream;

  // All streams in the order of creation, the default one first.
  std::vector<std::shared_ptr<AclStream>> Streams() const {
    const std::lock_guard lock(mutex);
    return streams;
  }

  mutable std::mutex mutex;
  std::vector<std::shared_ptr<AclStream>> streams;  // guarded by mutex
  std::map<aclSysParamOpt, int64_t> parameters;     // guarded by mutex; those that were set
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_OBJECTS_H_
