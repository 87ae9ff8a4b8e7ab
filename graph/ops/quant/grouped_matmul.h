// GroupedMatmul as it is read from a node.
#ifndef NPUMESH_GRAPH_OPS_QUANT_GROUPED_MATMUL_H_
#define NPUMESH_GRAPH_OPS_QUANT_GROUPED_MATMUL_H_

#include <string>
#include <vector>

#include "graph/ops/toolbox/product/product_plan.h"
#include "graph/ops/toolbox/values/activations.h"

namespace npumesh {

enum class Split : uint8_t { kTensors, kRows, kInner };  // group_type -1, 0, 2

// What one group multiplies: x[m, k] w[k, n], and what follows. m of kRows and k of kInner are
// those of all groups together.
struct Group {
  int x_slot = -1, w_slot = -1;
  int64_t w_first = 0;  // element where its weights begin
  int64_t m = 0, n = 0, k = 0;
  WeightScale weight_scale;
  Dequant dequant;
};

struct GroupedPlan : ProductPlan {
  Split split = Split::kTensors;
  std::vector<Group> groups;
  bool joined = false;  // one output for all groups
  bool transposed_x = false, transposed_w = false, integers = false;
  DataType x_dtype = DataType::kUndefined, w_dtype = DataType::kUndefined;
  DataType y_dtype = DataType::kUndefined;
  Integers list;
  int64_t list_type = 0;
  Activation activation = Activation::kNone;

  // Of group_list: a number each, or for list type 2 a pair.
  int64_t entries() const { return list_type == 2 ? list.count() / 2 : list.count(); }
};

// Reads and checks everything but the values of group_list. At least one group.
GroupedPlan PlanGrouped(const OpContext& op, Check& check);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_QUANT_GROUPED_MATMUL_H_
