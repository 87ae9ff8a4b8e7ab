// AsStrided and ViewCopy.
#include "tests/unit/ops/shape/shape_values.h"

namespace npumesh {
namespace {

using Ints = std::vector<int64_t>;

struct ViewCase {
  Ints size;
  Ints stride;
  int64_t offset;
};

const ViewCase kViews[] = {
    {{4}, {1}, 3},         {{3, 2}, {2, 1}, 0},   {{2, 3}, {1, 4}, 1},
    {{3}, {0}, 5},         {{3, 2}, {1, 1}, 2},   {{4}, {-2}, 9},
    {{}, {}, 7},           {{0, 3}, {100, 1}, 0}, {{2, 2, 2}, {6, 3, 1}, 0},
    {{1}, {INT64_MAX}, 4},
};

Tensor Iota(DataType dtype, int64_t count) {
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i + 1);
  return FromDoubles(dtype, Shape({count}), values);
}

// Elements of the buffer that the view names, in C order.
Ints Named(const ViewCase& view) {
  Ints named;
  for (const std::vector<int64_t>& at : Positions(Shape(view.size))) {
    int64_t element = view.offset;
    for (size_t d = 0; d < at.size(); ++d) element += at[d] * view.stride[d];
    named.push_back(element);
  }
  return named;
}

OpCall AsStrided(const Tensor& x, const ViewCase& view) {
  return {.type = "AsStrided",
          .inputs = {{"x", x},
                     {"size", MakeInts(view.size)},
                     {"stride", MakeInts(view.stride)},
                     {"storage_offset", MakeInts({view.offset})}}};
}

TEST(AsStrided, ReadsTheBuffer) {
  for (const ViewCase& view : kViews) {
    for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kInt64}) {
      const Tensor y = RunOne(AsStrided(Iota(dtype, 12), view));
      EXPECT_EQ(y.shape(), Shape(view.size));
      std::vector<double> expected;
      for (const int64_t element : Named(view))
        expected.push_back(static_cast<double>(element + 1));
      EXPECT_EQ(ToDoubles(y), expected);
    }
  }
}

TEST(AsStrided, StaysInsideTheBuffer) {
  const Tensor x = Iota(DataType::kFloat, 12);
  for (const ViewCase& view :
       {ViewCase{{13}, {1}, 0}, ViewCase{{2}, {1}, 11}, ViewCase{{2}, {-1}, 0},
        ViewCase{{2}, {INT64_MAX}, 1}, ViewCase{{1}, {1}, -1}, ViewCase{{2, 2}, {1}, 0},
        ViewCase{{-1}, {1}, 0}}) {
    ExpectFails(AsStrided(x, view), Code::kInvalidArgument,
                {"does not lie inside \"x\"", "float32[12]"});
  }
}

TEST(ViewCopy, WritesThroughAView) {
  const Tensor src = Iota(DataType::kFloat, 12);
  for (const ViewCase& to : kViews) {
    if (to.stride == Ints{0} || to.stride == Ints{1, 1}) continue;  // would write elements twice
    const ViewCase from{to.size, Ints(to.size.size(), 1), 2};
    const Tensor dst = FromDoubles(DataType::kFloat, {3, 4}, std::vector<double>(12, 0));
    std::vector<double> expected(12, 0);
    const Ints places = Named(to), sources = Named(from);
    for (size_t i = 0; i < places.size(); ++i) {
      expected[static_cast<size_t>(places[i])] = static_cast<double>(sources[i] + 1);
    }
    const Tensor y = RunOne({.type = "ViewCopy",
                             .inputs = {{"dst", dst},
                                        {"dst_size", MakeInts(to.size)},
                                        {"dst_stride", MakeInts(to.stride)},
                                        {"dst_storage_offset", MakeInts({to.offset})},
                                        {"src", src},
                                        {"src_size", MakeInts(from.size)},
                                        {"src_stride", MakeInts(from.stride)},
                                        {"src_storage_offset", MakeInts({2})}}});
    EXPECT_EQ(y.shape(), Shape({3, 4}));
    EXPECT_EQ(ToDoubles(y), expected);
  }
}

TEST(ViewCopy, RefusesDifferentSizes) {
  const Tensor x = Iota(DataType::kFloat, 4);
  ExpectFails({.type = "ViewCopy",
               .inputs = {{"dst", x},
                          {"dst_size", MakeInts({2})},
                          {"dst_stride", MakeInts({1})},
                          {"dst_storage_offset", MakeInts({0})},
                          {"src", x},
                          {"src_size", MakeInts({3})},
                          {"src_stride", MakeInts({1})},
                          {"src_storage_offset", MakeInts({0})}}},
              Code::kInvalidArgument, {"dst_size [2]", "src_size [3]"});
}

}  // namespace
}  // namespace npumesh
