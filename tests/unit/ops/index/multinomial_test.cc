// Indices drawn by weight.
#include "tests/unit/op_gradient.h"

namespace npumesh {
namespace {

OpCall Draw(const Tensor& x, int64_t samples, bool replacement, int64_t offset = 0) {
  return {.type = "MultinomialWithReplacement",
          .inputs = {{"x", x}, {"seed", MakeInts({42})}, {"offset", MakeInts({offset})}},
          .attrs = {{"numsamples", AttrValue::Int(samples)},
                    {"replacement", AttrValue::Bool(replacement)}}};
}

TEST(Multinomial, DrawsByWeight) {
  const Tensor x = FromDoubles(DataType::kFloat, {2, 4}, {1, 0, 2, 5, 0, 0, 7, 0});
  const Tensor y = RunOne(Draw(x, 4000, true));
  ASSERT_EQ(y.type(), (TensorType{DataType::kInt64, {2, 4000}}));
  std::vector<int> counts(8, 0);
  for (size_t i = 0; i < 8000; ++i) {
    const auto drawn = static_cast<size_t>(y.as<int64_t>()[i]);
    ASSERT_LT(drawn, 4u);
    ++counts[i / 4000 * 4 + drawn];
  }
  // 4000 draws with p = 1/8: a deviation of 21; five of them are never seen.
  EXPECT_NEAR(counts[0], 500, 105);
  EXPECT_NEAR(counts[2], 1000, 140);
  EXPECT_NEAR(counts[3], 2500, 155);
  EXPECT_EQ(counts[1], 0);
  EXPECT_EQ(counts[6], 4000);
}

TEST(Multinomial, WithoutReplacementEveryIndexComesOnce) {
  const Tensor x = FromDoubles(DataType::kFloat, {5}, {1, 2, 0, 4, 8});
  std::vector<int64_t> first_drawn(5, 0);
  for (int64_t offset = 0; offset < 600; ++offset) {
    std::vector<int64_t> drawn = ValuesOf<int64_t>(RunOne(Draw(x, 4, false, offset)));
    ++first_drawn[static_cast<size_t>(drawn[0])];
    std::sort(drawn.begin(), drawn.end());
    ASSERT_EQ(drawn, (std::vector<int64_t>{0, 1, 3, 4}));
  }
  // 600 * 8 / 15 with a deviation of 12.2.
  EXPECT_NEAR(static_cast<double>(first_drawn[4]), 320, 61);
  EXPECT_NEAR(static_cast<double>(first_drawn[0]), 40, 31);
}

TEST(Multinomial, RefusesWhatCannotBeDrawn) {
  const auto row = [](const std::vector<double>& x) {
    return FromDoubles(DataType::kFloat, {static_cast<int64_t>(x.size())}, x);
  };
  const auto fails = [](const OpCall& call, const std::string& word) {
    ExpectFails(call, Code::kInvalidArgument, {word});
  };
  fails(Draw(row({1, 1}), 3, false), "3 samples without replacement of 2");
  fails(Draw(row({1, 0}), 2, false), "row 0 has 1 weights above zero");
  fails(Draw(row({0, 0}), 1, true), "row 0 has 0 weights above zero");
  fails(Draw(row({1, -1}), 1, true), "weight 1 of row 0 is -1");
  fails(Draw(row({1, std::nan("")}), 1, true), "weight 1 of row 0");
  fails(Draw(row({1}), 0, true), "0 samples");
}

}  // namespace
}  // namespace npumesh
