#include "runtime/acl/process/errors.h"

#include <algorithm>
#include <exception>
#include <new>

#include "runtime/acl/process/device_context.h"
#include "runtime/acl/process/process.h"

namespace npumesh {
namespace {

struct RecentErrors {
  std::string text;      // since the last time
  std::string returned;  // the last time
  aclError last = ACL_SUCCESS;
  // The same of what was thrown, where there may be no memory for `text`.
  char thrown[256] = {};
  bool has_thrown = false;
};

// Per thread, as the interface wants it.
RecentErrors& ErrorsOfThisThread() {
  thread_local RecentErrors errors;
  return errors;
}

// A client that never asks must not pay without limit.
constexpr size_t kMostBytes = size_t{64} << 10;

// What a call does wrong while streams are captured.
bool IsOfCapture(aclError code) {
  switch (code) {
    case ACL_ERROR_RT_CAPTURE_DEPENDENCY:
    case ACL_ERROR_RT_STREAM_UNJOINED:
    case ACL_ERROR_RT_MODEL_CAPTURED:
    case ACL_ERROR_RT_STREAM_CAPTURED:
    case ACL_ERROR_RT_EVENT_CAPTURED:
    case ACL_ERROR_RT_STREAM_NOT_CAPTURED:
    case ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT:
    case ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT:
    case ACL_ERROR_STREAM_CAPTURE_CONFLICT:
    case ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED:
    case ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD:
    case ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED:
      return true;
    default:
      return false;
  }
}

}  // namespace

void RecordRecentError(std::string text) {
  std::string& all = ErrorsOfThisThread().text;
  if (all.size() + text.size() > kMostBytes) all.clear();
  if (!all.empty()) all += '\n';
  all += text;
}

// Needs no memory.
int RecordThrown(std::string_view function, const ThrownCodes& codes) noexcept {
  RecentErrors& errors = ErrorsOfThisThread();
  const auto record = [&](int code, std::string_view what, std::string_view detail) {
    constexpr size_t kRoom = sizeof(errors.thrown) - 1;
    const auto written = fmt::format_to_n(errors.thrown, kRoom, "{}: {}{} ({}{})", function, what,
                                          detail, codes.name, code);
    errors.thrown[std::min(written.size, kRoom)] = '\0';
    errors.has_thrown = true;
    return code;
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return record(codes.no_memory, "no host memory is left", "");
  } catch (const std::exception& error) {
    return record(codes.bug, "a bug of npumesh: ", error.what());
  } catch (...) {
    return record(codes.bug, "a bug of npumesh: ", "an exception without words");
  }
}

aclError FailThrown(const char* function) noexcept {
  const int code = RecordThrown(function, {ACL_ERROR_BAD_ALLOC, ACL_ERROR_INTERNAL_ERROR, ""});
  ErrorsOfThisThread().last = code;
  return code;
}

aclError FailWith(aclError code, std::string_view function, std::string_view text) {
  if (IsOfCapture(code)) AclProcess::Get().card_limits.NoteCapture(function, code, text);
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
  if (errors.text.empty()) return std::exchange(errors.has_thrown, false) ? errors.thrown : nullptr;
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
