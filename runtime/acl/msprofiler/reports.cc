// The reports by which libraries of the vendor's stack tell its profiler what they do on the host
// (names, parameters: the profiling header of the open hicann/runtime). Profiles here take what
// runs from the device itself, so reports are accepted and dropped; the switch that asks for them
// is never turned on.
#include <cstdint>
#include <string_view>

#include "runtime/acl/process/process.h"
#include "runtime/base/text/fnv.h"

extern "C" {

// `handle` would be called when profiling starts and ends.
int32_t MsprofRegisterCallback(uint32_t /*module*/,
                               int32_t (* /*handle*/)(uint32_t, void*, uint32_t)) {
  return 0;
}

int32_t MsprofReportApi(uint32_t /*not_kept*/, const void* /*api*/) {
  return 0;
}

int32_t MsprofReportCompactInfo(uint32_t /*not_kept*/, const void* /*data*/, uint32_t /*bytes*/) {
  return 0;
}

int32_t MsprofReportAdditionalInfo(uint32_t /*not_kept*/, const void* /*data*/,
                                   uint32_t /*bytes*/) {
  return 0;
}

// A number that stands for the text in reports, the same for equal texts: FNV-1a, 64 bits. 0 for
// null.
uint64_t MsprofGetHashId(const char* text, size_t length) {
  return text == nullptr ? 0 : npumesh::Fnv1a(std::string_view(text, length));
}

// The clock of the reports, in ns.
uint64_t MsprofSysCycleTime(void) {
  return static_cast<uint64_t>(npumesh::Profiler::Now());
}

}  // extern "C"
