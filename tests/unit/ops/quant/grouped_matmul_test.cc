// GroupedMatmul in its three ways of grouping, with and without quantisation.
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

// One group: rows [first, first + count) of x times the weights of the group.
double Dot(const Tensor& x, int64_t row, const Tensor& w, int64_t group, int64_t column, int64_t k,
           int64_t n, bool transposed) {
  double sum = 0;
  for (int64_t i = 0; i < k; ++i) {
    const int64_t at = group * k * n + (transposed ? column * k + i : i * n + column);
    sum += ToDoubles(x)[static_cast<size_t>(row * k + i)] * ToDoubles(w)[static_cast<size_t>(at)];
  }
  return sum;
}

struct ListCase {
  int64_t type;
  std::vector<int64_t> list;
  std::vector<int64_t> group_of_row;  // -1: none
};

std::vector<ListCase> Lists() {
  return {{0, {2, 2, 5}, {0, 0, 2, 2, 2, -1}},
          {1, {2, 0, 3}, {0, 0, 2, 2, 2, -1}},
          {2, {2, 1, 0, 4}, {2, 0, 0, 0, 0, -1}}};
}

Tensor List(const ListCase& c) {
  const auto count = static_cast<int64_t>(c.list.size());
  return Make<int64_t>(DataType::kInt64, c.type == 2 ? Shape{count / 2, 2} : Shape{count}, c.list);
}

TEST(GroupedMatmul, RowsOfOneTensor) {
  const int64_t k = 8;
  const int64_t n = 5;
  for (const ListCase& c : Lists()) {
    for (const bool transposed : {false, true}) {
      for (const bool stacked : {false, true}) {
        const Tensor x = Noise(DataType::kBfloat16, {6, k}, 1);
        const Shape one = transposed ? Shape{n, k} : Shape{k, n};
        const Tensor w = Noise(DataType::kBfloat16, {3, one[0], one[1]}, 2);
        const Tensor bias = Noise(DataType::kFloat, {3, n}, 3);
        OpCall call{.type = "GroupedMatmul",
                    .inputs = {{"x0", x}},
                    .attrs = {{"split_item", AttrValue::Int(3)},
                              {"group_type", AttrValue::Int(0)},
                              {"group_list_type", AttrValue::Int(c.type)},
                              {"transpose_weight", AttrValue::Bool(transposed)}}};
        const std::vector<double> values = ToDoubles(w);
        for (int64_t g = 0; g < 3 && !stacked; ++g) {
          const auto begin = values.begin() + g * k * n;
          call.inputs.push_back({fmt::format("weight{}", g),
                                 FromDoubles(DataType::kBfloat16, one, {begin, begin + k * n})});
        }
        if (stacked) call.inputs.push_back({"weight0", w});
        call.inputs.push_back({"bias0", bias});
        call.inputs.push_back({"scale0", Tensor::Allocate({DataType::kFloat, {0}})});
        call.inputs.push_back({"group_list", List(c)});
        std::vector<double> want;
        for (int64_t row = 0; row < 6; ++row) {
          const int64_t g = c.group_of_row[static_cast<size_t>(row)];
          for (int64_t j = 0; j < n; ++j) {
            want.push_back(g < 0 ? 0
                                 : Dot(x, row, w, g, j, k, n, transposed) +
                                       ToDoubles(bias)[static_cast<size_t>(g * n + j)]);
          }
        }
        const Tensor y = MustRun(call)[0];
        EXPECT_EQ(y.type(), (TensorType{DataType::kBfloat16, {6, n}}));
        ExpectNear(y, want);
      }
    }
  }
}

TEST(GroupedMatmul, QuantisedRows) {
  const int64_t k = 8;
  const int64_t n = 4;
  const Tensor x = Noise(DataType::kInt8, {6, k}, 1, 20);
  const Tensor w = Noise(DataType::kInt8, {3, k, n}, 2, 20);
  const Tensor scale = Noise(DataType::kFloat, {3, n}, 3, 0.1);
  const Tensor rows = Noise(DataType::kFloat, {6}, 4, 2);
  const Tensor bias = Noise(DataType::kInt32, {3, n}, 5, 50);
  const ListCase c = Lists()[1];
  OpCall call{.type = "GroupedMatmul",
              .inputs = {{"x0", x},
                         {"weight0", w},
                         {"bias0", bias},
                         {"scale0", scale},
                         {"group_list", List(c)},
                         {"per_token_scale", rows}},
              .attrs = {{"split_item", AttrValue::Int(2)},
                        {"group_type", AttrValue::Int(0)},
                        {"group_list_type", AttrValue::Int(1)},
                        {"act_type", AttrValue::Int(1)},
                        {"dtype", AttrValue::Int(3)}}};
  std::vector<double> want, sums;
  for (int64_t row = 0; row < 6; ++row) {
    const int64_t g = c.group_of_row[static_cast<size_t>(row)];
    for (int64_t j = 0; j < n; ++j) {
      const auto at = static_cast<size_t>(g * n + j);
      sums.push_back(g < 0 ? 0 : Dot(x, row, w, g, j, k, n, false) + ToDoubles(bias)[at]);
      const double value =
          g < 0 ? 0
                : sums.back() * ToDoubles(scale)[at] * ToDoubles(rows)[static_cast<size_t>(row)];
      want.push_back(std::max(value, 0.0));
    }
  }
  ExpectNear(MustRun(call)[0], want, 1e-5);
  call.attrs.back() = {"dtype", AttrValue::Int(2)};
  const Tensor integers = MustRun(call)[0];
  EXPECT_EQ(integers.dtype(), DataType::kInt32);
  EXPECT_EQ(ToDoubles(integers), sums);
  call.inputs[1].value = ToInt4(Noise(DataType::kInt8, {3, k, n}, 2, 7));
  const Tensor four = Noise(DataType::kInt8, {3, k, n}, 2, 7);
  const Tensor packed = MustRun(call)[0];
  EXPECT_EQ(ToDoubles(packed)[0], Dot(x, 0, four, 0, 0, k, n, false) + ToDoubles(bias)[0]);
}

// A rank to which no token went. It was refused: "0 tensors x and 1 weights".
TEST(GroupedMatmul, NoRows) {
  for (const DataType dtype : {DataType::kFloat16, DataType::kInt8}) {
    const bool integers = dtype == DataType::kInt8;
    OpCall call{.type = "GroupedMatmul",
                .inputs = {{"x0", Tensor::Allocate({dtype, {0, 8}})},
                           {"weight0", Noise(dtype, {3, 8, 4}, 2, 20)},
                           {"bias0", Tensor::Allocate({DataType::kFloat16, {0}})},
                           {"group_list", MakeInts({0, 0, 0})}},
                .attrs = {{"split_item", AttrValue::Int(3)},
                          {"group_type", AttrValue::Int(0)},
                          {"group_list_type", AttrValue::Int(1)},
                          {"dtype", AttrValue::Int(0)}}};
    if (integers) {
      call.inputs.push_back({"scale0", Noise(DataType::kFloat, {3, 4}, 3, 0.1)});
      call.inputs.push_back({"per_token_scale", Tensor::Allocate({DataType::kFloat, {0}})});
    }
    EXPECT_EQ(MustRun(call)[0].type(), (TensorType{DataType::kFloat16, {0, 4}}));
    call.inputs[0].value = Tensor::Allocate({dtype, {0}});  // a placeholder
    EXPECT_EQ(FailOf(call).code(), Code::kInvalidArgument);
  }
}

TEST(GroupedMatmul, WeightsAlone) {
  const int64_t k = 8;
  const int64_t n = 4;
  const Tensor x = Noise(DataType::kFloat16, {2, k}, 1);
  const Tensor w = Noise(DataType::kInt8, {2, k, n}, 2, 7);
  for (const int64_t parts : {1, 2}) {
    const Shape shape = parts == 1 ? Shape{2, n} : Shape{2, parts, n};
    const Tensor scale = Noise(DataType::kFloat16, shape, 3);
    const Tensor offset = Noise(DataType::kFloat16, shape, 4);
    std::vector<double> want;
    for (int64_t g = 0; g < 2; ++g) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          const auto at = static_cast<size_t>((g * parts + i / (k / parts)) * n + j);
          sum += ToDoubles(x)[static_cast<size_t>(g * k + i)] *
                 (ToDoubles(w)[static_cast<size_t>((g * k + i) * n + j)] + ToDoubles(offset)[at]) *
                 ToDoubles(scale)[at];
        }
        want.push_back(sum);
      }
    }
    ExpectNear(MustRun({.type = "GroupedMatmul",
                        .inputs = {{"x0", x},
                                   {"weight0", ToInt4(w)},
                                   {"antiquant_scale0", scale},
                                   {"antiquant_offset0", offset},
                                   {"group_list", MakeInts({1, 2})}},
                        .attrs = {{"split_item", AttrValue::Int(2)},
                                  {"group_type", AttrValue::Int(0)}}})[0],
               want, 1e-5);
  }
}

TEST(GroupedMatmul, TensorByTensor) {
  const Tensor x0 = Noise(DataType::kFloat, {2, 3, 4}, 1);
  const Tensor x1 = Noise(DataType::kFloat, {5, 6}, 2);
  const Tensor w0 = Noise(DataType::kFloat, {4, 3}, 3);
  const Tensor w1 = Noise(DataType::kFloat, {6, 3}, 4);
  OpCall call{.type = "GroupedMatmul",
              .inputs = {{"x0", x0}, {"x1", x1}, {"weight0", w0}, {"weight1", w1}},
              .outputs = 2};
  std::vector<double> first, second;
  for (int64_t r = 0; r < 6; ++r) {
    for (int64_t j = 0; j < 3; ++j) first.push_back(Dot(x0, r, w0, 0, j, 4, 3, false));
  }
  for (int64_t r = 0; r < 5; ++r) {
    for (int64_t j = 0; j < 3; ++j) second.push_back(Dot(x1, r, w1, 0, j, 6, 3, false));
  }
  const std::vector<Tensor> out = MustRun(call, 2);
  EXPECT_EQ(out[0].shape(), (Shape{2, 3, 3}));
  ExpectNear(out[0], first);
  ExpectNear(out[1], second);
  call.outputs = 1;
  call.attrs = {{"split_item", AttrValue::Int(2)}};
  first.insert(first.end(), second.begin(), second.end());
  const Tensor joined = MustRun(call)[0];
  EXPECT_EQ(joined.shape(), (Shape{11, 3}));
  ExpectNear(joined, first);
}

TEST(GroupedMatmul, InnerDimension) {
  const int64_t m = 3;
  const int64_t n = 4;
  for (const bool transposed : {false, true}) {
    const Tensor x = Noise(DataType::kFloat, transposed ? Shape{6, m} : Shape{m, 6}, 1);
    const Tensor w = Noise(DataType::kFloat, {6, n}, 2);
    std::vector<double> want;
    for (const auto& [begin, end] :
         std::vector<std::pair<int64_t, int64_t>>{{0, 2}, {2, 2}, {2, 6}}) {
      for (int64_t r = 0; r < m; ++r) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t i = begin; i < end; ++i) {
            sum += ToDoubles(x)[static_cast<size_t>(transposed ? i * m + r : r * 6 + i)] *
                   ToDoubles(w)[static_cast<size_t>(i * n + j)];
          }
          want.push_back(sum);
        }
      }
    }
    const Tensor y =
        MustRun({.type = "GroupedMatmul",
                 .inputs = {{"x0", x}, {"weight0", w}, {"group_list", MakeInts({2, 2, 6})}},
                 .attrs = {{"split_item", AttrValue::Int(3)},
                           {"group_type", AttrValue::Int(2)},
                           {"transpose_x", AttrValue::Bool(transposed)}}})[0];
    EXPECT_EQ(y.shape(), (Shape{3, m, n}));
    ExpectNear(y, want);
  }
}

}  // namespace
}  // namespace npumesh
