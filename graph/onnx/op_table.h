// The table of ONNX operators: one row for each, which says how its nodes become ours.
//
// The rows stand by family in ops_*.cc. A row with a higher `since` takes over from that version of
// the operator set on.
//
// Operators that ONNX defines by other operators have rows like all others. The bodies in the
// schemas of libonnx are not used: they differ between its versions (Selu, Shrink and Softplus have
// none in 1.12), and compute halves in half, windows in float32, and variances as E(x^2) - E(x)^2.
#ifndef NPUMESH_GRAPH_ONNX_OP_TABLE_H_
#define NPUMESH_GRAPH_ONNX_OP_TABLE_H_

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/onnx/lowering.h"

namespace npumesh {

inline constexpr std::string_view kTrainingDomain = "ai.onnx.preview.training";
// What ONNX Runtime's optimisers and quantisation tools write.
inline constexpr std::string_view kMicrosoftDomain = "com.microsoft";

// An attribute of ours that is one of ONNX, and the default of ONNX.
struct FloatPair {
  std::string_view ours;
  std::string_view theirs;
  float fallback;
};

// A node of ours that says the same, with the same operands in the same order.
struct NodePair {
  std::string type;
  std::vector<FloatPair> attrs = {};
};

struct OnnxOp {
  std::string_view name;
  // The first version of the operator set whose meaning of the operator this is.
  int since = 1;
  std::function<void(Lowering&)> lower;
  std::string text;       // what becomes of it, for people: "Conv2D", "Cast, ReduceMean"
  std::string_view form;  // its operands and attributes (node_form.h)
  std::string_view domain = "";
  std::optional<NodePair> pair = {};
};

// A row for both directions: the node becomes a node of `pair`, and such a node of ours becomes it
// again when a graph is written, if the operator set of what is written has it. A row of
// counterparts.cc goes before it.
OnnxOp Pair(std::string_view name, int since, std::string_view form, NodePair pair);

// ---- families ----

void AddElementwiseRows(std::vector<OnnxOp>& rows);
void AddShapeRows(std::vector<OnnxOp>& rows);
void AddIndexRows(std::vector<OnnxOp>& rows);
void AddReduceRows(std::vector<OnnxOp>& rows);
void AddProductRows(std::vector<OnnxOp>& rows);
void AddConvolutionRows(std::vector<OnnxOp>& rows);
void AddPoolRows(std::vector<OnnxOp>& rows);
void AddNormRows(std::vector<OnnxOp>& rows);
void AddLossRows(std::vector<OnnxOp>& rows);
void AddImageRows(std::vector<OnnxOp>& rows);
void AddQuantRows(std::vector<OnnxOp>& rows);
void AddControlRows(std::vector<OnnxOp>& rows);
void AddSequenceRows(std::vector<OnnxOp>& rows);
void AddRecurrentRows(std::vector<OnnxOp>& rows);
void AddSignalRows(std::vector<OnnxOp>& rows);
void AddSelectRows(std::vector<OnnxOp>& rows);
void AddTextRows(std::vector<OnnxOp>& rows);
void AddTrainingRows(std::vector<OnnxOp>& rows);
void AddMicrosoftRows(std::vector<OnnxOp>& rows);  // all of its domain
void AddMicrosoftAttentionRows(std::vector<OnnxOp>& rows);
void AddMicrosoftQuantRows(std::vector<OnnxOp>& rows);

// ---- the whole ----

// Every row, by domain, name and version. Made once, immutable.
const std::vector<OnnxOp>& OnnxOps();

// The row for an operator in this version of its operator set; null: no such row.
const OnnxOp* FindOnnxOp(std::string_view domain, std::string_view name, int64_t version);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_OP_TABLE_H_
