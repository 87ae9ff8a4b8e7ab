// The operators of ours that have a counterpart in operator set 17 of ONNX: the pairs of
// op_table.h, and a table of those that are written otherwise than they are read. Internal to
// graph/onnx.
//
// Thread-safety: none for one draft; the rows may be read by several threads.
#ifndef NPUMESH_GRAPH_ONNX_COUNTERPARTS_H_
#define NPUMESH_GRAPH_ONNX_COUNTERPARTS_H_

#include <onnx/onnx_pb.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir/graph.h"

namespace npumesh {

// The operator set of what is written.
inline constexpr int kWrittenOpset = 17;

// A node of ours on its way into an ONNX graph.
class OnnxDraft {
 public:
  // All must outlive the draft. `path`: of the model, to find weights in files beside it.
  OnnxDraft(const Graph& graph, const std::string& path, const Node& from, onnx::NodeProto& to)
      : graph_(graph), path_(path), from_(from), to_(to) {}

  const Node& from() const { return from_; }
  onnx::NodeProto& to() { return to_; }

  // The integers of a constant input or, in forms without that input, of an attribute, which then
  // have their place in the ONNX node. Nullopt: neither is there, or the input is no constant.
  std::optional<std::vector<int64_t>> Known(std::string_view name);
  // The same where there is a single one.
  std::optional<int64_t> KnownOne(std::string_view name);
  // Whether every input has its place.
  bool complete() const;

  // ---- what the ONNX node gets ----
  void Int(const std::string& name, int64_t value);
  void Float(const std::string& name, float value);
  void Text(const std::string& name, const std::string& value);
  void Ints(const std::string& name, const std::vector<int64_t>& values);
  void Operand(const std::string& name) { to_.add_input(name); }
  void Take(std::string_view port) { taken_.insert(std::string(port)); }
  // An int64 vector as the next operand.
  void Constant(const std::string& below, const std::vector<int64_t>& values);
  // A number of this type as the next operand.
  void Scalar(const std::string& below, int64_t value, DataType dtype);
  // A node before this one with these operands; gives the name of its result. `below`: of the node,
  // where there is another one of this type; empty: the type.
  std::string Before(const std::string& type, const std::vector<std::string>& operands,
                     const std::string& below = {});
  // Attributes of the last one of these nodes.
  void IntBefore(const std::string& name, int64_t value);
  void IntsBefore(const std::string& name, const std::vector<int64_t>& values);
  // An int64 vector; gives its name.
  std::string ConstantBefore(const std::string& below, const std::vector<int64_t>& values);
  // The ONNX node as it is until now, before one that begins anew; gives the name of its result.
  std::string MoveBefore();
  std::string CastBefore(const std::string& operand, DataType dtype, const std::string& below = {});
  const std::vector<onnx::TensorProto>& constants() const { return constants_; }
  const std::vector<onnx::NodeProto>& before() const { return before_; }

 private:
  onnx::AttributeProto& Added(const std::string& name, onnx::AttributeProto::AttributeType type);

  const Graph& graph_;
  const std::string& path_;
  const Node& from_;
  onnx::NodeProto& to_;
  std::set<std::string> taken_;  // inputs of ours that have their place
  std::vector<onnx::TensorProto> constants_;
  std::vector<onnx::NodeProto> before_;
};

// Operands by our ports, in the order of ONNX; a port that takes many tensors stands alone.
// `finish` sets attributes and what comes from constants; false: this node has a form that ONNX
// has not.
struct Counterpart {
  std::string_view ours;
  std::string_view theirs;
  std::vector<std::string_view> ports;
  std::function<bool(OnnxDraft& draft)> finish = {};
  // The port that has to be int64 in ONNX, where ours may be int32 as well.
  std::string_view sizes = "";
};

// Every row, by our names, in their order.
const std::vector<Counterpart>& Counterparts();

// Null: no counterpart.
const Counterpart* FindCounterpart(std::string_view type);

// A dense tensor with these int64 values.
onnx::TensorProto VectorProto(const std::string& name, const std::vector<int64_t>& values);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ONNX_COUNTERPARTS_H_
