#include "graph/c_interface/call.h"

#include <string>

namespace npumesh {
namespace {

std::string& LastError() {
  thread_local std::string text;
  return text;
}

static_assert(static_cast<int>(NPUMESH_INVALID_ARGUMENT) ==
              static_cast<int>(Code::kInvalidArgument));
static_assert(static_cast<int>(NPUMESH_MISMATCH) == static_cast<int>(Code::kMismatch));
static_assert(static_cast<int>(NPUMESH_INTERNAL) == static_cast<int>(Code::kInternal));

}  // namespace

npumesh_code AnswerCall(const char* call, const Status& status) {
  try {
    LastError() = fmt::format("{}: {}", call, status.message());
  } catch (const std::bad_alloc&) {
    LastError().clear();  // needs no memory
  }
  return static_cast<npumesh_code>(status.code());
}

Status CheckPointer(const void* pointer, const char* what) {
  if (pointer != nullptr) return Status();
  return Error(Code::kInvalidArgument, "{} is NULL", what);
}

}  // namespace npumesh

extern "C" const char* npumesh_last_error() {
  return npumesh::LastError().c_str();
}

extern "C" int npumesh_exit_code(npumesh_code code) {
  if (code == NPUMESH_OK) return 0;
  return npumesh::ExitCode(npumesh::Error(static_cast<npumesh::Code>(code), "asked for"));
}

extern "C" const char* npumesh_version() {
  return NPUMESH_VERSION;
}
