#include "graph/ops/builtin_ops.h"

#include "graph/ops/attention/family.h"
#include "graph/ops/collective/family.h"
#include "graph/ops/elementwise/family.h"
#include "graph/ops/image/family.h"
#include "graph/ops/index/family.h"
#include "graph/ops/matmul/family.h"
#include "graph/ops/moe/family.h"
#include "graph/ops/quant/family.h"
#include "graph/ops/reduce/family.h"
#include "graph/ops/shape/family.h"

namespace npumesh {
namespace {

OpRegistry MakeBuiltinOps() {
  OpRegistry registry;
  RegisterShapeFamily(registry);
  RegisterElementwiseFamily(registry);
  RegisterIndexFamily(registry);
  RegisterReduceFamily(registry);
  RegisterImageFamily(registry);
  RegisterMatmulFamily(registry);
  RegisterQuantFamily(registry);
  RegisterAttentionFamily(registry);
  RegisterMoeFamily(registry);
  RegisterCollectiveFamily(registry);
  return registry;
}

}  // namespace

const OpRegistry& BuiltinOps() {
  static const OpRegistry registry = MakeBuiltinOps();
  return registry;
}

}  // namespace npumesh
