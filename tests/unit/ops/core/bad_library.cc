// An operator library that is wrong in the one way its definition names.
#include <stdexcept>

#include "graph/ops/core/custom_operator.h"

namespace npumesh {
namespace {

Status InferSame(OpContext& op) {
  return SetOutput(op, 0, op.in("x").dtype, op.in("x").shape);
}

Result<std::unique_ptr<Kernel>> MakeThrowing(const OpContext&) {
  return MakeKernel([](const KernelArgs&) -> Status { throw std::runtime_error("no luck"); });
}

[[maybe_unused]] Operator Op(std::string_view type) {
  return {.schema = {type, {{"x"}}, {{"y"}}, {}}, .infer = InferSame, .make_kernel = MakeThrowing};
}

}  // namespace
}  // namespace npumesh

#if defined(NO_ENTRY)
#elif defined(OTHER_VERSION) || defined(OTHER_SIZES)
extern "C" const npumesh::OperatorAbi NpumeshOperatorAbi;
#ifdef OTHER_VERSION
const npumesh::OperatorAbi NpumeshOperatorAbi = {.version = npumesh::kOperatorAbi.version + 1};
#else
const npumesh::OperatorAbi NpumeshOperatorAbi = {.version = npumesh::kOperatorAbi.version};
#endif
extern "C" void NpumeshAddOperators(npumesh::OperatorList&) {
  throw std::logic_error("called in spite of its version");
}
#else
NPUMESH_OPERATOR_LIBRARY(list) {
#ifdef TAKEN_NAME
  list.Add(npumesh::Op("NotTaken"));
  list.Add(npumesh::Op("Add"));
#elif defined(NO_INFER)
  list.Add(npumesh::Op("NoInfer"));
  list.operators().back().infer = nullptr;
#else
  list.Add(npumesh::Op("Throws"));
#endif
}
#endif
