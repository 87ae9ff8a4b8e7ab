#include "runtime/acl/process/device_context.h"

#include <utility>

#include "runtime/acl/process/process.h"

namespace npumesh {

Result<AclDevice*> CurrentDevice() {
  const auto context = AclProcess::CurrentContext();
  if (context == nullptr) {
    return Error(Code::kNotFound,
                 "this thread has no current device; call aclrtSetDevice in it first");
  }
  return context->device;
}

Result<AclDevice*> SelectDevice(int32_t device_id) {
  AclProcess& process = AclProcess::Get();
  NPUMESH_RETURN_IF_ERROR(process.StartMachine());
  if (process.SetDevice(__func__, device_id) != ACL_SUCCESS) {
    return Error(Code::kInvalidArgument, "device {} is not one of this process", device_id);
  }
  return CurrentDevice();
}

Stream* FindStream(aclrtStream stream) {
  if (stream != nullptr) {
    AclStream* const found = StreamUse::Find(stream);
    return found == nullptr ? nullptr : &found->stream;
  }
  const auto context = AclProcess::CurrentContext();
  return context == nullptr ? nullptr : &context->default_stream->stream;
}

Result<Stream*> StreamOf(aclrtStream stream) {
  if (Stream* const found = FindStream(stream)) return found;
  if (stream != nullptr) {
    return Error(Code::kInvalidArgument, "{} is not a stream", fmt::ptr(stream));
  }
  return Error(Code::kNotFound,
               "this thread has no default stream; call aclrtSetDevice in it first");
}

void AtFinalize(std::function<void()> end) {
  AclProcess::Get().AtFinalize(std::move(end));
}

}  // namespace npumesh
