// Calls of operators by the registry that has every family.
#ifndef NPUMESH_TESTS_UNIT_OP_BUILTIN_H_
#define NPUMESH_TESTS_UNIT_OP_BUILTIN_H_

#include <string>
#include <vector>

#include "graph/ops/builtin_ops.h"
#include "tests/unit/op_values.h"

namespace npumesh {

// The outputs of a call that must succeed. After a failure eight empty tensors, so that a test that
// takes one of them by its number goes on.
inline std::vector<Tensor> Results(const OpCall& call) {
  Result<std::vector<Tensor>> out = RunOp(BuiltinOps(), call);
  EXPECT_TRUE(out.ok()) << call.type << ": " << out.status().ToString();
  return out.ok() ? std::move(out).value() : std::vector<Tensor>(8);
}

// The message of a call that must fail with `code` contains every one of `words`.
inline void Fails(const OpCall& call, Code code, const std::vector<std::string>& words) {
  ExpectFails(BuiltinOps(), call, code, words);
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OP_BUILTIN_H_
