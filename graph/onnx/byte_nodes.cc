#include "graph/onnx/byte_nodes.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/onnx/rewrites.h"

namespace npumesh {
namespace {

// Nodes from bytes to bytes; more are no table of a sane model.
constexpr size_t kMostNodes = 64;
constexpr int64_t kAllBytes = 256;

// The nodes between the bytes `y` and the bytes `root`, in the order in which they were written.
class Chain {
 public:
  Chain(Lowering& at, Value y) : at_(at) { holds_ = Visit(y, true) && root_.has_value(); }

  bool holds() const { return holds_; }
  Value root() const { return *root_; }

  // y for x in the place of the root.
  Value Write(Value x) {
    std::map<Value, Value> written = {{*root_, x}};
    Value last = x;
    for (const NodeId id : nodes_) {
      const npumesh::Node node = *at_.emitter().maker({id, 0});  // a copy: nodes are written
      Lowering::Inputs inputs;
      for (const std::optional<Value>& input : node.inputs) {
        const auto known = input ? written.find(*input) : written.end();
        inputs.push_back(known == written.end() ? input : known->second);
      }
      Lowering::Attrs attrs;
      for (const auto& [name, value] : node.attrs) attrs.emplace_back(name, value);
      last = at_.Op(node.type, inputs, attrs);
      written[{id, 0}] = last;
    }
    return last;
  }

 private:
  bool Visit(Value value, bool is_y) {
    if (nodes_.contains(value.node)) return value.port == 0;
    const Tensor* const constant = at_.emitter().constant(value);
    if (constant != nullptr && constant->elements() == 1) return true;
    if (IsByte(at_.dtype(value)) && !is_y) {
      if (root_ && *root_ != value) return false;
      root_ = value;
      return true;
    }
    const npumesh::Node* const maker = at_.emitter().maker(value);
    if (maker == nullptr || value.port != 0 || constant != nullptr) return false;
    const Operator* const op = at_.emitter().registry().Find(maker->type);
    if (op == nullptr || !op->axes.elementwise() || !op->pure) return false;
    for (const std::optional<Value>& input : maker->inputs) {
      if (!input || !Visit(*input, false)) return false;
    }
    // Numbers have spread to nothing wider than the bytes.
    if (!root_ || at_.shape(value) != at_.shape(*root_)) return false;
    nodes_.insert(value.node);
    return nodes_.size() <= kMostNodes;
  }

  Lowering& at_;
  std::optional<Value> root_;
  std::set<NodeId> nodes_;
  bool holds_ = false;
};

// Every byte, in the order of its bits.
Tensor AllBytes(DataType dtype) {
  Tensor all = Tensor::Allocate({dtype, Shape({kAllBytes})});
  auto* const bytes = reinterpret_cast<uint8_t*>(all.mutable_data());
  for (int64_t i = 0; i < kAllBytes; ++i) bytes[i] = static_cast<uint8_t>(i);
  return all;
}

// The value before it was transposed, if it was.
OrderedValue Before(Lowering& at, Value x) {
  return at.OrderOf(x).value_or(OrderedValue{x, {}});
}

Value After(Lowering& at, Value y, const std::vector<int64_t>& perm) {
  return perm.empty() ? y : at.Transpose(y, perm);
}

}  // namespace

Value LookedUp(Lowering& at, Value y) {
  if (!at.ok() || !IsByte(at.dtype(y)) || at.emitter().constant(y) != nullptr) return y;
  Chain chain(at, y);
  if (!chain.holds()) return y;
  const Value table = chain.Write(at.emitter().Const(AllBytes(at.dtype(chain.root()))));
  if (!at.ok()) return y;
  const Tensor* const known = at.emitter().constant(table);
  if (known == nullptr || known->elements() != kAllBytes) return y;
  const auto* const bytes = reinterpret_cast<const uint8_t*>(known->data());
  bool same = known->dtype() == at.dtype(chain.root());
  for (int64_t i = 0; i < kAllBytes; ++i) same &= bytes[i] == i;
  if (same) return chain.root();
  const Value numbers = at.emitter().Const(*known);
  const auto [source, perm] = Before(at, chain.root());
  return After(at, at.Op("ByteTable", {source, numbers}), perm);
}

std::optional<Value> CombinedBytes(Lowering& at, const std::string& type, const ScaledBytes& a,
                                   const ScaledBytes& b, const ScaledBytes& y) {
  const DataType dtype = at.dtype(a.bytes);
  const auto one = [&](Value value, DataType wanted) {
    return at.dtype(value) == wanted && at.shape(value).is_static() &&
           at.shape(value).elements() == 1;
  };
  bool fits = IsByte(dtype) && at.dtype(b.bytes) == dtype && at.shape(a.bytes).is_static() &&
              at.shape(a.bytes) == at.shape(b.bytes);
  for (const ScaledBytes* side : {&a, &b, &y}) {
    fits = fits && one(side->scale, DataType::kFloat) && one(side->zero, dtype);
  }
  if (!fits) return std::nullopt;
  OrderedValue left = Before(at, a.bytes), right = Before(at, b.bytes);
  if (left.perm != right.perm) left = {a.bytes, {}}, right = {b.bytes, {}};
  return After(
      at, at.Op(type, {left.value, a.scale, a.zero, right.value, b.scale, b.zero, y.scale, y.zero}),
      left.perm);
}

Value JoinedParts(Lowering& at, const std::vector<Value>& parts, int64_t axis) {
  std::vector<Value> sources;
  std::vector<int64_t> perm;
  bool alike = true;
  for (const Value part : parts) {
    const OrderedValue before = Before(at, part);
    if (sources.empty()) perm = before.perm;
    alike &= !before.perm.empty() && before.perm == perm;
    sources.push_back(before.value);
  }
  if (!alike) return at.Concat(parts, axis);
  const int along = at.Axis(axis, static_cast<int>(perm.size()));
  if (!at.ok()) return {};
  return at.Transpose(at.Concat(sources, perm[static_cast<size_t>(along)]), perm);
}

}  // namespace npumesh
