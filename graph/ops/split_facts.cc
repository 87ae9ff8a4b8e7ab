#include "graph/ops/split_facts.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace npumesh {
namespace {

constexpr SplitFacts kFacts[] = {
    {.type = "SoftmaxV2", .axes_attr = "axes"},
    {.type = "ReduceMean", .axes_port = "axes", .reduces = true},
    {.type = "ReduceSum", .axes_port = "axes", .reduces = true},
    {.type = "ReduceMax", .axes_port = "axes", .reduces = true},
    {.type = "ConcatV2", .axes_port = "concat_dim", .many = true},
    {.type = "StridedSliceV2"},
    {.type = "BroadcastTo"},
    {.type = "Expand"},
};

TensorDesc Port(std::string name) {
  TensorDesc desc;
  desc.name = std::move(name);
  return desc;
}

Node NodeOf(std::string type, std::string name, std::vector<std::pair<std::string, Value>> inputs) {
  Node node;
  node.type = std::move(type);
  node.name = std::move(name);
  for (auto& [port, value] : inputs) {
    node.inputs.emplace_back(value);
    node.input_descs.push_back(Port(std::move(port)));
  }
  node.output_descs.push_back(Port("y"));
  return node;
}

}  // namespace

const SplitFacts* SplitFactsOf(std::string_view type) {
  const auto* found = std::find_if(std::begin(kFacts), std::end(kFacts),
                                   [&](const SplitFacts& facts) { return facts.type == type; });
  return found == std::end(kFacts) ? nullptr : found;
}

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

Node TransposeNode(std::string name, Value value, Value permutation) {
  return NodeOf("Transpose", std::move(name), {{"x", value}, {"perm", permutation}});
}

Node ConstNode(std::string name, const Tensor& tensor) {
  Node node = NodeOf("Const", std::move(name), {});
  node.attrs["value"] = AttrValue::Value(tensor);
  node.output_descs[0].dtype = tensor.dtype();
  node.output_descs[0].shape = tensor.shape();
  return node;
}

}  // namespace npumesh
