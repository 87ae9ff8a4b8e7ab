// Which memory of this process is a variable of its programs.
#ifndef NPUMESH_RUNTIME_BASE_ENV_VARIABLES_H_
#define NPUMESH_RUNTIME_BASE_ENV_VARIABLES_H_

#include <cstddef>

namespace npumesh {

// True when all bytes lie on the stack of the calling thread, among its callers, or in the static
// variables of one program or library that is loaded. Not for what a program has allocated.
bool IsVariable(const void* pointer, size_t bytes);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_BASE_ENV_VARIABLES_H_
