// QuantBatchMatmulV4, QuantBatchMatmulInplaceAdd and QuantGroupedMatmulInplaceAdd against sums in
// double of the dequantised operands.
#include <functional>

#include "tests/unit/op_types.h"
#include "tests/unit/op_unknown.h"
#include "tests/unit/ops/quant/small_values.h"

namespace npumesh {
namespace {

struct Sizes {
  int64_t m, n, k;
};

using Factor = std::function<double(int64_t line, int64_t k)>;

// sum over k of x1(m, k) * s1(m, k) * x2(k, n) * s2(n, k)
std::vector<double> Scaled(const Sizes& size, const Tensor& x1, bool t1, const Tensor& x2, bool t2,
                           const Factor& s1, const Factor& s2) {
  const std::vector<double> a = Wide(x1), b = Wide(x2);
  std::vector<double> y;
  for (int64_t m = 0; m < size.m; ++m) {
    for (int64_t n = 0; n < size.n; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < size.k; ++k) {
        const auto i = static_cast<size_t>(t1 ? k * size.m + m : m * size.k + k);
        const auto j = static_cast<size_t>(t2 ? n * size.k + k : k * size.n + n);
        sum += a[i] * s1(m, k) * b[j] * s2(n, k);
      }
      y.push_back(sum);
    }
  }
  return y;
}

Factor One() {
  return [](int64_t, int64_t) { return 1.0; };
}

OpCall V4(const Tensor& x1, bool t1, const Tensor& x2, bool t2, int64_t dtype) {
  return {.type = "QuantBatchMatmulV4",
          .inputs = {{"x1", x1}, {"x2", x2}},
          .attrs = {{"dtype", AttrValue::Int(dtype)},
                    {"transpose_x1", AttrValue::Bool(t1)},
                    {"transpose_x2", AttrValue::Bool(t2)}}};
}

Tensor Left(DataType dtype, const Sizes& s, bool t, int seed) {
  const Shape shape = t ? Shape{s.k, s.m} : Shape{s.m, s.k};
  return dtype == kInt8 ? Noise(dtype, shape, seed, 20) : Quarters(dtype, shape, seed);
}
Tensor Right(DataType dtype, const Sizes& s, bool t, int seed) {
  const Shape shape = t ? Shape{s.n, s.k} : Shape{s.k, s.n};
  return dtype == kInt8 ? Noise(dtype, shape, seed, 20) : Quarters(dtype, shape, seed);
}

// Scales and sums are powers of two and quarters: float32 results are exact.
TEST(QuantBatchMatmulV4, MxScalesOfEveryLayout) {
  for (const Sizes& s : {Sizes{3, 5, 32}, {2, 7, 70}, {1, 600, 128}, {130, 2, 33}}) {
    const int64_t pairs = (s.k + 63) / 64;
    for (const bool t1 : {false, true}) {
      for (const bool t2 : {false, true}) {
        const Tensor x1 = Left(kE4M3, s, t1, 1), x2 = Right(kE5M2, s, t2, 2);
        const Tensor s1 = Powers(t1 ? Shape{pairs, s.m, 2} : Shape{s.m, pairs, 2}, 3);
        const Tensor s2 = Powers(t2 ? Shape{s.n, pairs, 2} : Shape{pairs, s.n, 2}, 4);
        const auto at = [&](const Tensor& scale, bool pairs_first, int64_t lines) {
          return [&scale, pairs_first, lines, pairs](int64_t line, int64_t k) {
            const int64_t pair = k / 64, half = k / 32 % 2;
            return PowerAt(scale, pairs_first ? (pair * lines + line) * 2 + half
                                              : (line * pairs + pair) * 2 + half);
          };
        };
        OpCall call = V4(x1, t1, x2, t2, 0);
        call.attrs.emplace_back("group_size", AttrValue::Int(32));
        call.inputs.push_back({"x1_scale", s1});
        call.inputs.push_back({"x2_scale", s2});
        const Tensor bias = Noise(kF32, {s.n}, 5, 4);
        std::vector<double> want = Scaled(s, x1, t1, x2, t2, at(s1, t1, s.m), at(s2, !t2, s.n));
        EXPECT_EQ(ToDoubles(MustRun(call)[0]), want) << s.m << "x" << s.n << "x" << s.k;
        for (size_t i = 0; i < want.size(); ++i) {
          want[i] += ToDoubles(bias)[i % static_cast<size_t>(s.n)];
        }
        call.inputs.push_back({"bias", bias});
        ExpectNear(MustRun(call)[0], want);
      }
    }
  }
}

TEST(QuantBatchMatmulV4, MatricesOfABatchHaveTheirOwnMxScales) {
  const Sizes s = {2, 3, 64};
  const Tensor x1 = Quarters(kHif8, {2, s.m, s.k}, 1), x2 = Quarters(kHif8, {s.k, s.n}, 2);
  const Tensor s1 = Powers({2, s.m, 1, 2}, 3), s2 = Powers({1, s.n, 2}, 4);
  OpCall call = V4(x1, false, x2, false, 0);
  call.inputs.push_back({"x1_scale", s1});
  call.inputs.push_back({"x2_scale", s2});
  const Tensor y = MustRun(call)[0];
  EXPECT_EQ(y.shape(), Shape({2, s.m, s.n}));
  const std::vector<double> all = Wide(x1);
  std::vector<double> want;
  for (int64_t b = 0; b < 2; ++b) {
    const std::vector<double> half(all.begin() + b * s.m * s.k, all.begin() + (b + 1) * s.m * s.k);
    const Tensor part = FromDoubles(kF32, {s.m, s.k}, half);
    const std::vector<double> y_b = Scaled(
        s, part, false, x2, false,
        [&](int64_t m, int64_t k) { return PowerAt(s1, (b * s.m + m) * 2 + k / 32); },
        [&](int64_t n, int64_t k) { return PowerAt(s2, n * 2 + k / 32); });
    want.insert(want.end(), y_b.begin(), y_b.end());
  }
  EXPECT_EQ(ToDoubles(y), want);
}

TEST(QuantBatchMatmulV4, WideBlocksOfFloats) {
  const Sizes s = {150, 130, 260};
  for (const bool by_row : {false, true}) {
    for (const bool t : {false, true}) {
      const Tensor x1 = Left(kE4M3, s, t, 1), x2 = Right(kE4M3, s, t, 2);
      const int64_t rows = by_row ? s.m : 2;
      const Tensor s1 = Noise(kF32, t ? Shape{3, rows} : Shape{rows, 3}, 3, 2);
      const Tensor s2 = Noise(kF32, t ? Shape{2, 3} : Shape{3, 2}, 4, 2);
      const std::vector<double> f1 = ToDoubles(s1), f2 = ToDoubles(s2);
      OpCall call = V4(x1, t, x2, t, 0);
      call.inputs.push_back({"x1_scale", s1});
      call.inputs.push_back({"x2_scale", s2});
      const auto factor = [](const std::vector<double>& f, int64_t line, int64_t lines, int64_t k,
                             bool k_first) {
        return f[static_cast<size_t>(k_first ? k / 128 * lines + line : line * 3 + k / 128)];
      };
      const std::vector<double> want = Scaled(
          s, x1, t, x2, t,
          [&](int64_t m, int64_t k) { return factor(f1, by_row ? m : m / 128, rows, k, t); },
          [&](int64_t n, int64_t k) { return factor(f2, n / 128, 2, k, !t); });
      ExpectNear(MustRun(call)[0], want, 2e-5);
    }
  }
}

TEST(QuantBatchMatmulV4, GroupsOfIntegers) {
  const Sizes s = {3, 5, 40};
  for (const bool t2 : {false, true}) {
    const Tensor x1 = Left(kInt8, s, false, 1), x2 = Right(kInt8, s, t2, 2);
    const Tensor s1 = Noise(kF32, {s.m, 1}, 3, 2);
    const Tensor s2 = Noise(kF32, t2 ? Shape{s.n, 3} : Shape{3, s.n}, 4, 2);
    const Tensor bias = Noise(kF32, {s.n}, 5, 4);
    OpCall call = V4(x1, false, x2, t2, 27);
    call.attrs.emplace_back("group_size", AttrValue::Int(16));
    call.inputs.push_back({"x1_scale", s1});
    call.inputs.push_back({"x2_scale", s2});
    call.inputs.push_back({"bias", bias});
    std::vector<double> want = Scaled(
        s, x1, false, x2, t2,
        [&](int64_t m, int64_t) { return ToDoubles(s1)[static_cast<size_t>(m)]; },
        [&](int64_t n, int64_t k) {
          return ToDoubles(s2)[static_cast<size_t>(t2 ? n * 3 + k / 16 : k / 16 * s.n + n)];
        });
    for (size_t i = 0; i < want.size(); ++i) {
      want[i] += ToDoubles(bias)[i % static_cast<size_t>(s.n)];
    }
    const Tensor y = MustRun(call)[0];
    EXPECT_EQ(y.dtype(), DataType::kBfloat16);
    ExpectNear(y, want, 1e-5);
  }
}

// Integers: the bias of integers in front, that of floats behind. Floats: always in front.
TEST(QuantBatchMatmulV4, ScalesOfColumnsAndRows) {
  const Sizes s = {4, 6, 20};
  for (const DataType dtype : {kInt8, kE4M3}) {
    const Tensor x1 = Left(dtype, s, false, 1), x2 = Right(dtype, s, false, 2);
    const Tensor s1 = Noise(kF32, {s.m}, 3, 2), s2 = Noise(kF32, {s.n}, 4, 2);
    const bool floats = dtype != kInt8;
    const Tensor bias = Noise(floats ? kF32 : DataType::kInt32, {s.n}, 5, 40);
    OpCall call = V4(x1, false, x2, false, 0);
    call.inputs.push_back({"x1_scale", s1});
    call.inputs.push_back({"x2_scale", s2});
    call.inputs.push_back({"bias", bias});
    std::vector<double> want = Scaled(s, x1, false, x2, false, One(), One());
    for (size_t i = 0; i < want.size(); ++i) {
      const size_t m = i / static_cast<size_t>(s.n), n = i % static_cast<size_t>(s.n);
      want[i] = (want[i] + ToDoubles(bias)[n]) * ToDoubles(s1)[m] * ToDoubles(s2)[n];
    }
    ExpectNear(MustRun(call)[0], want, 1e-6);
  }
}

TEST(QuantBatchMatmulV4, RoundsToInt8WithOffset) {
  const Sizes s = {2, 3, 10};
  const Tensor x1 = Left(kInt8, s, false, 1), x2 = Right(kInt8, s, false, 2);
  OpCall call = V4(x1, false, x2, false, 2);
  call.inputs.push_back({"x2_scale", FromDoubles(kF32, {1}, {0.125})});
  call.inputs.push_back({"x2_offset", FromDoubles(kF32, {1}, {3})});
  std::vector<double> want = Scaled(s, x1, false, x2, false, One(), One());
  for (double& value : want) value = value * 0.125 + 3;
  ExpectRounded(MustRun(call)[0], want);
}

TEST(QuantBatchMatmulV4, InfersWithUnknownDimensions) {
  const Sizes s = {2, 3, 64};
  const Operator& op = *BuiltinOps().Find("QuantBatchMatmulV4");
  OpCall call = V4(Left(kE4M3, s, false, 1), false, Right(kE4M3, s, false, 2), false, 0);
  call.inputs.push_back({"x1_scale", Powers({s.m, 1, 2}, 3)});
  call.inputs.push_back({"x2_scale", Powers({1, s.n, 2}, 4)});
  const Node node = op_test::MakeNode(op, call);
  const Result<OpContext> known = op_test::BindAndInfer(op, call, node);
  ASSERT_TRUE(known.ok()) << known.status().ToString();
  op_test::ExpectSoundWithUnknowns(op, *known, *known);
}

TEST(QuantBatchMatmulInplaceAdd, AddsToTheOutput) {
  const Sizes s = {5, 4, 80};
  const Tensor y = Noise(DataType::kInt32, {s.m, s.n}, 9, 50);
  const Tensor before = FromDoubles(kF32, y.shape(), ToDoubles(y));
  const auto call = [&](DataType dtype, const Tensor& s1, const Tensor& s2) {
    return OpCall{.type = "QuantBatchMatmulInplaceAdd",
                  .inputs = {{"x1", Left(dtype, s, true, 1)},
                             {"x2", Right(dtype, s, false, 2)},
                             {"x2_scale", s2},
                             {"y", before},
                             {"x1_scale", s1}},
                  .attrs = {{"transpose_x1", AttrValue::Bool(true)}}};
  };
  const auto added = [&](std::vector<double> product) {
    for (size_t i = 0; i < product.size(); ++i) product[i] += ToDoubles(before)[i];
    return product;
  };
  const Tensor m1 = Powers({2, s.m, 2}, 3), m2 = Powers({2, s.n, 2}, 4);
  const OpCall mx = call(kE5M2, m1, m2);
  EXPECT_EQ(
      ToDoubles(MustRun(mx)[0]),
      added(Scaled(
          s, mx.inputs[0].value, true, mx.inputs[1].value, false,
          [&](int64_t m, int64_t k) { return PowerAt(m1, (k / 64 * s.m + m) * 2 + k / 32 % 2); },
          [&](int64_t n, int64_t k) { return PowerAt(m2, (k / 64 * s.n + n) * 2 + k / 32 % 2); })));
  const OpCall plain = call(kHif8, FromDoubles(kF32, {1}, {0.5}), FromDoubles(kF32, {1}, {0.25}));
  const auto eighth = [](int64_t, int64_t) { return 0.125; };
  EXPECT_EQ(
      ToDoubles(MustRun(plain)[0]),
      added(Scaled(s, plain.inputs[0].value, true, plain.inputs[1].value, false, eighth, One())));
}

// Groups of 40, 0, 64 and 20 rows; the last 6 are in none.
TEST(QuantGroupedMatmulInplaceAdd, CutsTheInnerDimension) {
  const int64_t m = 3, n = 5, k = 130, groups = 4;
  const std::vector<int64_t> ends = {40, 40, 104, 124};
  const Tensor x1 = Quarters(kE4M3, {k, m}, 1), x2 = Quarters(kE4M3, {k, n}, 2);
  const Tensor before =
      FromDoubles(kF32, {groups, m, n}, ToDoubles(Noise(DataType::kInt32, {groups, m, n}, 9, 50)));
  const std::vector<double> a = Wide(x1), b = Wide(x2);
  for (const bool mx : {false, true}) {
    for (const bool counts : {false, true}) {
      const int64_t pairs = k / 64 + groups;
      const Tensor s1 = mx ? Powers({pairs, m, 2}, 3) : FromDoubles(kF32, {4}, {1, 2, 4, 0.5});
      const Tensor s2 = mx ? Powers({pairs, n, 2}, 4)
                           : FromDoubles(kF32, {groups, n}, ToDoubles(Pattern(kF32, {groups, n})));
      OpCall call = {
          .type = "QuantGroupedMatmulInplaceAdd",
          .inputs = {{"x1", x1},
                     {"x2", x2},
                     {"scale2", s2},
                     {"group_list", MakeInts(counts ? std::vector<int64_t>{40, 0, 64, 20} : ends)},
                     {"y", before},
                     {"scale1", s1}},
          .attrs = {{"group_list_type", AttrValue::Int(counts ? 1 : 0)}}};
      std::vector<double> want = ToDoubles(before);
      for (int64_t g = 0; g < groups; ++g) {
        const int64_t begin = g == 0 ? 0 : ends[static_cast<size_t>(g - 1)];
        for (int64_t i = 0; i < m * n; ++i) {
          const int64_t r = i / n, c = i % n;
          for (int64_t at = begin; at < ends[static_cast<size_t>(g)]; ++at) {
            const int64_t own = at - begin, pair = begin / 64 + g + own / 64;
            const int64_t half = own / 32 % 2;
            const double scale =
                mx ? PowerAt(s1, (pair * m + r) * 2 + half) * PowerAt(s2, (pair * n + c) * 2 + half)
                   : ToDoubles(s1)[static_cast<size_t>(g)] *
                         ToDoubles(s2)[static_cast<size_t>(g * n + c)];
            want[static_cast<size_t>(g * m * n + i)] +=
                scale * a[static_cast<size_t>(at * m + r)] * b[static_cast<size_t>(at * n + c)];
          }
        }
      }
      EXPECT_EQ(ToDoubles(MustRun(call)[0]), want) << mx << counts;
      call.inputs[3].value = MakeInts({40, 40, 104, 131});
      call.attrs = {};
      ExpectFails(call, Code::kInvalidArgument,
                  {"entry 3 of \"group_list\" is 131", "rows 104 to 131 of 130"});
      call.inputs[2].value = Noise(kF32, {groups, n + 1}, 1);
      ExpectFails(call, Code::kInvalidArgument, {"scale2", "[4,5]"});
    }
  }
}

}  // namespace
}  // namespace npumesh
