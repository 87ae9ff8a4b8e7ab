// How functions of the C interface fail: the code goes to the caller, the words go to
// aclGetRecentErrMsg, and both belong to the calling thread.
//
// Inside runtime/acl an aclError other than ACL_SUCCESS has been recorded where it was made.
#ifndef NPUMESH_RUNTIME_ACL_PROCESS_ERRORS_H_
#define NPUMESH_RUNTIME_ACL_PROCESS_ERRORS_H_

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "acl/acl_base.h"
#include "runtime/base/status.h"

namespace npumesh {

// Records "function: text (code)" and returns `code`.
aclError FailWith(aclError code, std::string_view function, std::string_view text);

template <typename... Args>
aclError Fail(aclError code, std::string_view function, fmt::format_string<Args...> format,
              Args&&... args) {
  return FailWith(code, function, fmt::format(format, std::forward<Args>(args)...));
}

// For the handler around each function of the interface, because no exception may leave it: records
// what was thrown, and returns ACL_ERROR_BAD_ALLOC without host memory, else
// ACL_ERROR_INTERNAL_ERROR.
aclError FailThrown(const char* function) noexcept;

// The code for what went wrong on a device: 207001 out of memory, 107020 time-out, 507057 a peer is
// lost, 507000 others.
aclError ErrorOf(const Status& status);

// Records a failed status; ACL_SUCCESS for an ok one.
aclError Report(std::string_view function, const Status& status);

// What aclGetRecentErrMsg returns: null when nothing was recorded since the last time.
const char* TakeRecentErrors();

// The last code recorded on this thread, and that of none.
aclError LastError();
void ClearLastError();

}  // namespace npumesh

// Returns from the enclosing function when `expr` is an error.
#define NPUMESH_ACL_TRY(expr)                                                                      \
  do {                                                                                             \
    if (const aclError npumesh_error = (expr); npumesh_error != ACL_SUCCESS) return npumesh_error; \
  } while (false)

// Returns ACL_ERROR_INVALID_PARAM unless `condition` holds; the text says what is expected.
#define NPUMESH_ACL_EXPECT(condition, ...)                                                    \
  do {                                                                                        \
    if (!(condition)) return ::npumesh::Fail(ACL_ERROR_INVALID_PARAM, __func__, __VA_ARGS__); \
  } while (false)

#endif  // NPUMESH_RUNTIME_ACL_PROCESS_ERRORS_H_
