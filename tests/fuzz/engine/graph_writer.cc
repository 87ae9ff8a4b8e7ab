#include "tests/fuzz/engine/graph_writer.h"

#include <algorithm>
#include <cmath>

#include "tests/fuzz/engine/interpreter.h"

namespace npumesh::fuzz {
namespace {

constexpr int kMostRoughDepth = 5;
constexpr int64_t kMostElements = 400;

// Sums of a few such numbers are exact in the type.
bool IsSmall(const PlainTensor& x) {
  const Number most = x.dtype == DataType::kBfloat16  ? 32
                      : x.dtype == DataType::kFloat16 ? 128
                      : IsFloat(x.dtype)              ? 2048
                                                      : 100000;
  return x.count() <= kMostElements &&
         std::all_of(x.v.begin(), x.v.end(), [&](Number v) { return std::fabs(v) <= most; });
}

}  // namespace

bool HasOpen(const Extents& dims) {
  return std::any_of(dims.begin(), dims.end(), IsOpen);
}

GraphWriter::GraphWriter(Dice& dice, bool open) : dice_(dice), open_(open), builder_("fuzz") {}

const KnownValue* GraphWriter::Pick(const Fits& fits) {
  std::vector<const KnownValue*> fitting;
  for (const KnownValue& known : known_) {
    if (IsSmall(known.now) && known.rough_depth < kMostRoughDepth && fits(known.now)) {
      fitting.push_back(&known);
    }
  }
  if (fitting.empty()) return nullptr;
  const auto count = static_cast<int64_t>(fitting.size());
  const int64_t recent = std::min<int64_t>(count, 6);
  if (dice_.Chance(50)) return fitting[static_cast<size_t>(count - 1 - dice_.Below(recent))];
  return fitting[static_cast<size_t>(dice_.Below(count))];
}

PlainTensor GraphWriter::Random(DataType dtype, const Extents& dims) {
  PlainTensor made = Zeros(dtype, dims);
  for (Number& x : made.v) {
    x = static_cast<Number>(dtype == DataType::kBool ? dice_.Below(2) : dice_.Between(-4, 4));
  }
  return made;
}

DataType GraphWriter::RandomType() {
  static const std::vector<DataType> types = {
      DataType::kFloat,    DataType::kFloat, DataType::kFloat, DataType::kFloat16,
      DataType::kBfloat16, DataType::kInt32, DataType::kInt64, DataType::kBool};
  return dice_.Pick(types);
}

Extents GraphWriter::RandomDims(int least_rank) {
  static const std::vector<int64_t> extents = {1, 2, 2, 3, 3, 4, 5};
  Extents dims(static_cast<size_t>(dice_.Between(least_rank, 3)));
  for (int64_t& extent : dims) extent = dice_.Pick(extents);
  if (open_ && !dims.empty() && dice_.Chance(60)) {
    dims[static_cast<size_t>(dice_.Below(static_cast<int64_t>(dims.size())))] = kOpenExtent;
  }
  return dims;
}

const KnownValue& GraphWriter::AddInput(PlainTensor first, bool ref, bool sizes) {
  const std::string name = (ref ? "ref" : "x") + std::to_string(inputs_.size());
  Extents declared = first.dims;
  for (int64_t& extent : declared) {
    if (open_ && IsOpen(extent)) extent = kUnknownDim;
  }
  const TensorType type{first.dtype, Shape(declared)};
  const Value value = ref ? builder_.RefData(name, type) : builder_.Data(name, type);
  inputs_.push_back({first, ref, sizes});
  index_[value] = known_.size();
  known_.push_back({value, std::move(first), 0, ref});
  return known_.back();
}

const KnownValue& GraphWriter::AddConst(const PlainTensor& value) {
  const Value made = builder_.Const({}, ToTensor(value));
  index_[made] = known_.size();
  known_.push_back({made, value});
  return known_.back();
}

Value GraphWriter::Ints(const std::vector<int64_t>& values) {
  return Sizes(values, false);
}

Value GraphWriter::Int(int64_t value) {
  PlainTensor made{dice_.Chance(50) ? DataType::kInt64 : DataType::kInt32, {}, {}};
  made.v.push_back(static_cast<Number>(value));
  return AddConst(made).value;
}

Value GraphWriter::Sizes(const std::vector<int64_t>& values, bool fed) {
  PlainTensor made{dice_.Chance(70) ? DataType::kInt64 : DataType::kInt32,
                   {static_cast<int64_t>(values.size())},
                   {}};
  for (const int64_t value : values) made.v.push_back(static_cast<Number>(value));
  return fed ? AddInput(made, false, true).value : AddConst(made).value;
}

const PlainTensor& GraphWriter::Now(Value value) const {
  return known_[index_.at(value)].now;
}

int GraphWriter::RoughDepth(Value value) const {
  return known_[index_.at(value)].rough_depth;
}

std::string GraphWriter::SubgraphName() {
  return "body_" + std::to_string(scratch_.subgraphs.size());
}

bool GraphWriter::Emit(const std::string& type, std::vector<GraphBuilder::Input> inputs,
                       std::vector<GraphBuilder::Attr> attrs, int outputs,
                       std::vector<Graph> subgraphs) {
  Node node;
  node.type = type;
  std::vector<const PlainTensor*> fed;
  int depth = 0;
  for (const auto& [port, value] : inputs) {
    node.inputs.emplace_back(value);
    node.input_descs.emplace_back().name = port;
    fed.push_back(&Now(value));
    depth = std::max(depth, RoughDepth(value));
  }
  for (const auto& [name, value] : attrs) node.attrs.emplace(name, value);
  const size_t held = scratch_.subgraphs.size();
  for (Graph& graph : subgraphs) {
    node.subgraphs.push_back(graph.name());
    scratch_.subgraphs.push_back(std::move(graph));
  }
  std::optional<PlainTensors> made = ComputeNode(scratch_, node, fed);
  const bool sure = made && std::all_of(made->begin(), made->end(), [](const PlainTensor& y) {
                      return y.trust != Trust::kUnsure && y.count() <= kMostElements;
                    });
  if (!sure) {
    scratch_.subgraphs.resize(held);
    return false;
  }
  const std::string name = type + "_" + std::to_string(emitted_++);
  const Value value = builder_.Op(type, std::move(inputs), std::move(attrs), name, outputs);
  if (!node.subgraphs.empty()) calls_[name] = node.subgraphs;
  for (int port = outputs - 1; port >= 0; --port) {
    PlainTensor& now = (*made)[static_cast<size_t>(port)];
    const int rough = now.trust == Trust::kExact ? 0 : depth + 1;
    index_[{value.node, port}] = known_.size();
    known_.push_back({{value.node, port}, std::move(now), rough});
  }
  return true;
}

Result<Model> GraphWriter::Finish(const std::vector<Value>& outputs) {
  builder_.Output(outputs);
  NPUMESH_ASSIGN_OR_RETURN(Model model, builder_.Build());
  model.subgraphs = std::move(scratch_.subgraphs);
  for (const auto& [name, graphs] : calls_) {
    model.graph.node(model.graph.Find(name)).subgraphs = graphs;
  }
  return model;
}

}  // namespace npumesh::fuzz
