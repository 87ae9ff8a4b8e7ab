#include "graph/onnx/operand_ranks.h"

#include <algorithm>

namespace npumesh {
namespace {

struct RankRule {
  std::string_view op;
  std::vector<int> ranks;       // by operand; -1: nothing is said
  std::vector<int> alike = {};  // operands that have one rank
};

const std::vector<RankRule>& Rules() {
  static const auto* const rules = new std::vector<RankRule>{
      {"Concat", {}, {0}},  // and all others
      {"Conv", {}, {0, 1}},
      {"ConvInteger", {}, {0, 1}},
      {"ConvTranspose", {}, {0, 1}},
      {"DepthToSpace", {4}},
      {"GRU", {3, 3, 3, 2, 1, 3}},
      {"GatherElements", {}, {0, 1}},
      {"Gemm", {2, 2}},
      {"GridSample", {}, {0, 1}},
      {"LSTM", {3, 3, 3, 2, 1, 3, 3, 2}},
      {"MaxUnpool", {}, {0, 1}},
      {"NonMaxSuppression", {3, 3}},
      {"QLinearConv", {}, {0, 3}},
      {"RNN", {3, 3, 3, 2, 1, 3}},
      {"RoiAlign", {4, 2, 1}},
      {"Scatter", {}, {0, 1, 2}},
      {"ScatterElements", {}, {0, 1, 2}},
      {"SpaceToDepth", {4}},
      {"TopK", {-1, 1}},
  };
  return *rules;
}

void HintRank(Lowering& at, int input, int64_t rank) {
  if (rank < 0 || !at.has(input) || at.operand(input).kind != OnnxKind::kTensor || !at.ok()) return;
  const Value value = at.in(input);
  constexpr int64_t kMostRank = 64;
  if (at.shape(value).has_rank() || rank > kMostRank) return;
  at.emitter().Hint(value, {DataType::kUndefined,
                            Shape(std::vector<int64_t>(static_cast<size_t>(rank), kUnknownDim))});
}

int64_t RankOf(Lowering& at, int input) {
  if (!at.has(input) || at.operand(input).items.size() != 1) return -1;
  return at.shape(at.operand(input).items[0]).rank();
}

// How many elements a list has that says something of each dimension; -1: it is not there or open.
int64_t LengthOf(Lowering& at, int input) {
  return RankOf(at, input) == 1 ? at.KnownSize(at.in(input), 0) : -1;
}

// Operators with a list that has an entry for each dimension.
void HintByLists(Lowering& at) {
  const std::string& op = at.node().op;
  const auto length = [&](std::string_view attribute) {
    return static_cast<int64_t>(at.IntList(attribute).size());
  };
  if (at.has_attr("kernel_shape")) HintRank(at, 0, length("kernel_shape") + 2);
  if (op == "Transpose" && at.has_attr("perm")) HintRank(at, 0, length("perm"));
  if (op == "Tile") HintRank(at, 0, LengthOf(at, 1));
  if (op == "Upsample") HintRank(at, 0, LengthOf(at, 1));
  if (op == "Resize" && !at.has_attr("axes")) {
    for (const int list : {at.version() < 11 ? 1 : 2, 3}) {
      if (LengthOf(at, list) > 0) HintRank(at, 0, LengthOf(at, list));
    }
  }
  if (op == "Pad" && at.has_attr("pads")) HintRank(at, 0, length("pads") / 2);
  if (op == "Pad" && LengthOf(at, 1) > 0 && !at.has(3)) HintRank(at, 0, LengthOf(at, 1) / 2);
}

}  // namespace

void HintRanks(Lowering& at) {
  if (!at.node().domain.empty()) return;
  HintByLists(at);
  const auto rule = std::ranges::find(Rules(), at.node().op, &RankRule::op);
  if (rule == Rules().end()) return;
  for (size_t i = 0; i < rule->ranks.size(); ++i) {
    HintRank(at, static_cast<int>(i), rule->ranks[i]);
  }
  std::vector<int> alike = rule->alike;
  for (int i = 1; rule->op == "Concat" && i < at.inputs(); ++i) alike.push_back(i);
  int64_t rank = -1;
  for (const int input : alike) rank = std::max(rank, RankOf(at, input));
  for (const int input : alike) HintRank(at, input, rank);
}

}  // namespace npumesh
