// An operator library: Polynomial, y = c[0] + c[1] x + c[2] x^2 + ..., for float32.
//
//   npumesh ops --op-library libpolynomial_operator.so
//   npumesh run model.air --op-library libpolynomial_operator.so
//
// docs/custom_operators.md explains it line by line.
#include "graph/ops/core/custom_operator.h"

namespace {

using npumesh::AttrValue;
using npumesh::Code;
using npumesh::DataType;
using npumesh::Error;
using npumesh::KernelArgs;
using npumesh::OpContext;
using npumesh::Result;
using npumesh::Status;

Result<std::vector<float>> Coefficients(const OpContext& op) {
  const AttrValue* const given = op.node().FindAttr("coefficients");
  const auto* const list = given != nullptr ? given->get<npumesh::ListAttr>() : nullptr;
  if (list == nullptr || list->f.empty()) {
    return Error(Code::kInvalidArgument, "{}: \"coefficients\" is no list of floats", op.Who());
  }
  return list->f;
}

Status InferPolynomial(OpContext& op) {
  if (op.in("x").dtype != DataType::kFloat) {
    return Error(Code::kUnsupported, "{}: \"x\" is {}, expected float32", op.Who(),
                 Name(op.in("x").dtype));
  }
  NPUMESH_RETURN_IF_ERROR(Coefficients(op).status());
  return SetOutput(op, 0, DataType::kFloat, op.in("x").shape);
}

// Horner's rule: one multiplication and one addition for each coefficient.
Result<std::unique_ptr<npumesh::Kernel>> MakePolynomial(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<float> coefficients, Coefficients(op));
  const int64_t elements = op.in("x").shape.elements();
  return npumesh::MakeKernel([coefficients, elements](const KernelArgs& args) {
    const auto* x = static_cast<const float*>(args.in[0]);
    auto* y = static_cast<float*>(args.out[0]);
    for (int64_t i = 0; i < elements; ++i) {
      const float at = x[i];
      float sum = 0;
      for (size_t power = coefficients.size(); power-- > 0;) sum = sum * at + coefficients[power];
      y[i] = sum;
    }
    return Status();
  });
}

}  // namespace

NPUMESH_OPERATOR_LIBRARY(list) {
  list.Add(
      {.schema = {"Polynomial", {{"x"}}, {{"y"}}, {{"coefficients", npumesh::Required::kFloats}}},
       .infer = InferPolynomial,
       .make_kernel = MakePolynomial,
       .axes = "[..]"});
}
