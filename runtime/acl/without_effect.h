// Functions of the C interface that a simulated NPU answers without doing what they say, in two
// tables, each with the reason: those that are accepted because nothing can come of them here, and
// those that are refused because a program would go on with a result that is not there.
//
// Thread-safety: all functions may be called from any thread.
#ifndef NPUMESH_RUNTIME_ACL_WITHOUT_EFFECT_H_
#define NPUMESH_RUNTIME_ACL_WITHOUT_EFFECT_H_

#include <span>
#include <string_view>

#include "acl/acl_base.h"

namespace npumesh {

struct FunctionNote {
  std::string_view function;  // with a star at its end: all that begin with it
  std::string_view reason;
};

// In alphabetical order.
std::span<const FunctionNote> FunctionsWithoutEffect();
std::span<const FunctionNote> RefusedFunctions();

// ACL_SUCCESS. The first call of a function in this process says by the log that it has no effect.
// REQUIRES: `function` stands in FunctionsWithoutEffect.
aclError AcceptWithoutEffect(std::string_view function);

// ACL_ERROR_RT_FEATURE_NOT_SUPPORT with the reason. REQUIRES: it stands in RefusedFunctions.
aclError Refuse(std::string_view function);

}  // namespace npumesh

#endif  // NPUMESH_RUNTIME_ACL_WITHOUT_EFFECT_H_
