// Which kernel an operator takes for a call, in words.
#ifndef NPUMESH_TESTS_UNIT_OP_CHOICE_H_
#define NPUMESH_TESTS_UNIT_OP_CHOICE_H_

#include <string>

#include "tests/unit/op_test.h"

namespace npumesh {

// KernelChoice::ToString of the kernel that the call makes, which is not run.
inline std::string ChoiceOf(const OpRegistry& registry, const OpCall& call) {
  const Operator* op = registry.Find(call.type);
  if (op == nullptr) return "no operator " + call.type;
  const Node node = op_test::MakeNode(*op, call);
  const Result<OpContext> context = op_test::BindAndInfer(*op, call, node);
  if (!context.ok()) return context.status().ToString();
  const Result<std::unique_ptr<Kernel>> kernel = op->make_kernel(*context);
  return kernel.ok() ? (*kernel)->choice().ToString() : kernel.status().ToString();
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OP_CHOICE_H_
