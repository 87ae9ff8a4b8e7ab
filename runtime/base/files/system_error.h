// The one way an error of the operating system becomes a Status.
#ifndef NPUMESH_RUNTIME_BASE_FILES_SYSTEM_ERROR_H_
#define NPUMESH_RUNTIME_BASE_FILES_SYSTEM_ERROR_H_

#include <string_view>
#include <system_error>

#include "runtime/base/status.h"

namespace npumesh {

// "cannot <verb> <path>: <reason of `error_number`>".
inline Status SystemError(std::string_view verb, std::string_view path, int error_number,
                          Code code = Code::kIo) {
  return Error(code, "cannot {} {}: {}", verb, path, std::generic_category().message(error_number));
}

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_FILES_SYSTEM_ERROR_H_
