// What every function of npumesh.h does around its work: the last error of the thread, and no
// exception that leaves the library.
//
// Thread-safety: any thread; each has a separate last error.
#ifndef NPUMESH_GRAPH_C_INTERFACE_CALL_H_
#define NPUMESH_GRAPH_C_INTERFACE_CALL_H_

#include <exception>
#include <new>

#include "npumesh/npumesh.h"
#include "runtime/base/status.h"

namespace npumesh {

// The code of `status`; keeps its text for npumesh_last_error, with `call` in front.
npumesh_code AnswerCall(const char* call, const Status& status);

// kInvalidArgument when a pointer that `call` needs is null. `what` names the argument.
Status CheckPointer(const void* pointer, const char* what);

// Runs `body`, which returns a Status, and answers with it.
template <typename Body>
npumesh_code Call(const char* call, Body body) {
  try {
    const Status status = body();
    return status.ok() ? NPUMESH_OK : AnswerCall(call, status);
  } catch (const std::bad_alloc&) {
    return AnswerCall(call, Error(Code::kOutOfMemory, "no host memory is left"));
  } catch (const std::exception& error) {
    return AnswerCall(call, Error(Code::kInternal, "a bug of npumesh: {}", error.what()));
  }
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_C_INTERFACE_CALL_H_
