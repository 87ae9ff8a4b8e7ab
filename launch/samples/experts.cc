// A layer with a mixture of experts on two ranks, each of which has its own tokens and half of the
// experts: tokens travel to their experts and back by HcomAllToAllV, with counts that the graph
// computes.
//
//   y = x + sum of the two best experts e of each token: p_e * swiglu(x w1_e) w2_e
//   p = softmax(x gate)
#include <algorithm>
#include <numeric>

#include "graph/ir/graph_builder.h"
#include "launch/samples/plain_table.h"
#include "launch/samples/sample_content.h"

namespace npumesh {
namespace {

constexpr int kExpertRanks = 2;
constexpr int64_t kAllExperts = 4, kOwnExperts = kAllExperts / kExpertRanks, kBest = 2;
constexpr int64_t kTokenWidth = 16, kExpertWidth = 8;
constexpr int64_t kTokens[] = {6, 3};  // by rank
constexpr const char* kExpertRanksGroup = "hccl_world_group";

struct ExpertWeights {
  Table gate;
  std::vector<Table> w1, w2;  // by expert

  static ExpertWeights Random() {
    ExpertWeights weights;
    weights.gate = Table::Random(kTokenWidth, kAllExperts, 1, 61);
    for (uint64_t e = 0; e < kAllExperts; ++e) {
      weights.w1.push_back(Table::Random(kTokenWidth, 2 * kExpertWidth, 0.5, 70 + e));
      weights.w2.push_back(Table::Random(kExpertWidth, kTokenWidth, 0.5, 80 + e));
    }
    return weights;
  }
};

class ExpertsWriter {
 public:
  ExpertsWriter(const ExpertWeights& weights, int rank) : weights_(weights), rank_(rank) {}

  Result<Model> Write() {
    const Value x = g_.Data("x", {DataType::kFloat, {-1, kTokenWidth}});
    const Value gate = g_.Const("gate", TensorOf(weights_.gate));
    const Value logits = g_.Op("MatMul", {{"x1", x}, {"x2", gate}}, {}, "logits");
    const Value chosen =
        g_.Op("MoeGatingTopKSoftmax", {{"x", logits}}, {{"k", AttrValue::Int(kBest)}}, "chosen", 3);
    const Value ids = g_.Port(chosen, 1);
    const Value routed = Routed(x, ids);
    const Value counts = g_.Port(routed, 2);
    const Value theirs = g_.Op("HcomAllToAll", {{"x", counts}},
                               {{"group", AttrValue::String(kExpertRanksGroup)}}, "their_counts");
    const Value per_rank = Reshaped(theirs, {kExpertRanks, kOwnExperts});
    const Blocks send = BlocksOf(Reshaped(counts, {kExpertRanks, kOwnExperts}));
    const Blocks receive = BlocksOf(per_rank);
    const Value sorted = g_.Op("MoeReRouting",
                               {{"tokens", Exchange(routed, send, receive, "to_experts")},
                                {"expert_token_num_per_rank", per_rank}},
                               {}, "sorted", 4);
    const Value made = Experts(sorted, g_.Port(sorted, 3));
    const Value home = Exchange(Unsorted(made, g_.Port(sorted, 2)), receive, send, "from_experts");
    const Value sum = g_.Op("MoeFinalizeRoutingV2",
                            {{"expanded_x", home},
                             {"expanded_row_idx", g_.Port(routed, 1)},
                             {"scales", chosen},
                             {"expert_idx", ids}},
                            {{"drop_pad_mode", AttrValue::Int(2)}}, "weighted");
    g_.Output({g_.Op("Add", {{"x1", x}, {"x2", sum}}, {}, "y"), g_.Port(sorted, 3)});
    return g_.Build();
  }

 private:
  // Elements for or from each rank, and where they begin.
  struct Blocks {
    Value counts, begins;
  };

  Value Reshaped(Value x, std::vector<int64_t> shape) {
    return g_.Op("Reshape", {{"x", x}, {"shape", g_.Ints(std::move(shape))}});
  }

  // Tokens sorted by expert, where they came from, and how many each expert gets.
  Value Routed(Value x, Value ids) {
    return g_.Op("MoeInitRoutingV3", {{"x", x}, {"expert_idx", ids}},
                 {{"active_num", AttrValue::Int(-1)},
                  {"expert_num", AttrValue::Int(kAllExperts)},
                  {"expert_tokens_num_type", AttrValue::Int(1)},
                  {"expert_tokens_num_flag", AttrValue::Bool(true)},
                  {"active_expert_range", AttrValue::Ints({0, kAllExperts})}},
                 "routed", 4);
  }

  // Of `counts` [ranks, experts of a rank] tokens.
  Blocks BlocksOf(Value counts) {
    const Value tokens = g_.Op("ReduceSum", {{"x", counts}, {"axes", g_.Ints({1})}});
    const Value elements = g_.Op("Mul", {{"x1", tokens}, {"x2", g_.Int(kTokenWidth)}});
    return {elements, g_.Op("Cumsum", {{"x", elements}, {"axis", g_.Int(0)}},
                            {{"exclusive", AttrValue::Bool(true)}})};
  }

  Value Exchange(Value rows, const Blocks& send, const Blocks& receive, const char* name) {
    const Value flat = g_.Op("HcomAllToAllV",
                             {{"send_data", Reshaped(rows, {-1})},
                              {"send_counts", send.counts},
                              {"send_displacements", send.begins},
                              {"recv_counts", receive.counts},
                              {"recv_displacements", receive.begins}},
                             {{"group", AttrValue::String(kExpertRanksGroup)}}, name);
    return Reshaped(flat, {-1, kTokenWidth});
  }

  // swiglu(x w1) w2 of rows that are sorted by expert, `loads` of each.
  Value Experts(Value x, Value loads) {
    const Value inner = Grouped(x, Own("w1", weights_.w1), loads, "experts_w1");
    const Value gated = g_.Op("SwiGlu", {{"x", inner}}, {{"dim", AttrValue::Int(-1)}});
    return Grouped(gated, Own("w2", weights_.w2), loads, "experts_w2");
  }

  // Lists that are absent hold one tensor without elements, as TorchAir writes them.
  Value Grouped(Value x, Value w, Value loads, const char* name) {
    std::vector<GraphBuilder::Input> inputs = {{"x0", x}, {"weight0", w}};
    for (const std::string list :
         {"bias", "scale", "offset", "antiquant_scale", "antiquant_offset"}) {
      const DataType dtype = list == "scale" ? DataType::kUint64 : DataType::kFloat;
      inputs.emplace_back(list + "0", g_.Const(fmt::format("{}.no_{}", name, list),
                                               Tensor::Allocate({dtype, {0}})));
    }
    inputs.emplace_back("group_list", loads);
    return g_.Op("GroupedMatmul", std::move(inputs),
                 {{"split_item", AttrValue::Int(3)},
                  {"dtype", AttrValue::Int(-1)},
                  {"group_type", AttrValue::Int(0)},
                  {"group_list_type", AttrValue::Int(1)}},
                 name);
  }

  // Rows in the order in which they arrived: argsort of where they came from.
  Value Unsorted(Value rows, Value from) {
    const Value back = g_.Op("Sort", {{"x", from}}, {{"axis", AttrValue::Int(-1)}}, "back", 2);
    return g_.Op("GatherV2", {{"x", rows}, {"indices", g_.Port(back, 1)}, {"axis", g_.Int(0)}});
  }

  // The experts of this rank in one tensor.
  Value Own(const char* name, const std::vector<Table>& all) {
    const int64_t first = rank_ * kOwnExperts;
    const Table& one = all[0];
    Table own{kOwnExperts * one.rows, one.columns, {}};
    for (int64_t e = first; e < first + kOwnExperts; ++e) {
      const std::vector<double>& values = all[static_cast<size_t>(e)].values;
      own.values.insert(own.values.end(), values.begin(), values.end());
    }
    return g_.Const(name, TensorOf(own, {kOwnExperts, one.rows, one.columns}));
  }

  const ExpertWeights& weights_;
  int rank_;
  GraphBuilder g_{"mixture_of_experts"};
};

// What expert `e` makes of one token [1, width].
Table OfExpert(const ExpertWeights& weights, size_t e, const Table& token) {
  const Table both = Product(token, weights.w1[e]);
  Table inner = Each(ColumnsOf(both, 0, kExpertWidth), Silu);
  for (int64_t i = 0; i < kExpertWidth; ++i) inner.at(0, i) *= both.at(0, kExpertWidth + i);
  return Product(inner, weights.w2[e]);
}

// The layer on the tokens of one rank; adds to the tokens of each expert.
Table PlainExperts(const ExpertWeights& weights, const Table& x, std::vector<int64_t>& loads) {
  const Table probabilities = SoftmaxOf(Product(x, weights.gate));
  Table y = x;
  for (int64_t row = 0; row < x.rows; ++row) {
    std::vector<size_t> order(kAllExperts);
    std::iota(order.begin(), order.end(), 0);
    const auto of = [&](size_t e) { return probabilities.at(row, static_cast<int64_t>(e)); };
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return of(a) > of(b); });
    Table token = Table::Zeros(1, kTokenWidth);
    for (int64_t i = 0; i < kTokenWidth; ++i) token.at(0, i) = x.at(row, i);
    for (size_t best = 0; best < kBest; ++best) {
      const size_t e = order[best];
      ++loads[e];
      const Table made = OfExpert(weights, e, token);
      for (int64_t i = 0; i < kTokenWidth; ++i) y.at(row, i) += of(e) * made.at(0, i);
    }
  }
  return y;
}

}  // namespace

Result<SampleContent> MakeExperts() {
  const ExpertWeights weights = ExpertWeights::Random();
  SampleContent content;
  SampleStep step;
  std::vector<int64_t> loads(kAllExperts);
  for (int rank = 0; rank < kExpertRanks; ++rank) {
    NPUMESH_ASSIGN_OR_RETURN(Model model, ExpertsWriter(weights, rank).Write());
    content.models.push_back(std::move(model));
    const Table x = Table::Random(kTokens[rank], kTokenWidth, 1, 90 + static_cast<uint64_t>(rank));
    step.inputs.push_back({{0, TensorOf(x)}});
    step.goldens.push_back({{0, TensorOf(PlainExperts(weights, x, loads))}});
  }
  for (int rank = 0; rank < kExpertRanks; ++rank) {
    const auto own = loads.begin() + rank * kOwnExperts;
    step.goldens[static_cast<size_t>(rank)][1] =
        Tensor::FromVector<int64_t>({DataType::kInt64, {kOwnExperts}}, {own, own + kOwnExperts});
  }
  content.steps.push_back(std::move(step));
  return content;
}

}  // namespace npumesh
