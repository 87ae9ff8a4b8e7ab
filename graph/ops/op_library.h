// Operator libraries: shared libraries with operators of a user's own (custom_operator.h).
//
// A library stays loaded until the process ends, because kernels and registries hold its code. Its
// operators may throw: what they throw becomes an error that names the operator.
#ifndef NPUMESH_GRAPH_OPS_OP_LIBRARY_H_
#define NPUMESH_GRAPH_OPS_OP_LIBRARY_H_

#include <memory>
#include <string>
#include <vector>

#include "graph/ops/core/op_registry.h"
#include "runtime/base/files/shared_library.h"
#include "runtime/base/status.h"

namespace npumesh {

// Adds the operators of the library `path` to `registry`, all of them or, after an error, none.
// Errors name the file: kNotFound, kInvalidArgument (no regular file; no library; no operators in
// it; an operator is incomplete or its name is taken; every user may write it), kUnsupported (built
// for another npumesh).
Status LoadOpLibrary(const std::string& path, OpRegistry& registry,
                     LibraryTrust trust = LibraryTrust::kOwner);

// The built-in operators and those of `libraries`, in this order. Errors: as LoadOpLibrary.
Result<std::shared_ptr<const OpRegistry>> OperatorsWith(const std::vector<std::string>& libraries,
                                                        LibraryTrust trust = LibraryTrust::kOwner);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_OP_LIBRARY_H_
