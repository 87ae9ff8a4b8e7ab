// Cause: why a rank is blamed (blame.h).
#ifndef NPUMESH_LAUNCH_RECORD_CAUSE_H_
#define NPUMESH_LAUNCH_RECORD_CAUSE_H_

#include <cstdint>
#include <string_view>

namespace npumesh {

enum class Cause : uint8_t {
  kNone,
  kMismatch,
  kMissing,
  kCircle,
  kFailed,
  kLost,
  kStopped,
  kEnded,
  kKilled,
  kLate,
};
std::string_view Name(Cause cause);  // "none", "mismatch", "missing", ...

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_RECORD_CAUSE_H_
