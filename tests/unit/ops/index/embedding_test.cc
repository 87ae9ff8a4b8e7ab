// EmbeddingBag and EmbeddingDenseGrad.
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

const std::vector<std::vector<double>> kTable = {{1, 8}, {2, 4}, {4, -2}, {-8, 16}};

Tensor Table(DataType dtype) {
  std::vector<double> flat;
  for (const std::vector<double>& row : kTable) flat.insert(flat.end(), row.begin(), row.end());
  return FromDoubles(dtype, {4, 2}, flat);
}

OpCall Bag(DataType dtype, const std::string& mode, const Tensor& indices) {
  return {.type = "EmbeddingBag",
          .inputs = {{"weight", Table(dtype)}, {"indices", indices}},
          .attrs = {{"mode", AttrValue::String(mode)}}};
}

// What one bag of rows gives.
std::vector<double> Joined(const std::vector<int>& rows, const std::string& mode, int padding) {
  std::vector<double> result(2, 0);
  int taken = 0;
  for (const int row : rows) {
    if (row == padding) continue;
    for (size_t c = 0; c < 2; ++c) {
      const double value = kTable[static_cast<size_t>(row)][c];
      if (mode != "max") {
        result[c] += value;
      } else if (taken == 0 || value > result[c]) {
        result[c] = value;
      }
    }
    ++taken;
  }
  if (mode == "mean" && taken > 0) {
    for (double& value : result) value /= taken;
  }
  return result;
}

TEST(EmbeddingBag, JoinsTheRowsOfABag) {
  const std::vector<std::vector<int>> bags = {{1, 2}, {}, {3, 0, 3, 1}};
  const Tensor indices = MakeInts({1, 2, 3, 0, 3, 1});
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
    for (const std::string mode : {"sum", "mean", "max"}) {
      for (const int padding : {-1, 3}) {
        OpCall call = Bag(dtype, mode, indices);
        call.inputs.push_back({"offsets", MakeInts({0, 2, 2})});
        call.attrs.emplace_back("padding_idx", AttrValue::Int(padding));
        const Result<std::vector<Tensor>> out = RunOp(call);
        ASSERT_TRUE(out.ok()) << out.status().ToString();
        std::vector<double> expected;
        for (const std::vector<int>& bag : bags) {
          for (const double value : Joined(bag, mode, padding)) expected.push_back(value);
        }
        EXPECT_TRUE(SameBytes((*out)[0], FromDoubles(dtype, {3, 2}, expected))) << mode;
        EXPECT_EQ(ToDoubles((*out)[1]), (std::vector<double>{0, 0, 2, 2, 2, 2}));
        EXPECT_EQ(ToDoubles((*out)[2]),
                  (padding == 3 ? std::vector<double>{2, 0, 2} : std::vector<double>{2, 0, 4}));
        if (mode == "max") {
          EXPECT_EQ((*out)[3].shape(), Shape({3, 2}));
          EXPECT_EQ(ToDoubles((*out)[3])[0], 2);
          EXPECT_EQ(ToDoubles((*out)[3])[1], 1);
        }
      }
    }
  }
}

TEST(EmbeddingBag, MatricesAndWeights) {
  OpCall call = Bag(DataType::kFloat, "sum", Make<int32_t>(DataType::kInt32, {2, 2}, {0, 1, 2, 2}));
  call.inputs.push_back(
      {"per_sample_weights", FromDoubles(DataType::kFloat, {2, 2}, {2, 0.5, 1, -3})});
  EXPECT_EQ(ToDoubles(RunOne(call)), (std::vector<double>{3, 18, -8, 4}));
  call.attrs[0].second = AttrValue::String("mean");
  ExpectFails(call, Code::kInvalidArgument, {"need mode sum"});
}

TEST(EmbeddingBag, LastOffsetEndsTheLastBag) {
  OpCall call = Bag(DataType::kFloat, "sum", MakeInts({0, 1, 2}));
  call.inputs.push_back({"offsets", MakeInts({0, 1, 2})});
  call.attrs.emplace_back("include_last_offset", AttrValue::Bool(true));
  const Result<std::vector<Tensor>> out = RunOp(call);
  ASSERT_TRUE(out.ok()) << out.status().ToString();
  EXPECT_EQ(ToDoubles((*out)[0]), (std::vector<double>{1, 8, 2, 4}));
  EXPECT_EQ(ToDoubles((*out)[1]), (std::vector<double>{0, 1, -1}));
}

TEST(EmbeddingBag, Refuses) {
  OpCall call = Bag(DataType::kFloat, "sum", MakeInts({0, 4}));
  ExpectFails(call, Code::kInvalidArgument, {"vector with offsets"});
  call.inputs.push_back({"offsets", MakeInts({0})});
  ExpectFails(call, Code::kInvalidArgument, {"holds 4 at element 1"});
  call.inputs[1].value = MakeInts({0, 1});
  call.inputs[2].value = MakeInts({0, 3});
  ExpectFails(call, Code::kInvalidArgument, {"\"offsets\" put bag 0 at 0 to 3"});
  call.inputs[2].value = MakeInts({1});
  ExpectFails(call, Code::kInvalidArgument, {"a bag from 0 on"});
  call.attrs[0].second = AttrValue::String("min");
  ExpectFails(call, Code::kInvalidArgument, {"\"mode\" is \"min\""});
}

TEST(EmbeddingDenseGrad, AddsRowsByIndex) {
  for (const DataType dtype : {DataType::kFloat, DataType::kFloat16}) {
    OpCall call{.type = "EmbeddingDenseGrad",
                .inputs = {{"grad", FromDoubles(dtype, {2, 2, 1}, {1, 2, 4, 8})},
                           {"indices", Make<int32_t>(DataType::kInt32, {2, 2}, {1, 0, 1, 2})}},
                .attrs = {{"num_weights", AttrValue::Int(4)}}};
    EXPECT_TRUE(SameBytes(RunOne(call), FromDoubles(dtype, {4, 1}, {2, 5, 8, 0})));
    call.attrs.emplace_back("padding_idx", AttrValue::Int(0));
    call.attrs.emplace_back("scale_grad_by_freq", AttrValue::Bool(true));
    EXPECT_TRUE(SameBytes(RunOne(call), FromDoubles(dtype, {4, 1}, {0, 2.5, 8, 0})));
    call.attrs[0].second = AttrValue::Int(2);
    ExpectFails(call, Code::kInvalidArgument, {"holds 2 at element 3"});
  }
}

}  // namespace
}  // namespace npumesh
