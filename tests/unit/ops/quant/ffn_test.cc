// FFN with one expert and with several, uneven ones and one without rows.
#include <cmath>

#include "tests/unit/ops/collective/group_types.h"

namespace npumesh {
namespace {

constexpr int64_t kIn = 3;
constexpr int64_t kHidden = 4;
constexpr int64_t kOut = 5;

double Reference(const std::string& name, double v) {
  if (name == "relu" || name == "reglu") return v > 0 ? v : 0;
  if (name == "silu" || name == "swiglu") return v / (1 + std::exp(-v));
  if (name == "fastgelu") {
    return v / (1 + std::exp(-1.702 * std::fabs(v))) * std::exp(0.851 * (v - std::fabs(v)));
  }
  return 0.5 * v *
         (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)));
}

// Small multiples of one half around zero.
std::vector<double> Halves(int64_t count, int seed) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<double>((i * i + 3 * i + 2 * seed) % 7 - 3) / 2);
  }
  return values;
}

struct Case {
  std::string activation;
  std::vector<int64_t> rows = {6};  // of each expert
  bool stacked = false;
  bool sums = false;
  bool biased = true;
};

OpCall Call(const Case& c, DataType dtype) {
  const auto experts = static_cast<int64_t>(c.rows.size());
  const bool gated = c.activation.ends_with("glu");
  const int64_t columns = gated ? 2 * kHidden : kHidden;
  const auto shape = [&](Shape each) {
    if (c.stacked) each.mutable_dims().insert(each.mutable_dims().begin(), experts);
    return each;
  };
  OpCall call{.type = "FFN",
              .inputs = {{"x", FromDoubles(dtype, {2, 3, kIn}, Halves(6 * kIn, 1))},
                         {"weight1", FromDoubles(dtype, shape({kIn, columns}),
                                                 Halves(experts * kIn * columns, 2))},
                         {"weight2", FromDoubles(dtype, shape({kHidden, kOut}),
                                                 Halves(experts * kHidden * kOut, 3))}},
              .attrs = {{"activation", AttrValue::String(c.activation)},
                        {"tokens_index_flag", AttrValue::Bool(c.sums)}}};
  if (c.stacked) {
    std::vector<int64_t> tokens;
    int64_t sum = 0;
    for (const int64_t rows : c.rows) tokens.push_back(c.sums ? sum += rows : rows);
    call.inputs.push_back({"expert_tokens", MakeInts(tokens)});
  }
  if (c.biased) {
    call.inputs.push_back(
        {"bias1", FromDoubles(DataType::kFloat, shape({columns}), Halves(experts * columns, 4))});
    call.inputs.push_back({"bias2", FromDoubles(dtype, shape({kOut}), Halves(experts * kOut, 5))});
  }
  return call;
}

std::vector<double> Expected(const Case& c, DataType dtype) {
  const bool gated = c.activation.ends_with("glu");
  const int64_t columns = gated ? 2 * kHidden : kHidden;
  const auto experts = static_cast<int64_t>(c.rows.size());
  const auto at = [](const std::vector<double>& values, int64_t i) {
    return values[static_cast<size_t>(i)];
  };
  const std::vector<double> x = Halves(6 * kIn, 1), w1 = Halves(experts * kIn * columns, 2),
                            w2 = Halves(experts * kHidden * kOut, 3),
                            b1 = Halves(experts * columns, 4), b2 = Halves(experts * kOut, 5);
  std::vector<double> y;
  int64_t row = 0;
  for (int64_t e = 0; e < experts; ++e) {
    for (int64_t i = 0; i < c.rows[static_cast<size_t>(e)]; ++i, ++row) {
      std::vector<double> first, hidden;
      for (int64_t j = 0; j < columns; ++j) {
        double sum = c.biased ? at(b1, e * columns + j) : 0;
        for (int64_t k = 0; k < kIn; ++k) {
          sum += at(x, row * kIn + k) * at(w1, (e * kIn + k) * columns + j);
        }
        first.push_back(sum);
      }
      for (int64_t j = 0; j < kHidden; ++j) {
        const double active = Reference(c.activation, at(first, gated ? kHidden + j : j));
        hidden.push_back(Rounded(dtype, gated ? at(first, j) * active : active));
      }
      for (int64_t j = 0; j < kOut; ++j) {
        double sum = c.biased ? at(b2, e * kOut + j) : 0;
        for (int64_t k = 0; k < kHidden; ++k) {
          sum += at(hidden, k) * at(w2, (e * kHidden + k) * kOut + j);
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

// relu and reglu are exact; the others are within a few roundings of the hidden row.
TEST(Ffn, EveryActivationWithAndWithoutExperts) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    for (const char* name : {"relu", "gelu", "fastgelu", "silu", "geglu", "swiglu", "reglu"}) {
      for (const Case& c :
           {Case{name}, Case{name, {4, 0, 2}, true}, Case{name, {4, 0, 2}, true, true},
            Case{name, {0, 1, 5}, true, false, false}}) {
        const Tensor y = RunOne(Call(c, dtype));
        ASSERT_EQ(y.shape(), (Shape{2, 3, kOut}));
        const std::vector<double> want = Expected(c, dtype);
        if (std::string(name) == "relu" || std::string(name) == "reglu") {
          EXPECT_TRUE(SameBytes(y, FromDoubles(dtype, y.shape(), want))) << name;
          continue;
        }
        for (size_t i = 0; i < want.size(); ++i) {
          // Four hidden elements of at most 32, an ulp each, times weights of at most 1.5.
          EXPECT_NEAR(ToDoubles(y)[i], want[i], 6 * Ulp(dtype, 32) + Ulp(dtype, want[i]))
              << name << " " << Name(dtype) << " element " << i;
        }
      }
    }
  }
}

TEST(Ffn, TypesWithUnknownDimensions) {
  const auto types = [](Shape x, Shape w2) {
    return TypesIn(1, 0, "FFN",
                   {{"x", DataType::kFloat16, std::move(x)},
                    {"weight1", DataType::kFloat16, {kIn, kHidden}},
                    {"weight2", DataType::kFloat16, std::move(w2)}},
                   {{"activation", AttrValue::String("relu")}})[0];
  };
  EXPECT_EQ(types({-1, kIn}, {kHidden, kOut}), "float16[-1,5]");
  EXPECT_EQ(types({7, -1}, {-1, kOut}), "float16[7,5]");
  EXPECT_EQ(types({7, kIn}, {kHidden, -1}), "float16[7,-1]");
}

}  // namespace
}  // namespace npumesh
