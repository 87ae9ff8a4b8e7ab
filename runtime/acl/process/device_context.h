// What the C interfaces of npumesh (libacl_rt, libhccl) share: the simulated NPU that the calling
// thread has made current, the streams behind handles, and the text of the last errors.
//
// The worlds, the device memories and all handles of a process live in one object inside
// libacl_rt.so, from aclInit (or the first call that needs a device) to aclFinalize. There must be
// one copy of it: libacl_rt.so contains and exports
// runtime/{base,world,device,profile,acl}, and a library above it (libhccl.so) links the target
// `acl_rt` and takes these symbols from there, never from the static archives.
//
// Thread-safety: all functions may be called from any thread. None of them throws or prints.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_DEVICE_CONTEXT_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_DEVICE_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "acl/acl_rt.h"
#include "runtime/base/status.h"
#include "runtime/device/device_memory.h"
#include "runtime/device/stream.h"
#include "runtime/world/world.h"

namespace npumesh {

// A simulated NPU of this process. Under a launcher a process has one, its rank's; without one it
// has NPUMESH_DEVICE_COUNT, each a separate rank in a world of threads. Valid until aclFinalize.
struct AclDevice {
  World& world;
  DeviceMemory& memory;
};

// The device that this thread has made current with aclrtSetDevice or aclrtSetCurrentContext.
// kNotFound without one.
Result<AclDevice*> CurrentDevice();

// aclrtSetDevice for callers in C++: says why when it fails. Collective over all ranks of the
// launcher when it is the first call of the process that needs a device. Errors: those of
// World::Start and DeviceMemory::Create; kInvalidArgument for a device of another process.
Result<AclDevice*> SelectDevice(int32_t device_id);

// The stream behind a handle; null means the default stream of the current context. Valid until
// the client destroys the stream. kInvalidArgument for a handle that is no live stream, kNotFound
// for null without a current context.
Result<Stream*> StreamOf(aclrtStream stream);
// The same, null instead of an error.
Stream* FindStream(aclrtStream stream);

// Adds a line to what aclGetRecentErrMsg returns next on this thread.
void RecordRecentError(std::string text);

// By the kind of exception. `name` stands in front of the code in the text.
struct ThrownCodes {
  int no_memory = 0;
  int bug = 0;
  std::string_view name;
};

// For the handler around each function of a C interface, because no exception may leave it: records
// what was thrown for aclGetRecentErrMsg, which returns it after what was recorded before; needs no
// memory. Returns the code.
int RecordThrown(std::string_view function, const ThrownCodes& codes) noexcept;

// `end` is called once, by aclFinalize, before the worlds end; last registered first. A library
// that keeps objects over an AclDevice gives them up there.
void AtFinalize(std::function<void()> end);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_DEVICE_CONTEXT_H_
