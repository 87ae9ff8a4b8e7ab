#include "runtime/acl/errors.h"

#include "runtime/acl/device_context.h"

namespace npumesh {
namespace {

struct RecentErrors {
  std::string text;      // since the last time
  std::string returned;  // the last time
  aclError last = ACL_SUCCESS;
};

// Per thread, as the interface wants it.
RecentErrors& ErrorsOfThisThread() {
  thread_local RecentErrors errors;
  return errors;
}

// A client that never asks must not pay without limit.
constexpr size_t kMostBytes = size_t{64} << 10;

}  // namespace

void RecordRecentError(std::string text) {
  std::string& all = ErrorsOfThisThread().text;
  if (all.size() + text.size() > kMostBytes) all.clear();
  if (!all.empty()) all += '\n';
  all += text;
}

aclError FailWith(aclError code, std::string_view function, std::string_view text) {
  ErrorsOfThisThread().last = code;
  RecordRecentError(fmt::format("{}: {} ({})", function, text, code));
  return code;
}

aclError ErrorOf(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return ACL_SUCCESS;
    case Code::kInvalidArgument:
      return ACL_ERROR_INVALID_PARAM;
    case Code::kUnsupported:
      return ACL_ERROR_RT_FEATURE_NOT_SUPPORT;
    case Code::kOutOfMemory:
      return ACL_ERROR_RT_MEMORY_ALLOCATION;
    case Code::kTimeout:
      return ACL_ERROR_RT_TASK_TIMEOUT;
    case Code::kPeerLost:
      return ACL_ERROR_RT_SUSPECT_REMOTE_ERROR;
    default:
      return ACL_ERROR_RT_INTERNAL_ERROR;
  }
}

aclError Report(std::string_view function, const Status& status) {
  if (status.ok()) return ACL_SUCCESS;
  return FailWith(ErrorOf(status), function, status.message());
}

const char* TakeRecentErrors() {
  RecentErrors& errors = ErrorsOfThisThread();
  if (errors.text.empty()) return nullptr;
  errors.returned = std::move(errors.text);
  errors.text.clear();
  return errors.returned.c_str();
}

aclError LastError() {
  return ErrorsOfThisThread().last;
}

void ClearLastError() {
  ErrorsOfThisThread().last = ACL_SUCCESS;
}

}  // namespace npumesh
