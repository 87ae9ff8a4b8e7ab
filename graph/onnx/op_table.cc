#include "graph/onnx/op_table.h"

#include <algorithm>
#include <tuple>

namespace npumesh {
namespace {

void LowerPair(const NodePair& pair, Lowering& at) {
  Lowering::Inputs inputs = {at.in(0)};
  for (int i = 1; i < at.inputs(); ++i) inputs.push_back(at.Given(i));
  Lowering::Attrs attrs;
  for (const auto& [ours, theirs, fallback] : pair.attrs) {
    attrs.emplace_back(std::string(ours), at.Float(theirs, fallback));
  }
  at.Out(0, at.Node(pair.type, inputs, attrs));
}

std::vector<OnnxOp> MakeRows() {
  std::vector<OnnxOp> rows;
  for (const auto add :
       {AddElementwiseRows, AddShapeRows, AddIndexRows, AddReduceRows, AddProductRows,
        AddConvolutionRows, AddPoolRows, AddNormRows, AddLossRows, AddImageRows, AddQuantRows,
        AddControlRows, AddSequenceRows, AddRecurrentRows, AddSignalRows, AddSelectRows,
        AddTextRows, AddTrainingRows, AddMicrosoftRows}) {
    add(rows);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const OnnxOp& a, const OnnxOp& b) {
    return std::tie(a.domain, a.name, a.since) < std::tie(b.domain, b.name, b.since);
  });
  return rows;
}

}  // namespace

OnnxOp Pair(std::string_view name, int since, std::string_view form, NodePair pair) {
  const auto lower = [pair](Lowering& at) { LowerPair(pair, at); };
  return {.name = name,
          .since = since,
          .lower = lower,
          .text = pair.type,
          .form = form,
          .pair = std::move(pair)};
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
