#include "tests/models/moe_layer.h"

#include <numeric>

#include "tests/models/aten_graph.h"
#include "tests/models/plain_math.h"

namespace npumesh::models {
namespace {

constexpr const char* kExpertGroup = "hccl_world_group";

AttrValue Int(int64_t value) {
  return AttrValue::Int(value);
}

class MoeWriter {
 public:
  MoeWriter(DataType dtype, const Parameters& weights, int64_t tokens, int rank, int ranks)
      : dtype_(dtype),
        weights_(weights),
        tokens_(tokens),
        rank_(rank),
        ranks_(ranks),
        own_(kExperts / ranks),
        g_("moe") {}

  Result<Model> Write(MoeForm form) {
    x_ = g_.Input("x", {dtype_, {form == MoeForm::kDispatch ? tokens_ : -1, kMoeWidth}});
    const Value logits =
        g_.Addmm(Whole("gate.bias"), g_.ToCopy(x_, DataType::kFloat), g_.T(Whole("gate.w")));
    chosen_ = g_.Op("MoeGatingTopKSoftmax", {{"x", logits}}, {{"k", Int(kChoices)}});
    Value loads;
    const Value sum = form == MoeForm::kDispatch ? Dispatched(loads) : Exchanged(loads);
    g_.Output({g_.Add(x_, sum), loads});
    return g_.Build();
  }

 private:
  Value Whole(const std::string& name) { return g_.Weight(name, TensorOf(weights_.at(name))); }
  // The experts of this rank.
  Value Own(const std::string& name) {
    const Parameter& whole = weights_.at(name);
    const int64_t each = whole.shape.elements() / kExperts;
    const auto first = whole.values.begin() + rank_ * own_ * each;
    return g_.Weight(name, TensorOf({own_, whole.shape[1], whole.shape[2]},
                                    {first, first + own_ * each}, dtype_));
  }
  Value Ids() { return g_.Port(chosen_, 1); }

  // swiglu(x w1) w2 of rows that are sorted by expert.
  Value Experts(Value x, Value counts) {
    const Value inner = Grouped(x, Own("w1"), counts);
    return Grouped(g_.Op("SwiGlu", {{"x", inner}}, {{"dim", Int(-1)}}), Own("w2"), counts);
  }
  // Lists that are absent hold one tensor of no elements.
  Value Grouped(Value x, Value w, Value counts) {
    std::vector<GraphBuilder::Input> inputs = {{"x0", x}, {"weight0", w}};
    for (const char* list :
         {"bias0", "scale0", "offset0", "antiquant_scale0", "antiquant_offset0"}) {
      const DataType dtype = std::string_view(list) == "scale0" ? DataType::kUint64 : dtype_;
      inputs.emplace_back(list, g_.Weight("Const", TensorOf({0}, {}, dtype)));
    }
    inputs.emplace_back("group_list", counts);
    return g_.Op("GroupedMatmul", std::move(inputs),
                 {{"split_item", Int(3)},
                  {"dtype", Int(-1)},
                  {"group_type", Int(0)},
                  {"group_list_type", Int(1)}},
                 1);
  }

  Value Dispatched(Value& loads) {
    std::vector<GraphBuilder::Attr> place = {{"group_ep", AttrValue::String(kExpertGroup)},
                                             {"ep_world_size", Int(ranks_)},
                                             {"ep_rank_id", Int(rank_)},
                                             {"moe_expert_num", Int(kExperts)},
                                             {"shared_expert_num", Int(1)},
                                             {"global_bs", Int(0)}};
    std::vector<GraphBuilder::Attr> dispatch = place;
    dispatch.emplace_back("expert_token_nums_type", Int(1));
    const Value sent =
        g_.Op("MoeDistributeDispatchV2", {{"x", x_}, {"expert_ids", Ids()}}, std::move(dispatch));
    loads = g_.Port(sent, 3);
    return g_.Op("MoeDistributeCombineV2",
                 {{"expand_x", Experts(sent, loads)},
                  {"expert_ids", Ids()},
                  {"assist_info_for_combine", g_.Port(sent, 2)},
                  {"ep_send_counts", g_.Port(sent, 4)},
                  {"expert_scales", chosen_},
                  {"tp_send_counts", g_.Port(sent, 5)}},
                 std::move(place));
  }

  // Elements that go to or come from each rank, of `counts` [ranks, experts of a rank] tokens; and
  // where they begin.
  struct Blocks {
    Value counts, begins;
  };
  Blocks BlocksOf(Value counts) {
    const Value elements = g_.ToCopy(
        g_.Op("Mul", {{"x1", g_.Sum(counts, {1})}, {"x2", g_.Int(kMoeWidth)}}), DataType::kInt64);
    const Value begins = g_.Op("Cumsum", {{"x", elements}, {"axis", g_.Int(0)}},
                               {{"exclusive", AttrValue::Bool(true)}});
    return {elements, begins};
  }
  Value Exchange(Value rows, const Blocks& send, const Blocks& receive) {
    const Value flat = g_.Op("HcomAllToAllV",
                             {{"send_data", g_.View(rows, {-1})},
                              {"send_counts", send.counts},
                              {"send_displacements", send.begins},
                              {"recv_counts", receive.counts},
                              {"recv_displacements", receive.begins}},
                             {{"group", AttrValue::String(kExpertGroup)}});
    return g_.View(g_.Clone(flat), {-1, kMoeWidth});
  }

  Value Exchanged(Value& loads) {
    const Value routed = g_.Op("MoeInitRoutingV3", {{"x", x_}, {"expert_idx", Ids()}},
                               {{"active_num", Int(-1)},
                                {"expert_num", Int(kExperts)},
                                {"expert_tokens_num_type", Int(1)},
                                {"expert_tokens_num_flag", AttrValue::Bool(true)},
                                {"active_expert_range", AttrValue::Ints({0, kExperts})}});
    const Value counts = g_.Port(routed, 2);
    const Value theirs = g_.Clone(
        g_.Op("HcomAllToAll", {{"x", counts}}, {{"group", AttrValue::String(kExpertGroup)}}));
    const Value per_rank = g_.View(theirs, {ranks_, own_});
    const Blocks send = BlocksOf(g_.View(counts, {ranks_, own_}));
    const Blocks receive = BlocksOf(per_rank);
    const Value sorted = g_.Op("MoeReRouting", {{"tokens", Exchange(routed, send, receive)},
                                                {"expert_token_num_per_rank", per_rank}});
    loads = g_.Port(sorted, 3);
    const Value made = Experts(sorted, loads);
    // argsort of where rows came from puts them back.
    const Value back = g_.Op("Sort", {{"x", g_.Port(sorted, 2)}}, {{"axis", Int(-1)}});
    const Value rows =
        g_.Op("GatherV2", {{"x", made}, {"indices", g_.Port(back, 1)}, {"axis", g_.Int(0)}});
    return g_.Op("MoeFinalizeRoutingV2",
                 {{"expanded_x", Exchange(rows, receive, send)},
                  {"expanded_row_idx", g_.Port(routed, 1)},
                  {"scales", g_.ToCopy(chosen_, dtype_)},
                  {"expert_idx", Ids()}},
                 {{"drop_pad_mode", Int(2)}});
  }

  DataType dtype_;
  const Parameters& weights_;
  int64_t tokens_;
  int rank_, ranks_;
  int64_t own_;
  AtenGraph g_;
  Value x_, chosen_;
};

// swiglu(x w1) w2 of expert `e`; w1 and w2 as they are stored, [in, out].
std::vector<double> ExpertOf(const Parameters& weights, int64_t e, const double* x) {
  const std::vector<double>& w1 = weights.at("w1").values;
  const std::vector<double>& w2 = weights.at("w2").values;
  std::vector<double> both(At(2 * kMoeInner)), y(At(kMoeWidth));
  for (int64_t o = 0; o < 2 * kMoeInner; ++o) {
    for (int64_t i = 0; i < kMoeWidth; ++i) {
      both[At(o)] += x[i] * w1[At((e * kMoeWidth + i) * 2 * kMoeInner + o)];
    }
  }
  for (int64_t i = 0; i < kMoeInner; ++i) {
    const double inner = SiluOf(both[At(i)]).value * both[At(i + kMoeInner)];
    for (int64_t o = 0; o < kMoeWidth; ++o) {
      y[At(o)] += inner * w2[At((e * kMoeInner + i) * kMoeWidth + o)];
    }
  }
  return y;
}

}  // namespace

Parameters MoeWeights(DataType dtype, const std::vector<int64_t>& starved, uint64_t seed) {
  Parameters p(seed);
  p.Add("gate.w", {kExperts, kMoeWidth}, 1);
  p.Add("gate.bias", {kExperts}, 0.5);
  for (const int64_t expert : starved) p.at("gate.bias").values[At(expert)] = -100;
  p.Add("w1", {kExperts, kMoeWidth, 2 * kMoeInner}, 0.5);
  p.Add("w2", {kExperts, kMoeInner, kMoeWidth}, 0.5);
  for (const char* name : {"w1", "w2"}) {
    p.at(name).values = ValuesIn(TensorOf(p.at(name), dtype));
  }
  return p;
}

std::vector<double> MoeTokens(DataType dtype, int64_t tokens, uint64_t seed) {
  Parameters noise(seed);
  noise.Add("x", {tokens, kMoeWidth}, 1);
  return ValuesIn(TensorOf(noise.at("x"), dtype));
}

Result<Model> BuildMoeLayer(MoeForm form, DataType dtype, const Parameters& weights, int64_t tokens,
                            int rank, int ranks) {
  return MoeWriter(dtype, weights, tokens, rank, ranks).Write(form);
}

MoeResult MoeReference(const Parameters& weights, const std::vector<double>& tokens) {
  const ParameterReals p = weights.Constants();
  const Reals x(tokens.begin(), tokens.end());
  const Reals probabilities = SoftmaxOf(
      WithBias(LinearOf(x, p.at("gate.w"), kMoeWidth, kExperts), p.at("gate.bias")), kExperts);
  MoeResult result{tokens, std::vector<int64_t>(At(kExperts)), 1};
  for (size_t t = 0; t < tokens.size() / At(kMoeWidth); ++t) {
    const Real* const of = &probabilities[t * At(kExperts)];
    std::vector<int64_t> order(At(kExperts));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return of[a].value > of[b].value; });
    for (int64_t k = 0; k < kChoices; ++k) {
      const int64_t expert = order[At(k)];
      ++result.loads[At(expert)];
      result.narrowest = std::min(result.narrowest, of[expert].value - of[order[At(k + 1)]].value);
      const std::vector<double> made = ExpertOf(weights, expert, &tokens[t * At(kMoeWidth)]);
      for (size_t i = 0; i < At(kMoeWidth); ++i) {
        result.y[t * At(kMoeWidth) + i] += of[expert].value * made[i];
      }
    }
  }
  return result;
}

}  // namespace npumesh::models
