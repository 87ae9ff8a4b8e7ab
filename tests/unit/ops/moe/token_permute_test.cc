// Permuting tokens by expert and back, with and without a routing map, against the definitions; the
// gradients by the law that holds for linear maps: <f(x), dy> = <x, f'(dy)>. All values are small
// integers, so both sides are exact.
#include <numeric>

#include "tests/unit/op_reference.h"
#include "tests/unit/op_values.h"
#include "tests/unit/ops/moe/moe_values.h"

namespace npumesh {
namespace {

int64_t Drawn(Random& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random.Bits() % static_cast<uint64_t>(most - least + 1));
}

Tensor DrawnTensor(Random& random, DataType dtype, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  for (double& value : values) value = static_cast<double>(Drawn(random, -4, 4));
  return FromDoubles(dtype, shape, values);
}

double Dot(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = ToDoubles(a), y = ToDoubles(b);
  EXPECT_EQ(x.size(), y.size());
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

std::vector<double> RowOf(const Tensor& tensor, int64_t row) {
  const auto width = static_cast<size_t>(tensor.shape()[1]), at = static_cast<size_t>(row);
  const std::vector<double> all = ToDoubles(tensor);
  return {all.begin() + static_cast<std::ptrdiff_t>(at * width),
          all.begin() + static_cast<std::ptrdiff_t>((at + 1) * width)};
}

std::vector<int64_t> Order(const std::vector<int64_t>& keys) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<size_t>(a)] < keys[static_cast<size_t>(b)];
  });
  return order;
}

std::vector<int64_t> Integers64(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (const double value : ToDoubles(tensor)) values.push_back(static_cast<int64_t>(value));
  return values;
}

const DataType kTokenTypes[] = {kF32, kF16, kBf16};

TEST(MoeTokenPermute, RandomRoutes) {
  Random random(20261127);
  for (int turn = 0; turn < 120; ++turn) {
    const int64_t tokens = Drawn(random, 1, 7), k = Drawn(random, 1, 4),
                  width = Drawn(random, 1, 5);
    const DataType dtype = kTokenTypes[turn % 3];
    const bool flat = k == 1 && turn % 2 == 0;
    std::vector<double> ids;
    for (int64_t i = 0; i < tokens * k; ++i)
      ids.push_back(static_cast<double>(Drawn(random, 0, 5)));
    const Tensor x = DrawnTensor(random, dtype, {tokens, width});
    const Tensor indices = FromDoubles(turn % 5 == 0 ? DataType::kInt64 : DataType::kInt32,
                                       flat ? Shape{tokens} : Shape{tokens, k}, ids);
    const int64_t wanted = turn % 4 == 0 ? Drawn(random, -2, tokens * k + 2) : 0;
    const int64_t rows =
        wanted > 0 ? std::min(wanted, tokens * k) : std::max<int64_t>(0, wanted + tokens * k);
    const std::vector<Tensor> out =
        Results({.type = "MoeTokenPermute",
                 .inputs = {{"tokens", x}, {"indices", indices}},
                 .attrs = {{"num_out_tokens", AttrValue::Int(wanted)}}});
    const std::vector<int64_t> order = Order(Integers64(indices)), places = Order(order);
    ASSERT_EQ(out[0].type(), (TensorType{dtype, {rows, width}}));
    ASSERT_EQ(out[1].type(), (TensorType{DataType::kInt32, {tokens * k}}));
    EXPECT_EQ(Integers64(out[1]), places);
    for (int64_t r = 0; r < rows; ++r) {
      EXPECT_EQ(RowOf(out[0], r), RowOf(x, order[static_cast<size_t>(r)] / k)) << turn;
    }
    const Tensor dy = DrawnTensor(random, dtype, {rows, width});
    const Tensor grad =
        Results({.type = "MoeTokenPermuteGrad",
                 .inputs = {{"permuted_output_grad", dy}, {"sorted_indices", out[1]}},
                 .attrs = {{"num_topk", AttrValue::Int(k)}}})[0];
    EXPECT_EQ(grad.type(), x.type());
    EXPECT_EQ(Dot(out[0], dy), Dot(x, grad)) << turn;
  }
}

TEST(MoeTokenUnpermute, RandomRoutes) {
  Random random(20261128);
  for (int turn = 0; turn < 120; ++turn) {
    const int64_t tokens = Drawn(random, 1, 7), width = Drawn(random, 1, 5);
    const bool weighs = turn % 3 != 0;
    const int64_t k = weighs ? Drawn(random, 1, 4) : 1;
    const DataType dtype = kTokenTypes[turn % 3], probs_type = turn % 2 == 0 ? dtype : kF32;
    std::vector<int64_t> keys;
    for (int64_t i = 0; i < tokens * k; ++i) keys.push_back(Drawn(random, 0, 5));
    const std::vector<int64_t> places = Order(Order(keys));
    // Some rows were dropped.
    const int64_t rows = turn % 4 == 0 ? Drawn(random, 1, tokens * k) : tokens * k;
    const Tensor permuted = DrawnTensor(random, dtype, {rows, width});
    const Tensor probs = DrawnTensor(random, probs_type, {tokens, k});
    OpCall call = {.type = "MoeTokenUnpermute",
                   .inputs = {{"permuted_tokens", permuted},
                              {"sorted_indices",
                               FromDoubles(DataType::kInt32, {tokens * k},
                                           std::vector<double>(places.begin(), places.end()))}}};
    if (weighs) call.inputs.push_back({"probs", probs});
    const Tensor y = Results(call)[0];
    ASSERT_EQ(y.type(), (TensorType{dtype, {tokens, width}}));
    for (int64_t t = 0; t < tokens; ++t) {
      std::vector<double> sum(static_cast<size_t>(width));
      for (int64_t j = 0; j < k; ++j) {
        const auto entry = static_cast<size_t>(t * k + j);
        if (places[entry] >= rows) continue;
        const std::vector<double> row = RowOf(permuted, places[entry]);
        for (size_t i = 0; i < row.size(); ++i) {
          sum[i] += row[i] * (weighs ? ToDoubles(probs)[entry] : 1);
        }
      }
      EXPECT_EQ(RowOf(y, t), sum) << turn;
    }
    const Tensor dy = DrawnTensor(random, dtype, {tokens, width});
    OpCall backward = {.type = "MoeTokenUnpermuteGrad", .inputs = call.inputs};
    backward.inputs.push_back({"unpermuted_tokens_grad", dy});
    const std::vector<Tensor> grad = Results(backward);
    EXPECT_EQ(grad[0].type(), permuted.type());
    EXPECT_EQ(Dot(y, dy), Dot(permuted, grad[0])) << turn;
    if (weighs) {
      EXPECT_EQ(grad[1].type(), probs.type());
      EXPECT_EQ(Dot(y, dy), Dot(probs, grad[1])) << turn;
    } else {
      EXPECT_EQ(grad[1].shape(), Shape{0});
    }
  }
}

// A map in which each token goes to k experts; with a capacity to any number.
Tensor DrawnMap(Random& random, int64_t tokens, int64_t experts, int64_t k) {
  std::vector<double> map(static_cast<size_t>(tokens * experts));
  for (int64_t t = 0; t < tokens; ++t) {
    for (int64_t left = k; left > 0;) {
      double& place = map[static_cast<size_t>(t * experts + Drawn(random, 0, experts - 1))];
      if (place != 0) continue;
      place = 1;
      --left;
    }
  }
  return FromDoubles(random.Bits() % 2 == 0 ? kBool : kInt8, {tokens, experts}, map);
}

// Tokens of the rows, experts one after the other, and the rows of the entries by token.
struct MapRoutes {
  std::vector<int64_t> tokens, experts;
};

MapRoutes RoutesOf(const Tensor& map, int64_t capacity) {
  const int64_t tokens = map.shape()[0], experts = map.shape()[1];
  MapRoutes routes;
  for (int64_t e = 0; e < experts; ++e) {
    std::vector<int64_t> chosen, others;
    for (int64_t t = 0; t < tokens; ++t) {
      const bool goes = ToDoubles(map)[static_cast<size_t>(t * experts + e)] != 0;
      (goes ? chosen : others).push_back(t);
    }
    if (capacity > 0) {
      chosen.insert(chosen.end(), others.begin(), others.end());
      chosen.resize(static_cast<size_t>(capacity));
    }
    routes.tokens.insert(routes.tokens.end(), chosen.begin(), chosen.end());
    routes.experts.resize(routes.tokens.size(), e);
  }
  return routes;
}

TEST(MoeTokenPermuteWithRoutingMap, RandomMapsThereAndBack) {
  Random random(20261129);
  for (int turn = 0; turn < 160; ++turn) {
    const int64_t tokens = Drawn(random, 1, 6), experts = Drawn(random, 1, 5),
                  width = Drawn(random, 1, 4);
    const bool padded = turn % 2 == 0, weighs = turn % 3 != 0;
    const int64_t k = Drawn(random, 1, experts), capacity = padded ? Drawn(random, 1, tokens) : 0;
    const DataType dtype = kTokenTypes[turn % 3];
    const Tensor x = DrawnTensor(random, dtype, {tokens, width});
    const Tensor map = DrawnMap(random, tokens, experts, k);
    const Tensor probs = DrawnTensor(random, dtype, {tokens, experts});
    const int64_t rows = padded ? experts * capacity : tokens * k;
    OpCall call = {.type = "MoeTokenPermuteWithRoutingMap",
                   .inputs = {{"tokens", x}, {"routing_map", map}},
                   .attrs = {{"num_out_tokens", AttrValue::Int(rows)},
                             {"drop_and_pad", AttrValue::Bool(padded)}}};
    if (weighs) call.inputs.push_back({"probs", probs});
    const std::vector<Tensor> out = Results(call);
    const MapRoutes routes = RoutesOf(map, capacity);
    ASSERT_EQ(out[0].type(), (TensorType{dtype, {rows, width}}));
    std::vector<double> weights;
    for (size_t r = 0; r < routes.tokens.size(); ++r) {
      EXPECT_EQ(RowOf(out[0], static_cast<int64_t>(r)), RowOf(x, routes.tokens[r])) << turn;
      weights.push_back(
          ToDoubles(probs)[static_cast<size_t>(routes.tokens[r] * experts + routes.experts[r])]);
    }
    EXPECT_EQ(Integers64(out[2]), padded ? routes.tokens : Order(routes.tokens)) << turn;
    if (weighs) {
      EXPECT_EQ(ToDoubles(out[1]), weights) << turn;
    } else {
      EXPECT_EQ(out[1].shape(), Shape{0});
    }

    const Tensor dy = DrawnTensor(random, dtype, {rows, width});
    OpCall backward = {.type = "MoeTokenPermuteWithRoutingMapGrad",
                       .inputs = {{"permuted_token_output_grad", dy},
                                  {"sorted_indices", out[2]},
                                  {"routing_map_optional", map}},
                       .attrs = {{"num_experts", AttrValue::Int(experts)},
                                 {"tokens_num", AttrValue::Int(tokens)},
                                 {"padded_mode", AttrValue::Bool(padded)}}};
    const Tensor dweights = DrawnTensor(random, dtype, {rows});
    if (weighs) backward.inputs.push_back({"permuted_probs_output_grad_optional", dweights});
    const std::vector<Tensor> grad = Results(backward);
    EXPECT_EQ(Dot(out[0], dy), Dot(x, grad[0])) << turn;
    if (weighs) {
      EXPECT_EQ(Dot(out[1], dweights), Dot(probs, grad[1])) << turn;
    }

    // And back.
    const std::vector<std::pair<std::string, AttrValue>> attrs = {
        {"drop_and_pad", AttrValue::Bool(padded)},
        {"restore_shape", AttrValue::Ints({tokens, width})}};
    OpCall back = {
        .type = "MoeTokenUnpermuteWithRoutingMap",
        .inputs = {{"permuted_tokens", dy}, {"sorted_indices", out[2]}, {"routing_map", map}},
        .attrs = attrs};
    if (weighs) back.inputs.push_back({"probs", probs});
    const std::vector<Tensor> restored = Results(back);
    std::vector<double> sum(static_cast<size_t>(tokens * width));
    for (size_t r = 0; r < routes.tokens.size(); ++r) {
      for (size_t i = 0; i < static_cast<size_t>(width); ++i) {
        sum[static_cast<size_t>(routes.tokens[r] * width) + i] +=
            RowOf(dy, static_cast<int64_t>(r))[i] * (weighs ? weights[r] : 1);
      }
    }
    ASSERT_EQ(restored[0].type(), x.type());
    EXPECT_EQ(ToDoubles(restored[0]), sum) << turn;
    if (padded) {
      EXPECT_EQ(Integers64(restored[1]), Order(routes.tokens)) << turn;
      std::vector<int64_t> sorted = routes.tokens;
      std::sort(sorted.begin(), sorted.end());
      EXPECT_EQ(Integers64(restored[2]), sorted) << turn;
      if (weighs) {
        EXPECT_EQ(ToDoubles(restored[3]), weights) << turn;
      }
    }
    OpCall back_grad = {.type = "MoeTokenUnpermuteWithRoutingMapGrad",
                        .inputs = {{"unpermuted_tokens_grad", x},
                                   {"out_index", padded ? restored[1] : out[2]},
                                   {"permute_token_id", padded ? restored[2] : out[2]},
                                   {"routing_map", map},
                                   {"permuted_tokens", dy}},
                        .attrs = attrs};
    if (weighs) back_grad.inputs.push_back({"probs", probs});
    const std::vector<Tensor> slopes = Results(back_grad);
    EXPECT_EQ(Dot(restored[0], x), Dot(dy, slopes[0])) << turn;
    if (weighs) {
      EXPECT_EQ(Dot(restored[0], x), Dot(probs, slopes[1])) << turn;
    }
  }
}

}  // namespace
}  // namespace npumesh
