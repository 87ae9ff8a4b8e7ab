// An operator of a project outside of npumesh.
#include "graph/ops/core/custom_operator.h"

namespace {

npumesh::Status InferOutside(npumesh::OpContext& op) {
  return SetOutput(op, 0, op.in("x").dtype, op.in("x").shape);
}

}  // namespace

NPUMESH_OPERATOR_LIBRARY(list) {
  list.Add({.schema = {"FromOutside", {{"x"}}, {{"y"}}, {}}, .infer = InferOutside, .view = true});
}
