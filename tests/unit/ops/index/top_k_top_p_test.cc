// ApplyTopKTopPWithSorted against the definition, with drawn logits.
#include <numeric>

#include "tests/unit/op_reference.h"
#include "tests/unit/op_values.h"

namespace npumesh {
namespace {

struct SortedRows {
  Tensor values, places;
};

SortedRows SortRows(const Tensor& logits) {
  const std::vector<double> all = ToDoubles(logits);
  const auto width = static_cast<size_t>(logits.shape()[1]);
  std::vector<double> values, places;
  for (size_t r = 0; r < all.size(); r += width) {
    std::vector<size_t> order(width);
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return all[r + a] < all[r + b]; });
    for (const size_t at : order) {
      values.push_back(all[r + at]);
      places.push_back(static_cast<double>(at));
    }
  }
  return {FromDoubles(logits.dtype(), logits.shape(), values),
          FromDoubles(DataType::kInt32, logits.shape(), places)};
}

// Equal logits are drawn too. A sum of probabilities that a rounding could move over its limit is
// not drawn by these seeds, which the test checks.
TEST(ApplyTopKTopP, RandomLogits) {
  Random random(20261207);
  for (int turn = 0; turn < 120; ++turn) {
    const DataType types[] = {kF32, kF16, kBf16};
    const DataType dtype = types[turn % 3];
    const auto rows = static_cast<int64_t>(1 + random.Bits() % 3),
               width = static_cast<int64_t>(1 + random.Bits() % 9);
    std::vector<double> drawn, ks, ps;
    for (int64_t i = 0; i < rows * width; ++i) {
      drawn.push_back(static_cast<double>(random.Bits() % 9) - 4);
    }
    for (int64_t r = 0; r < rows; ++r) {
      ks.push_back(static_cast<double>(1 + random.Bits() % static_cast<uint64_t>(width)));
      ps.push_back(random.Unit());
    }
    const Tensor logits = FromDoubles(dtype, {rows, width}, drawn);
    const SortedRows sorted = SortRows(logits);
    OpCall call = {.type = "ApplyTopKTopPWithSorted",
                   .inputs = {{"sorted_value", sorted.values}, {"sorted_indices", sorted.places}}};
    const bool by_k = turn % 4 != 0, by_p = turn % 4 != 1;
    const Tensor p = FromDoubles(kF32, {rows}, ps);
    if (by_p) call.inputs.push_back({"p", p});
    if (by_k) call.inputs.push_back({"k", FromDoubles(DataType::kInt32, {rows}, ks)});
    std::vector<double> want = drawn;
    for (int64_t r = 0; r < rows; ++r) {
      const auto first = static_cast<size_t>(r * width), n = static_cast<size_t>(width);
      const std::vector<double> places = ToDoubles(sorted.places),
                                values = ToDoubles(sorted.values);
      const double least =
          by_k ? values[first + n - static_cast<size_t>(ks[static_cast<size_t>(r)])] : -100;
      double total = 0, sum = 0;
      for (size_t i = 0; i < n; ++i)
        total += values[first + i] < least ? 0 : std::exp(values[first + i]);
      for (size_t i = 0; i < n; ++i) {
        const double v = values[first + i];
        sum += v < least ? 0 : std::exp(v) / total;
        const double limit = 1 - ToDoubles(p)[static_cast<size_t>(r)];
        const bool unlikely = by_p && i + 1 < n && sum <= limit;
        ASSERT_GT(std::abs(sum - limit), 1e-9) << "the draw lies at a limit";
        if (v < least || unlikely) {
          want[first + static_cast<size_t>(places[first + i])] =
              -std::numeric_limits<double>::infinity();
        }
      }
    }
    EXPECT_EQ(ToDoubles(Results(call)[0]), want) << "turn " << turn;
  }
}

TEST(ApplyTopKTopP, RefusesWhatDoesNotFit) {
  const Tensor logits = FromDoubles(kF32, {1, 3}, {1, 2, 3});
  const SortedRows sorted = SortRows(logits);
  OpCall call = {.type = "ApplyTopKTopPWithSorted",
                 .inputs = {{"sorted_value", sorted.values},
                            {"sorted_indices", sorted.places},
                            {"k", FromDoubles(DataType::kInt32, {1}, {4})}}};
  ExpectFails(call, Code::kInvalidArgument, {"k holds 4 for row 0, expected 1 to 3"});
  call.inputs[2] = {"p", FromDoubles(kF32, {2}, {0, 1})};
  ExpectFails(call, Code::kInvalidArgument, {"p is float32[2]", "expected 1 element"});
  call.inputs.pop_back();
  call.inputs[1].value = FromDoubles(DataType::kInt32, {1, 3}, {0, 1, 3});
  ExpectFails(call, Code::kInvalidArgument, {"sorted_indices hold 3 in row 0"});
}

}  // namespace
}  // namespace npumesh
