#include "graph/onnx/op_table.h"

#include <algorithm>
#include <tuple>

namespace npumesh {
namespace {

// The attribute of a node of ours that an attribute of ONNX gives.
AttrValue Translated(const Lowering& at, const AttrRule& rule) {
  const OnnxAttribute* const given = at.node().Find(rule.theirs);
  if (given == nullptr) return rule.fallback;
  // Ours may be a bool where ONNX has an int.
  if (rule.fallback.get<bool>() != nullptr) return AttrValue::Bool(given->i != 0);
  switch (given->kind) {
    case OnnxAttribute::Kind::kFloat:
      return AttrValue::Float(given->f);
    case OnnxAttribute::Kind::kInt:
      return AttrValue::Int(given->i);
    case OnnxAttribute::Kind::kString:
      return AttrValue::String(given->s);
    case OnnxAttribute::Kind::kInts:
      return AttrValue::Ints(given->ints);
    case OnnxAttribute::Kind::kFloats:
      return AttrValue::Floats(given->floats);
    default:
      return rule.fallback;
  }
}

std::vector<OnnxOp> MakeRows() {
  std::vector<OnnxOp> rows;
  for (const auto add :
       {AddElementwiseRows, AddShapeRows, AddIndexRows, AddReduceRows, AddProductRows,
        AddConvolutionRows, AddPoolRows, AddNormRows, AddLossRows, AddImageRows, AddQuantRows,
        AddControlRows, AddSequenceRows, AddRecurrentRows, AddSignalRows, AddSelectRows,
        AddTextRows, AddTrainingRows}) {
    add(rows);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const OnnxOp& a, const OnnxOp& b) {
    return std::tie(a.domain, a.name, a.since) < std::tie(b.domain, b.name, b.since);
  });
  return rows;
}

}  // namespace

std::function<void(Lowering&)> OneNode(std::string type, std::vector<std::string> ports,
                                       std::vector<AttrRule> attrs) {
  return
      [type = std::move(type), ports = std::move(ports), rules = std::move(attrs)](Lowering& at) {
        Lowering::Inputs inputs;
        for (size_t i = 0; i < ports.size(); ++i) {
          const auto input = static_cast<int>(i);
          if (at.has(input) || i == 0) inputs.emplace_back(ports[i], at.in(input));
        }
        Lowering::Attrs attrs;
        for (const AttrRule& rule : rules) attrs.emplace_back(rule.ours, Translated(at, rule));
        at.Out(0, at.Node(type, std::move(inputs), std::move(attrs)));
      };
}

OnnxOp Row(std::string_view name, int since, std::string_view form, std::string type,
           std::vector<std::string> ports, std::vector<AttrRule> attrs) {
  std::string text = type;
  return {name, since, OneNode(std::move(type), std::move(ports), std::move(attrs)),
          std::move(text), form};
}

const std::vector<OnnxOp>& OnnxOps() {
  static const auto* const rows = new std::vector<OnnxOp>(MakeRows());
  return *rows;
}

const OnnxOp* FindOnnxOp(std::string_view domain, std::string_view name, int64_t version) {
  const std::vector<OnnxOp>& rows = OnnxOps();
  const auto [begin, end] =
      std::equal_range(rows.begin(), rows.end(), OnnxOp{.name = name, .domain = domain},
                       [](const OnnxOp& a, const OnnxOp& b) {
                         return std::tie(a.domain, a.name) < std::tie(b.domain, b.name);
                       });
  const OnnxOp* found = nullptr;
  for (auto row = begin; row != end; ++row) {
    if (row->since <= version) found = &*row;
  }
  return found;
}

}  // namespace npumesh
