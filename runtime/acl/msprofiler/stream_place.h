// Notes that a stream makes when it comes to a place: marks and ranges of programs.
#ifndef NPUMESH_RUNTIME_ACL_MSPROFILER_STREAM_PLACE_H_
#define NPUMESH_RUNTIME_ACL_MSPROFILER_STREAM_PLACE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "runtime/acl/process/api_span.h"
#include "runtime/acl/process/process.h"

namespace npumesh {

// Calls note(lane, device) when the stream comes there. Errors: those of NeedReadyStream.
// Thread-safety: any thread.
template <typename Note>
aclError NoteInStream(const char* function, aclrtStream stream, Note note) {
  std::shared_ptr<AclStream> found;
  NPUMESH_ACL_TRY(AclProcess::Get().NeedReadyStream(function, stream, &found));
  const uint16_t lane = LaneOfStream(found->id);
  found->stream.Enqueue([note = std::move(note), lane, device = found->device] {
    note(lane, device);
    return Status();
  });
  return ACL_SUCCESS;
}

// The same for a mark.
inline aclError MarkInStream(const char* function, std::string text, aclrtStream stream) {
  return NoteInStream(function, stream, [text = std::move(text)](uint16_t lane, AclDevice* device) {
    NoteRange({text, "Mark", Profiler::Now(), lane}, device);
  });
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_MSPROFILER_STREAM_PLACE_H_
