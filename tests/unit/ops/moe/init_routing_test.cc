// MoeInitRouting and MoeInitRoutingV2 against the definitions, row by row.
#include "tests/unit/op_values.h"
#include "tests/unit/ops/collective/group_types.h"
#include "tests/unit/ops/moe/moe_values.h"

namespace npumesh {
namespace {

using testing::ElementsAre;

constexpr int64_t kTokens = 4;
constexpr int64_t kChoices = 2;

Tensor Ids(DataType dtype = DataType::kInt32) {
  return FromDoubles(dtype, {kTokens, kChoices}, std::vector<double>(kIds.begin(), kIds.end()));
}
// Row t of x is 10 t, 10 t + 1.
Tensor X(DataType dtype) {
  std::vector<double> values;
  for (int t = 0; t < kTokens; ++t) values.insert(values.end(), {10.0 * t, 10.0 * t + 1});
  return FromDoubles(dtype, {kTokens, 2}, values);
}

// First elements of the expanded rows over 10: their tokens.
std::vector<double> TokensOf(const Tensor& expanded) {
  std::vector<double> tokens;
  for (size_t i = 0; i < ToDoubles(expanded).size(); i += 2) {
    tokens.push_back(ToDoubles(expanded)[i] / 10);
  }
  return tokens;
}

TEST(MoeInitRouting, CarriesTheRowNumbers) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    for (const int64_t active : {9, 3, 0}) {
      // The numbers of MoeGatingTopKSoftmax: choice j of token t is j * tokens + t.
      std::vector<double> rows;
      for (int64_t p = 0; p < kTokens * kChoices; ++p) {
        rows.push_back(static_cast<double>(p % kChoices * kTokens + p / kChoices));
      }
      const std::vector<Tensor> out =
          Results({.type = "MoeInitRouting",
                   .inputs = {{"x", X(dtype)},
                              {"row_idx", FromDoubles(DataType::kInt32, {kTokens, kChoices}, rows)},
                              {"expert_idx", Ids()}},
                   .attrs = {{"active_num", AttrValue::Int(active)}}});
      // Sorted by expert: positions 1, 5 | 2, 7 | 0, 3, 6 | 4, of which the rows are
      // 4, 6 | 1, 7 | 0, 5, 3 | 2.
      EXPECT_TRUE(SameBytes(out[2], Ints({0, 0, 1, 1, 2, 2, 2, 3})));
      EXPECT_TRUE(SameBytes(out[1], Ints({4, 2, 7, 6, 0, 5, 1, 3})));
      std::vector<double> tokens = {0, 2, 1, 3, 0, 1, 3, 2};
      tokens.resize(static_cast<size_t>(std::min(active, kTokens) * kChoices));
      EXPECT_EQ(TokensOf(out[0]), tokens);
    }
  }
}

OpCall Second(const std::vector<std::pair<std::string, AttrValue>>& attrs,
              DataType ids = DataType::kInt32) {
  return {.type = "MoeInitRoutingV2",
          .inputs = {{"x", X(DataType::kFloat16)}, {"expert_idx", Ids(ids)}},
          .attrs = attrs};
}

TEST(MoeInitRoutingV2, RowsFollowEachOther) {
  for (const DataType ids : {DataType::kInt32, DataType::kInt64}) {
    std::vector<Tensor> out = Results(Second({}, ids));
    EXPECT_EQ(TokensOf(out[0]), (std::vector<double>{0, 2, 1, 3, 0, 1, 3, 2}));
    EXPECT_TRUE(SameBytes(out[1], Ints({4, 0, 2, 5, 7, 1, 6, 3})));
    EXPECT_EQ(out[2].shape(), Shape{0});
    EXPECT_EQ(out[3].shape(), Shape{0});
    out = Results(Second({{"expert_num", AttrValue::Int(5)},
                          {"active_num", AttrValue::Int(3)},
                          {"expert_tokens_count_or_cumsum_flag", AttrValue::Int(1)}},
                         ids));
    EXPECT_EQ(TokensOf(out[0]), (std::vector<double>{0, 2, 1}));
    EXPECT_TRUE(SameBytes(out[2], Ints({2, 4, 7, 8, 8})));
    out = Results(Second({{"expert_num", AttrValue::Int(5)},
                          {"expert_tokens_count_or_cumsum_flag", AttrValue::Int(2)}},
                         ids));
    EXPECT_TRUE(SameBytes(out[2], Ints({2, 2, 3, 1, 0})));
  }
}

TEST(MoeInitRoutingV2, DropsWhatIsAboveTheCapacity) {
  const std::vector<Tensor> out =
      Results(Second({{"expert_num", AttrValue::Int(5)},
                      {"expert_capacity", AttrValue::Int(2)},
                      {"drop_pad_mode", AttrValue::Int(1)},
                      {"expert_tokens_before_capacity_flag", AttrValue::Bool(true)}}));
  EXPECT_EQ(out[0].shape(), (Shape{5, 2, 2}));
  EXPECT_EQ(ToDoubles(out[0]), (std::vector<double>{0,  1,  20, 21, 10, 11, 30, 31, 0, 1,
                                                    10, 11, 20, 21, 0,  0,  0,  0,  0, 0}));
  EXPECT_TRUE(SameBytes(out[1], Ints({4, 0, 2, 5, 6, 1, -1, 3})));
  EXPECT_TRUE(SameBytes(out[3], Ints({2, 2, 3, 1, 0})));
}

TEST(MoeInitRoutingV2, TypesWithUnknownDimensions) {
  const auto types = [](Shape x, Shape ids, const Attrs& attrs) {
    return TypesIn(
        1, 0, "MoeInitRoutingV2",
        {{"x", DataType::kFloat16, std::move(x)}, {"expert_idx", DataType::kInt32, std::move(ids)}},
        attrs);
  };
  EXPECT_THAT(types({-1, 8}, {-1, 2}, {}),
              ElementsAre("float16[-1,8]", "int32[-1]", "int32[0]", "int32[0]"));
  EXPECT_THAT(types({-1, 8}, {-1, 2},
                    {{"drop_pad_mode", AttrValue::Int(1)},
                     {"expert_capacity", AttrValue::Int(3)},
                     {"expert_num", AttrValue::Int(4)}}),
              ElementsAre("float16[4,3,8]", "int32[-1]", "int32[0]", "int32[0]"));
  EXPECT_THAT(types(Shape::UnknownRank(), {5, 2}, {})[1], "int32[-1]");
}

TEST(MoeInitRouting, Refusals) {
  ExpectFails(Second({{"expert_num", AttrValue::Int(3)}}), Code::kInvalidArgument,
              {"holds 3 for token 2, expected 0 to 2"});
  ExpectFails(Second({{"drop_pad_mode", AttrValue::Int(1)}}), Code::kInvalidArgument,
              {"drop_pad_mode 1 with expert_capacity 0"});
  ExpectFails({.type = "MoeInitRouting",
               .inputs = {{"x", X(DataType::kFloat)},
                          {"row_idx", FromDoubles(DataType::kInt32, {kTokens, kChoices},
                                                  {0, 1, 2, 3, 4, 5, 6, 8})},
                          {"expert_idx", Ids()}},
               .attrs = {{"active_num", AttrValue::Int(4)}}},
              Code::kInvalidArgument, {"row_idx holds 8 at 7"});
}

}  // namespace
}  // namespace npumesh
