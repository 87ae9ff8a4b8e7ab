#include "graph/ops/shard_nodes.h"

#include <utility>
#include <vector>

namespace npumesh {
namespace {

using Feeds = std::vector<std::pair<std::string, Value>>;

TensorDesc Port(std::string name) {
  TensorDesc desc;
  desc.name = std::move(name);
  return desc;
}

Node NodeOf(std::string type, std::string name, Feeds inputs, std::string output = "y") {
  Node node;
  node.type = std::move(type);
  node.name = std::move(name);
  for (auto& [port, value] : inputs) {
    node.inputs.emplace_back(value);
    node.input_descs.push_back(Port(std::move(port)));
  }
  node.output_descs.push_back(Port(std::move(output)));
  return node;
}

Tensor Integer(DataType dtype, int64_t value) {
  if (dtype == DataType::kInt32) {
    return Tensor::FromVector<int32_t>({dtype, Shape()}, {static_cast<int32_t>(value)});
  }
  return Tensor::FromVector<int64_t>({dtype, Shape()}, {value});
}

}  // namespace

Node AllReduceNode(std::string name, Value value, std::string_view group) {
  Node node = NodeOf("HcomAllReduce", std::move(name), {{"x", value}});
  node.attrs["reduction"] = AttrValue::String("sum");
  node.attrs["group"] = AttrValue::String(std::string(group));
  return node;
}

Node AllGatherNode(std::string name, Value value, std::string_view group, int ranks) {
  Node node = NodeOf("HcomAllGather", std::move(name), {{"x", value}});
  node.attrs["rank_size"] = AttrValue::Int(ranks);
  node.attrs["group"] = AttrValue::String(std::string(group));
  return node;
}

Node ConstNode(std::string name, const Tensor& tensor) {
  Node node = NodeOf("Const", std::move(name), {});
  node.attrs["value"] = AttrValue::Value(tensor);
  node.output_descs[0].dtype = tensor.dtype();
  node.output_descs[0].shape = tensor.shape();
  return node;
}

Node PartsNode(std::string name, Value value, int parts) {
  Node node = NodeOf("SplitD", std::move(name), {{"x", value}}, "y0");
  for (int i = 1; i < parts; ++i) node.output_descs.push_back(Port("y" + std::to_string(i)));
  node.attrs["num_split"] = AttrValue::Int(parts);
  node.attrs["split_dim"] = AttrValue::Int(0);
  return node;
}

Node JoinNode(std::string name, const std::vector<Value>& values, int axis) {
  Feeds inputs;
  for (size_t i = 0; i < values.size(); ++i)
    inputs.emplace_back("x" + std::to_string(i), values[i]);
  Node node = NodeOf("ConcatD", std::move(name), std::move(inputs));
  node.attrs["N"] = AttrValue::Int(static_cast<int64_t>(values.size()));
  node.attrs["concat_dim"] = AttrValue::Int(axis);
  return node;
}

Node SliceNode(std::string name, Value value, Value begin, Value end, Value axis) {
  return NodeOf("StridedSliceV2", std::move(name),
                {{"x", value}, {"begin", begin}, {"end", end}, {"axes", axis}});
}

Node DivideDownNode(std::string name, Value sizes, Value divisors) {
  return NodeOf("FloorDiv", std::move(name), {{"x1", sizes}, {"x2", divisors}});
}

Node MultiplyNode(std::string name, Value sizes, Value factors) {
  return NodeOf("Mul", std::move(name), {{"x1", sizes}, {"x2", factors}});
}

Result<Value> LookUpRows(const AddNodeFn& add, Node lookup, int positions, const TableRows& rows) {
  const std::string name = lookup.name;
  const auto op = [&](std::string type, const char* what, Feeds inputs, std::string output = "y") {
    return add(NodeOf(std::move(type), name + "/" + what, std::move(inputs), std::move(output)));
  };
  const auto number = [&](const char* what, int64_t value) {
    return add(ConstNode(name + "/" + what, Integer(rows.positions_type, value)));
  };
  const Value given = *lookup.inputs[static_cast<size_t>(positions)];
  NPUMESH_ASSIGN_OR_RETURN(const Value zero, number("zero", 0));
  NPUMESH_ASSIGN_OR_RETURN(const Value total, number("total", rows.total));
  NPUMESH_ASSIGN_OR_RETURN(const Value first, number("first", rows.first));
  NPUMESH_ASSIGN_OR_RETURN(const Value count, number("count", rows.count));
  Value row = given;
  if (rows.wraps) {
    NPUMESH_ASSIGN_OR_RETURN(const Value low, op("Less", "low", {{"x1", given}, {"x2", zero}}));
    NPUMESH_ASSIGN_OR_RETURN(const Value up, op("Add", "up", {{"x1", given}, {"x2", total}}));
    NPUMESH_ASSIGN_OR_RETURN(
        row, op("SelectV2", "row", {{"condition", low}, {"then", up}, {"else", given}}, "result"));
  }
  NPUMESH_ASSIGN_OR_RETURN(const Value mine, op("Sub", "mine", {{"x1", row}, {"x2", first}}));
  const auto within = [&](const char* what, Value value, Value end) -> Result<Value> {
    const std::string word = what;
    NPUMESH_ASSIGN_OR_RETURN(const Value from, op("GreaterEqual", (word + "_from").c_str(),
                                                  {{"x1", value}, {"x2", zero}}));
    NPUMESH_ASSIGN_OR_RETURN(const Value to,
                             op("Less", (word + "_to").c_str(), {{"x1", value}, {"x2", end}}));
    return op("LogicalAnd", what, {{"x1", from}, {"x2", to}});
  };
  NPUMESH_ASSIGN_OR_RETURN(const Value here, within("here", mine, count));
  NPUMESH_ASSIGN_OR_RETURN(const Value exists, within("exists", row, total));
  // Row 0 stands for rows of other ranks; what no rank has stays as it is, and is refused.
  NPUMESH_ASSIGN_OR_RETURN(
      const Value other,
      op("SelectV2", "other", {{"condition", exists}, {"then", zero}, {"else", given}}, "result"));
  NPUMESH_ASSIGN_OR_RETURN(
      const Value place,
      op("SelectV2", "place", {{"condition", here}, {"then", mine}, {"else", other}}, "result"));
  lookup.inputs[static_cast<size_t>(positions)] = place;
  lookup.name = name + "/rows";
  NPUMESH_ASSIGN_OR_RETURN(const Value found, add(std::move(lookup)));
  NPUMESH_ASSIGN_OR_RETURN(
      const Value axis,
      add(ConstNode(name + "/axis",
                    Tensor::FromVector<int64_t>({DataType::kInt64, {1}}, {rows.positions_rank}))));
  NPUMESH_ASSIGN_OR_RETURN(const Value wide,
                           op("UnsqueezeV3", "wide", {{"x", here}, {"axes", axis}}));
  NPUMESH_ASSIGN_OR_RETURN(const Value nothing,
                           add(ConstNode(name + "/nothing", Tensor::Allocate(rows.row_type))));
  return add(NodeOf("SelectV2", name, {{"condition", wide}, {"then", found}, {"else", nothing}},
                    "result"));
}

}  // namespace npumesh
