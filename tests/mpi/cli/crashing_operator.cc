// An operator library for tests: Crash copies x and dies of the signal that x[0] numbers; 0: of
// none.
#include <signal.h>

#include <cstdlib>

#include "graph/ops/core/custom_operator.h"

namespace {

using npumesh::KernelArgs;
using npumesh::OpContext;
using npumesh::Status;

Status InferCrash(OpContext& op) {
  return SetOutput(op, 0, op.in("x").dtype, op.in("x").shape);
}

// A true fault where one is to be had, with no sender: a write to a page that is not mapped.
void DieOf(int signal) {
  if (signal == SIGSEGV) {
    volatile char* const nowhere = reinterpret_cast<char*>(8);
    *nowhere = 1;
  }
  if (signal == SIGABRT) std::abort();
  if (signal != 0) raise(signal);
}

npumesh::Result<std::unique_ptr<npumesh::Kernel>> MakeCrash(const OpContext& op) {
  const int64_t elements = op.in("x").shape.elements();
  return npumesh::MakeKernel([elements](const KernelArgs& args) {
    const auto* x = static_cast<const float*>(args.in[0]);
    auto* y = static_cast<float*>(args.out[0]);
    DieOf(static_cast<int>(x[0]));
    for (int64_t i = 0; i < elements; ++i) y[i] = x[i];
    return Status();
  });
}

}  // namespace

NPUMESH_OPERATOR_LIBRARY(list) {
  list.Add(
      {.schema = {"Crash", {{"x"}}, {{"y"}}, {}}, .infer = InferCrash, .make_kernel = MakeCrash});
}
