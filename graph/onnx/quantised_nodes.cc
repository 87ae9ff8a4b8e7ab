#include "graph/onnx/quantised_nodes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/onnx/node_order.h"
#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"

namespace npumesh {
namespace {

// Bytes, their scale and zero, by name.
struct ScaledName {
  std::string bytes, scale, zero;
  int64_t axis = 1;
};

// Operators that hand on elements of their first operand.
constexpr std::array<std::string_view, 10> kMovers = {
    "DepthToSpace", "Flatten",      "Gather",  "MaxPool",   "Reshape",
    "Slice",        "SpaceToDepth", "Squeeze", "Transpose", "Unsqueeze"};

class Joiner {
 public:
  explicit Joiner(OnnxModel& model) : model_(model), graph_(model.graph) {}

  void Run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      for (const std::string& name : graph_.nodes[i].outputs) makers_[name] = i;
      for (const std::string& name : NamesReadBy(graph_.nodes[i])) readers_[name].push_back(i);
    }
    for (const OnnxValueInfo& output : graph_.outputs) kept_.insert(output.name);
    gone_.assign(graph_.nodes.size(), false);
    instead_.resize(graph_.nodes.size());
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op == "QuantizeLinear" && IsQuantisation(graph_.nodes[i])) JoinAt(i);
    }
    JoinFloats();
    std::vector<OnnxNode> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      std::move(instead_[i].begin(), instead_[i].end(), std::back_inserter(nodes));
      if (!gone_[i]) nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
    DropUnread();
    if (microsoft_) model_.opsets.emplace(std::string(kMicrosoftDomain), 1);
  }

 private:
  const Tensor* Initialiser(const std::string& name) const {
    const auto found = graph_.initialisers.find(name);
    return found == graph_.initialisers.end() ? nullptr : &found->second;
  }

  // Scale (float32) and zero (a byte, or `also`) are known, and there are no blocks.
  bool IsQuantisation(const OnnxNode& node, DataType also = DataType::kUint8) const {
    if (!node.domain.empty() || node.inputs.size() < 2) return false;
    for (const std::string_view name : {"block_size", "output_dtype", "precision"}) {
      const OnnxAttribute* const given = node.Find(name);
      if (given != nullptr && given->i != 0) return false;
    }
    const Tensor* const scale = Initialiser(node.inputs[1]);
    if (scale == nullptr || scale->dtype() != DataType::kFloat) return false;
    if (node.inputs.size() < 3 || node.inputs[2].empty()) return true;
    const Tensor* const zero = Initialiser(node.inputs[2]);
    return zero != nullptr && (IsByte(zero->dtype()) || zero->dtype() == also) &&
           zero->elements() == scale->elements();
  }

  ScaledName Of(const OnnxNode& node, const std::string& bytes) const {
    const OnnxAttribute* const axis = node.Find("axis");
    return {bytes, node.inputs[1], node.inputs.size() > 2 ? node.inputs[2] : "",
            axis != nullptr ? axis->i : 1};
  }

  bool IsOne(const ScaledName& of) const { return Initialiser(of.scale)->elements() == 1; }

  // What DequantizeLinear made `name` of; nullopt: another operator made it.
  std::optional<ScaledName> Dequantised(const std::string& name,
                                        DataType also = DataType::kUint8) const {
    const auto made = makers_.find(name);
    if (made == makers_.end()) return std::nullopt;
    const OnnxNode& node = graph_.nodes[made->second];
    if (node.op != "DequantizeLinear" || !IsQuantisation(node, also)) return std::nullopt;
    const bool typed = node.inputs.size() > 2 && !node.inputs[2].empty();
    const Tensor* const bytes = Initialiser(node.inputs[0]);
    // Without a zero the type is that of the bytes, which only an initialiser tells here.
    if (!typed && (bytes == nullptr || (!IsByte(bytes->dtype()) && bytes->dtype() != also))) {
      return std::nullopt;
    }
    return Of(node, node.inputs[0]);
  }

  // An operand of one scale.
  std::optional<ScaledName> DequantisedByOne(const std::string& name) const {
    std::optional<ScaledName> found = Dequantised(name);
    return found && IsOne(*found) ? found : std::nullopt;
  }

  // The node that makes `name` for one reader alone; null: there is no such node.
  const OnnxNode* OnlyFor(const std::string& name, size_t& index) const {
    const auto made = makers_.find(name);
    if (made == makers_.end() || kept_.contains(name) || gone_[made->second]) return nullptr;
    if (readers_.at(name).size() != 1) return nullptr;
    const OnnxNode& node = graph_.nodes[made->second];
    index = made->second;
    return node.domain.empty() && node.outputs.size() == 1 ? &node : nullptr;
  }

  // The name of a zero; a new 0 of this type where it has no zero.
  std::string ZeroOf(const ScaledName& of, DataType dtype) {
    if (!of.zero.empty()) return of.zero;
    const std::string name = fmt::format("npumesh.zero.{}", Name(dtype));
    graph_.initialisers.emplace(name, Tensor::FromVector({dtype, Shape()}, std::vector<int8_t>{0}));
    return name;
  }

  DataType TypeOf(const ScaledName& of) const {
    const Tensor* const tensor = Initialiser(of.zero.empty() ? of.bytes : of.zero);
    return tensor != nullptr ? tensor->dtype() : DataType::kUint8;
  }

  OnnxNode NodeOf(const OnnxNode& like, std::string op, std::string_view domain,
                  std::vector<std::string> inputs, std::string output) const {
    OnnxNode node = like;
    node.op = std::move(op);
    node.domain = domain;
    node.inputs = std::move(inputs);
    node.outputs = {std::move(output)};
    return node;
  }

  // Puts `node` in the place of nodes `whole` and `last`.
  void Replace(OnnxNode node, size_t whole, size_t last) {
    microsoft_ |= node.domain == kMicrosoftDomain;
    gone_[whole] = gone_[last] = true;
    instead_[last].insert(instead_[last].begin(), std::move(node));
  }

  // The operator before the quantisation `last`, if it is one of bytes with it.
  void JoinAt(size_t last) {
    const OnnxNode& q = graph_.nodes[last];
    const ScaledName y = Of(q, q.outputs[0]);
    if (!IsOne(y)) return;
    size_t at = 0, limit = 0;
    const OnnxNode* node = OnlyFor(q.inputs[0], at);
    if (node == nullptr) return;
    const OnnxNode* bound = nullptr;
    if (node->op == "Relu") {
      bound = node;
      limit = at;
      node = OnlyFor(bound->inputs[0], at);
      if (node == nullptr) return;
    }
    std::optional<OnnxNode> joined = Joined(*node, y, q.outputs[0]);
    if (!joined) return;
    if (bound != nullptr) gone_[limit] = true;
    if (bound != nullptr && !IsLeast(y)) {
      // The bytes of the Relu are those that are not below the zero.
      const std::string below = joined->outputs[0] + ".any";
      joined->outputs[0] = below;
      instead_[last].push_back(
          NodeOf(*bound, "Max", "", {below, ZeroOf(y, TypeOf(y))}, q.outputs[0]));
    }
    Replace(std::move(*joined), at, last);
  }

  // Whether the zero is the least byte: nothing is below it.
  bool IsLeast(const ScaledName& of) const {
    const Tensor* const zero = Initialiser(of.zero);
    const DataType dtype = TypeOf(of);
    if (zero == nullptr) return of.zero.empty() && dtype == DataType::kUint8;
    return std::to_integer<int>(*zero->data()) == (dtype == DataType::kUint8 ? 0 : 0x80);
  }

  // The node of bytes that makes `output`; nullopt: no node does.
  std::optional<OnnxNode> Joined(const OnnxNode& node, const ScaledName& y,
                                 const std::string& output) {
    if (node.op == "Conv") return Convolution(node, y, output);
    if (node.op == "MatMul") return Product(node, y, output);
    if (node.op == "Gemm") return Gemm(node, &y, output);
    if (node.op == "Add" || node.op == "Mul") return Pair(node, y, output);
    if (node.op == "Concat") return Concat(node, y, output);
    if (std::find(kMovers.begin(), kMovers.end(), node.op) != kMovers.end()) {
      return Moved(node, y, output);
    }
    return std::nullopt;
  }

  // int32 with the scale of the sums, as a bias has to be; empty: left out; nullopt: another one.
  std::optional<std::string> Bias(const OnnxNode& node, size_t input, const ScaledName& x,
                                  const ScaledName& w) const {
    if (node.inputs.size() <= input || node.inputs[input].empty()) return "";
    const std::optional<ScaledName> bias = Dequantised(node.inputs[input], DataType::kInt32);
    if (!bias || TypeOf(*bias) != DataType::kInt32) return std::nullopt;
    if (const Tensor* const zero = Initialiser(bias->zero); zero != nullptr) {
      for (const int32_t each : zero->as<int32_t>()) {
        if (each != 0) return std::nullopt;
      }
    }
    const auto scale = Initialiser(bias->scale)->as<float>();
    const auto of_x = Initialiser(x.scale)->as<float>(), of_w = Initialiser(w.scale)->as<float>();
    for (size_t i = 0; i < std::max(scale.size(), of_w.size()); ++i) {
      const float own = scale.size() == 1 ? scale[0] : i < scale.size() ? scale[i] : -1;
      const float sums = of_x[0] * (of_w.size() == 1 ? of_w[0] : i < of_w.size() ? of_w[i] : -2);
      if (!(std::abs(own - sums) <= 1e-6F * std::abs(sums))) return std::nullopt;
    }
    return bias->bytes;
  }

  std::optional<OnnxNode> Convolution(const OnnxNode& node, const ScaledName& y,
                                      const std::string& output) {
    const auto x = DequantisedByOne(node.inputs[0]);
    const auto w = Dequantised(node.inputs[1]);
    if (!x || !w || (!IsOne(*w) && w->axis != 0)) return std::nullopt;
    const auto bias = Bias(node, 2, *x, *w);
    if (!bias) return std::nullopt;
    std::vector<std::string> inputs = {x->bytes,
                                       x->scale,
                                       ZeroOf(*x, TypeOf(*x)),
                                       w->bytes,
                                       w->scale,
                                       ZeroOf(*w, TypeOf(*w)),
                                       y.scale,
                                       ZeroOf(y, TypeOf(y))};
    if (!bias->empty()) inputs.push_back(*bias);
    return NodeOf(node, "QLinearConv", "", std::move(inputs), output);
  }

  // Whether a scale is one, or one for each column of the matrices `w`.
  bool OfColumns(const ScaledName& w, bool transposed = false) const {
    if (IsOne(w)) return true;
    const Tensor* const weights = Initialiser(w.bytes);
    if (weights == nullptr || weights->shape().rank() != 2) return false;
    const int64_t axis = w.axis < 0 ? w.axis + 2 : w.axis;
    return axis == (transposed ? 0 : 1);
  }

  std::optional<OnnxNode> Product(const OnnxNode& node, const ScaledName& y,
                                  const std::string& output) {
    const auto a = DequantisedByOne(node.inputs[0]);
    const auto b = Dequantised(node.inputs[1]);
    if (!a || !b || !OfColumns(*b)) return std::nullopt;
    return NodeOf(node, "QLinearMatMul", "",
                  {a->bytes, a->scale, ZeroOf(*a, TypeOf(*a)), b->bytes, b->scale,
                   ZeroOf(*b, TypeOf(*b)), y.scale, ZeroOf(y, TypeOf(y))},
                  output);
  }

  // `y` null: floats.
  std::optional<OnnxNode> Gemm(const OnnxNode& node, const ScaledName* y,
                               const std::string& output) {
    const OnnxAttribute *const beta = node.Find("beta"), *const side = node.Find("transB");
    const OnnxAttribute *const alpha = node.Find("alpha"), *const left = node.Find("transA");
    const bool transposed = side != nullptr && side->i != 0;
    if ((beta != nullptr && beta->f != 1) || (alpha != nullptr && alpha->f != 1) ||
        (left != nullptr && left->i != 0)) {
      return std::nullopt;
    }
    const auto a = DequantisedByOne(node.inputs[0]);
    const auto b = Dequantised(node.inputs[1]);
    const Tensor* const weights = b ? Initialiser(b->bytes) : nullptr;
    if (!a || weights == nullptr || weights->shape().rank() != 2 || !OfColumns(*b, transposed)) {
      return std::nullopt;
    }
    const auto bias = Bias(node, 2, *a, *b);
    if (!bias) return std::nullopt;
    if (const Tensor* const each = Initialiser(*bias);
        !bias->empty() &&
        (each == nullptr || each->elements() != weights->shape()[transposed ? 0 : 1])) {
      return std::nullopt;
    }
    std::vector<std::string> inputs = {a->bytes, a->scale, ZeroOf(*a, TypeOf(*a)),
                                       b->bytes, b->scale, ZeroOf(*b, TypeOf(*b)),
                                       *bias};
    if (y != nullptr) inputs.insert(inputs.end(), {y->scale, ZeroOf(*y, TypeOf(*y))});
    OnnxNode joined = NodeOf(node, "QGemm", kMicrosoftDomain, std::move(inputs), output);
    std::erase_if(joined.attributes, [](const OnnxAttribute& each) { return each.name == "beta"; });
    return joined;
  }

  std::optional<OnnxNode> Pair(const OnnxNode& node, const ScaledName& y,
                               const std::string& output) {
    const auto a = DequantisedByOne(node.inputs[0]);
    const auto b = DequantisedByOne(node.inputs[1]);
    if (!a || !b || TypeOf(*a) != TypeOf(*b) || TypeOf(*a) != TypeOf(y)) return std::nullopt;
    return NodeOf(node, "QLinear" + node.op, kMicrosoftDomain,
                  {a->bytes, a->scale, ZeroOf(*a, TypeOf(*a)), b->bytes, b->scale,
                   ZeroOf(*b, TypeOf(*b)), y.scale, ZeroOf(y, TypeOf(y))},
                  output);
  }

  std::optional<OnnxNode> Concat(const OnnxNode& node, const ScaledName& y,
                                 const std::string& output) {
    std::vector<std::string> inputs = {y.scale, ZeroOf(y, TypeOf(y))};
    for (const std::string& name : node.inputs) {
      const auto part = DequantisedByOne(name);
      if (!part || TypeOf(*part) != TypeOf(y)) return std::nullopt;
      inputs.insert(inputs.end(), {part->bytes, part->scale, ZeroOf(*part, TypeOf(*part))});
    }
    return NodeOf(node, "QLinearConcat", kMicrosoftDomain, std::move(inputs), output);
  }

  // Bytes are handed on as they are, where both sides have one scale and one zero.
  std::optional<OnnxNode> Moved(const OnnxNode& node, const ScaledName& y,
                                const std::string& output) {
    const auto x = DequantisedByOne(node.inputs[0]);
    if (!x || TypeOf(*x) != TypeOf(y)) return std::nullopt;
    std::vector<std::string> inputs = node.inputs;
    inputs[0] = x->bytes;
    const bool same =
        SameNumber(x->scale, y.scale) && SameNumber(ZeroOf(*x, TypeOf(*x)), ZeroOf(y, TypeOf(y)));
    if (!same) return std::nullopt;
    return NodeOf(node, node.op, "", std::move(inputs), output);
  }

  bool SameNumber(const std::string& a, const std::string& b) const {
    const Tensor *const left = Initialiser(a), *const right = Initialiser(b);
    return a == b || (left->dtype() == right->dtype() &&
                      std::equal(left->data(), left->data() + left->bytes(), right->data(),
                                 right->data() + right->bytes()));
  }

  // Products of bytes that stay floats.
  void JoinFloats() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const OnnxNode& node = graph_.nodes[i];
      if (gone_[i] || !node.domain.empty() || node.op != "Gemm") continue;
      if (std::optional<OnnxNode> joined = Gemm(node, nullptr, node.outputs[0])) {
        Replace(std::move(*joined), i, i);
      }
    }
  }

  // What joined nodes read no longer, weights as floats among it.
  void DropUnread() {
    std::set<std::string> read = kept_;
    for (const OnnxNode& node : graph_.nodes) read.merge(NamesReadBy(node));
    std::erase_if(graph_.nodes, [&](const OnnxNode& node) {
      return node.op == "DequantizeLinear" && node.outputs.size() == 1 &&
             !read.contains(node.outputs[0]);
    });
  }

  OnnxModel& model_;
  OnnxGraph& graph_;
  std::map<std::string, size_t> makers_;
  std::map<std::string, std::vector<size_t>> readers_;
  std::set<std::string> kept_;
  std::vector<bool> gone_;
  std::vector<std::vector<OnnxNode>> instead_;  // before the node
  bool microsoft_ = false;
};

bool HasPairs(const OnnxGraph& graph) {
  const auto has = [&](std::string_view op) {
    return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                       [op](const OnnxNode& node) { return node.op == op; });
  };
  return has("DequantizeLinear") && (has("QuantizeLinear") || has("Gemm"));
}

}  // namespace

std::optional<OnnxModel> WithQuantisedNodes(const OnnxModel& model) {
  if (!HasPairs(model.graph)) return std::nullopt;
  OnnxModel joined = model;
  Joiner(joined).Run();
  return joined;
}

}  // namespace npumesh
