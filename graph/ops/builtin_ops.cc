#include "graph/ops/builtin_ops.h"

#include <functional>
#include <set>

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

struct FamilyRow {
  std::string_view name;
  std::string_view what;
  void (*add)(OpRegistry& registry);
};

constexpr FamilyRow kFamilies[] = {
    {"shape", "values stay, shapes change; the ends of a graph, control flow, text",
     RegisterShapeFamily},
    {"elementwise", "one value in, one value out: arithmetic, activations, optimizers, Foreach",
     RegisterElementwiseFamily},
    {"index", "which elements, in which order: gather, scatter, sort, random", RegisterIndexFamily},
    {"reduce", "many values to few: sums, norms, softmax, losses", RegisterReduceFamily},
    {"image", "convolutions, pools, resizing, sampling", RegisterImageFamily},
    {"matmul", "products of floats, and what is fused after them", RegisterMatmulFamily},
    {"quant", "eight bits and fewer", RegisterQuantFamily},
    {"attention", "attention, its caches and its rotations", RegisterAttentionFamily},
    {"moe", "routing of experts on one rank", RegisterMoeFamily},
    {"collective", "operators that talk to other ranks", RegisterCollectiveFamily},
};

}  // namespace

const OpRegistry& BuiltinOps() {
  static const OpRegistry* const registry = [] {
    auto* const made = new OpRegistry;
    for (const FamilyRow& family : kFamilies) family.add(*made);
    return made;
  }();
  return *registry;
}

std::vector<OperatorFamily> OperatorFamilies() {
  OpRegistry registry;
  std::set<std::string, std::less<>> seen;
  std::vector<OperatorFamily> families;
  for (const FamilyRow& row : kFamilies) {
    row.add(registry);
    OperatorFamily& family = families.emplace_back(OperatorFamily{row.name, row.what, {}});
    for (const std::string_view type : registry.Types()) {
      if (seen.emplace(type).second) family.types.emplace_back(type);
    }
  }
  return families;
}

}  // namespace npumesh
