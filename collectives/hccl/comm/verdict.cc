#include "collectives/hccl/comm/verdict.h"

#include "runtime/acl/process/device_context.h"
#include "runtime/base/log.h"
#include "runtime/base/text/printable.h"

namespace npumesh {

HcclResult ResultOf(Code code) {
  switch (code) {
    case Code::kOk:
      return HCCL_SUCCESS;
    case Code::kInvalidArgument:
    case Code::kCorrupt:
    case Code::kMismatch:
      return HCCL_E_PARA;
    case Code::kNotFound:
      return HCCL_E_NOT_FOUND;
    case Code::kUnsupported:
      return HCCL_E_NOT_SUPPORT;
    case Code::kIo:
      return HCCL_E_SYSCALL;
    case Code::kOutOfMemory:
      return HCCL_E_OOM;
    case Code::kTimeout:
      return HCCL_E_TIMEOUT;
    case Code::kPeerLost:
      return HCCL_E_REMOTE;
    case Code::kInternal:
      break;
  }
  return HCCL_E_INTERNAL;
}

Verdict VerdictOf(const Status& status) {
  return {ResultOf(status.code()), std::string(status.message())};
}

HcclResult AnswerRefusal(std::string_view call, const Verdict& verdict) {
  const std::string text =
      fmt::format("{}: {} (HcclResult {})", call, PrintableMessage(verdict.why),
                  static_cast<int>(verdict.result));
  NPUMESH_ERROR("{}", text);
  RecordRecentError(text);
  return verdict.result;
}

HcclResult AnswerThrown(const char* call) noexcept {
  constexpr ThrownCodes kCodes{HCCL_E_MEMORY, HCCL_E_INTERNAL, "HcclResult "};
  return static_cast<HcclResult>(RecordThrown(call, kCodes));
}

}  // namespace npumesh
