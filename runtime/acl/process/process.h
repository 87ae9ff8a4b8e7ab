// AclProcess: everything that the C interface keeps for the process. The interface has no object to
// hold it, so there is one, made by the first call and never destroyed: what it holds begins with
// the first call that needs a device and ends with aclFinalize. A process that exits without
// aclFinalize leaves its peers as a killed one does; they notice.
//
// Kept per thread besides: the current context (below) and the recent errors (errors.h).
//
// Thread-safety: all members may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_PROCESS_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/acl/limits/card_limits.h"
#include "runtime/acl/limits/core_limits.h"
#include "runtime/acl/memory/address_space.h"
#include "runtime/acl/memory/memory_book.h"
#include "runtime/acl/memory/shared_memory.h"
#include "runtime/acl/process/device_profiles.h"
#include "runtime/acl/process/handle_table.h"
#include "runtime/acl/process/machine.h"
#include "runtime/acl/process/objects.h"
#include "runtime/acl/streams/captures.h"
#include "runtime/acl/streams/notify.h"
#include "runtime/acl/streams/report_queues.h"
#include "runtime/acl/streams/state_callbacks.h"

namespace npumesh {

// How busy a device is.
struct DeviceUsage {
  bool busy = false;  // a stream of it has work
  uint64_t used_bytes = 0;
  uint64_t peak_bytes = 0;
  uint64_t total_bytes = 0;
};

// The rules of priority and flags: ACL_ERROR_INVALID_PARAM.
aclError CheckStreamOptions(std::string_view function, const AclStreamOptions& options);

class AclProcess {
 public:
  static AclProcess& Get();

  // Reference counting of aclInit and its two ends.
  aclError Init();
  aclError Finalize(std::string_view function);
  aclError FinalizeReference(std::string_view function, uint64_t* left);
  void AtFinalize(std::function<void()> end);
  // The file of aclInit; null or empty: none.
  void set_config_path(const char* path);
  std::string config_path() const;

  // Whether aclFinalize has ended the machine and none has started since.
  bool Ended() const;

  // Devices of the node. Starts the machine only when the environment does not tell.
  Result<int> DeviceCount();
  // Starts the machine unless it runs. Collective like Machine::Start, and its errors.
  Status StartMachine();
  // Errors: ACL_ERROR_RT_INVALID_DEVICEID, ACL_ERROR_RT_NO_DEVICE. Collective like Machine::Start
  // when it is the first call of the process that needs a device.
  aclError CheckDevice(std::string_view function, int32_t device_id);
  // ACL_SUCCESS for an id that names a device of the node, also of another process.
  aclError CheckNodeDevice(std::string_view function, int32_t device_id);
  // Of a device of this process. Errors of CheckDevice.
  aclError UsageOf(std::string_view function, int32_t device_id, DeviceUsage* usage);
  // All streams of a device of this process. Errors of CheckDevice.
  aclError FindStreams(std::string_view function, int32_t device_id,
                       std::vector<std::shared_ptr<AclStream>>* streams);
  aclError FindMemory(std::string_view function, int32_t device_id, DeviceMemory** memory);
  aclError FindCoreLimits(std::string_view function, int32_t device_id, CoreLimits** limits);
  // REQUIRES: the index of a device in the machine.
  CoreLimits& core_limits_of(int index);
  // How clients call the device with this index in the machine.
  uint32_t DeviceIdOf(int index);
  // Whether a thread has made the device current and it was not reset since.
  bool HasImplicitContext(int32_t device_id);
  aclError SetDevice(std::string_view function, int32_t device_id);
  aclError ResetDevice(std::string_view function, int32_t device_id);
  // Whatever the number of references.
  aclError ResetDeviceForce(std::string_view function, int32_t device_id);
  aclError CreateContext(std::string_view function, int32_t device_id, aclrtContext* context);
  aclError DestroyContext(std::string_view function, aclrtContext context);
  aclError SetContext(std::string_view function, aclrtContext context);

  // Profiles devices, at once or, before the machine has started, from its start on. Errors:
  // ACL_ERROR_RT_INVALID_DEVICEID for a device that is not of this process, as far as that is
  // known; ACL_ERROR_PROFILING_FAILURE when a file cannot be written.
  aclError StartProfile(std::string_view function, ProfileRequest request);
  // Ends the files; ACL_SUCCESS without files. Error: ACL_ERROR_PROFILING_FAILURE.
  aclError StopProfile(std::string_view function);

  // Null when this thread has none.
  static std::shared_ptr<AclContext> CurrentContext();
  // The same, as an error: ACL_ERROR_RT_CONTEXT_NULL.
  aclError NeedContext(std::string_view function, std::shared_ptr<AclContext>* context);
  // The id that this thread has set; REQUIRES: a current context.
  static int32_t CurrentDeviceId();

  std::shared_ptr<AclStream> MakeStream(const std::shared_ptr<AclContext>& context, bool is_default,
                                        const AclStreamOptions& options = {});
  // Before one more stream is made or captured: those of the process and of its captured models
  // against the card's. ACL_ERROR_RT_NO_STREAM_RESOURCE as CardLimits::Permit has it.
  aclError PermitStream(std::string_view function);
  // Finishes the stream, or drops what is queued.
  void EndStream(const std::shared_ptr<AclStream>& stream, bool force);
  // Null: the default stream. Errors: ACL_ERROR_RT_INVALID_HANDLE, ACL_ERROR_RT_CONTEXT_NULL.
  aclError NeedStream(std::string_view function, aclrtStream handle,
                      std::shared_ptr<AclStream>* stream);
  // The same, for work that is queued; ACL_ERROR_RT_INTERNAL_ERROR when the system gives the stream
  // no thread.
  aclError NeedReadyStream(std::string_view function, aclrtStream handle,
                           std::shared_ptr<AclStream>* stream);
  // With a guard: ACL_ERROR_RT_STREAM_CONTEXT for a stream of another context than the thread's.
  static aclError CheckContextOf(std::string_view function, const AclStream& stream);
  // As NeedStream; ACL_ERROR_RT_STREAM_CAPTURED when the stream is being captured.
  aclError NeedRunningStream(std::string_view function, aclrtStream handle,
                             std::shared_ptr<AclStream>* stream);

  HandleTable<AclStream> streams;
  HandleTable<AclEvent> events;
  HandleTable<AclNotify> notifies;
  HandleTable<AclAllocator> allocators;
  HandleTable<aclrtStreamConfigHandle> stream_configs;
  StateCallbacks<aclrtStreamStateCallback> stream_callbacks;
  StateCallbacks<aclrtDeviceStateCallback> device_callbacks;
  MemoryBook memory;
  AddressSpace addresses{memory};
  SharedMemory shared{memory};
  ReportQueues reports;         // callbacks (aclrtLaunchCallback)
  ReportQueues host_functions;  // of threads that are subscribed to them (aclrtLaunchHostFunc)
  RunModels run_models;
  Captures captures;
  CardLimits card_limits;
  std::atomic<uint32_t> event_wait_seconds{0};  // aclrtSetOpWaitTimeout

 private:
  // How the process uses one device of the machine.
  struct DeviceUse {
    int references = 0;
    std::shared_ptr<AclContext> implicit;
    std::vector<std::shared_ptr<AclContext>> contexts;  // all of them
  };

  Result<Machine*> NeedMachine();
  aclError FindDevice(std::string_view function, int32_t device_id, int* index);
  aclError CheckProfiledDevice(std::string_view function, int32_t device_id);
  // Of the machine, or of the one that aclFinalize has ended; -1: none.
  int IndexOf(int32_t device_id) const;
  // All streams of a device.
  std::vector<std::shared_ptr<AclStream>> StreamsOf(int index) const;
  // Calls the client, so not under the mutex.
  void TellStreams(const std::vector<std::shared_ptr<AclStream>>& streams, aclrtStreamState state);
  void EndDevice(std::string_view function, int index);
  // With a guard: what the client has not destroyed, and what was written where it must not be.
  void TellLeaksOf(std::string_view function,
                   const std::vector<std::shared_ptr<AclContext>>& contexts);
  void TellLeaksOf(std::string_view function, DeviceMemory& hbm);
  void TellLeaksOfProcess(std::string_view function);
  std::shared_ptr<AclContext> MakeContext(int index, int32_t device_id, bool implicit);
  void EndContext(const std::shared_ptr<AclContext>& context);
  void EndEverything();

  mutable std::mutex mutex_;  // guards what follows; held while a machine starts
  std::string config_path_;
  uint64_t initialized_ = 0;
  bool finalized_ = false;
  std::unique_ptr<Machine> machine_;
  std::optional<DeviceIds> ended_ids_;   // of the machine that aclFinalize has ended
  std::optional<Status> start_failure_;  // not tried again before aclFinalize
  std::vector<DeviceUse> uses_;          // by index in the machine
  std::deque<CoreLimits> core_limits_;   // the same; grows alone
  std::vector<std::function<void()>> ends_;
  DeviceProfiles profiles_;
  HandleTable<AclContext> contexts_;
  std::atomic<int32_t> next_stream_id_{2};  // a profile has other lanes 0 and 1 (span.h)
};

// A stream that the calling thread uses now. The last one stays with the thread, so that finding it
// again costs neither a lock nor a count; it goes when the thread uses or destroys another, or
// ends.
//
// Thread-safety: one thread; a local variable. A use may be nested in another.
class StreamUse {
 public:
  // REQUIRES: `handle` is not null.
  explicit StreamUse(aclrtStream handle);
  ~StreamUse() {
    if (last_ != nullptr) GiveBack(*last_);
  }
  StreamUse(const StreamUse&) = delete;
  StreamUse& operator=(const StreamUse&) = delete;

  // Null for a handle that is no live stream.
  AclStream* stream() const { return last_ != nullptr ? last_->stream.get() : from_table_.get(); }

  // The stream alone, valid until the client destroys it; null as above. REQUIRES: as above.
  static AclStream* Find(aclrtStream handle) {
    const Last& last = OfThisThread();
    const bool known = last.stream.get() == handle && last.version == Version();
    return known ? last.stream.get() : StreamUse(handle).stream();
  }

  // The thread keeps none.
  static void ForgetLast();

 private:
  struct Last {
    std::shared_ptr<AclStream> stream;
    uint64_t version = 0;    // of the table when it was found
    bool in_use = false;     // uses within that use find theirs in the table
    bool forgotten = false;  // goes when that use ends
  };
  static Last& OfThisThread();
  // Of the table of streams, now.
  static uint64_t Version();
  static void GiveBack(Last& last) {
    last.in_use = false;
    if (last.forgotten) ForgetLast();
  }

  Last* last_ = nullptr;                   // the stream is the thread's last one
  std::shared_ptr<AclStream> from_table_;  // it is another one
};

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_PROCESS_H_
