// QuantMatmulDequant, QuantGroupedMatmulDequant and QuantMatmulReduceSum against double.
#include <bit>

#include "tests/unit/op_types.h"
#include "tests/unit/ops/quant/quant_values.h"

namespace npumesh {
namespace {

// A row quantised to int8 by a scale, ties to even.
std::vector<double> QuantisedRow(const std::vector<double>& row, double scale) {
  std::vector<double> q;
  for (const double value : row) {
    const auto quotient = static_cast<float>(value) / static_cast<float>(scale);
    q.push_back(scale == 0 ? 0 : Clip(std::nearbyint(static_cast<double>(quotient)), kInt8));
  }
  return q;
}

bool Fed(const Tensor& tensor) {
  return tensor.dtype() != DataType::kUndefined;
}

struct Online {
  int64_t m = 5, n = 7, k = 12, groups = 1;
  bool transposed = true;
  Tensor x, w, w_scale, bias, x_scale, smooth;
  std::vector<int64_t> ends = {5};

  OpCall Call(const std::string& type) const {
    OpCall call = {.type = type,
                   .inputs = {{"x", x}, {"quantized_weight", w}, {"weight_scale", w_scale}},
                   .attrs = {{"transpose_weight", AttrValue::Bool(transposed)}}};
    if (type == "QuantGroupedMatmulDequant") call.inputs.push_back({"group_list", MakeInts(ends)});
    const auto feed = [&](const char* port, const Tensor& value) {
      if (Fed(value)) call.inputs.push_back({port, value});
    };
    feed("bias", bias);
    feed("x_scale", x_scale);
    feed("smooth_scale", smooth);
    if (Fed(x_scale) && x_scale.elements() == 1) {
      call.attrs.emplace_back("x_quant_mode", AttrValue::String("pertensor"));
    }
    return call;
  }

  std::vector<double> Want() const {
    const std::vector<double> xs = ToDoubles(x), ws = ToDoubles(w);
    std::vector<double> y(static_cast<size_t>(m * n), 0.0);
    for (int64_t r = 0; r < ends.back(); ++r) {
      int64_t g = 0;
      while (r >= ends[static_cast<size_t>(g)]) ++g;
      std::vector<double> row;
      double most = 0;
      for (int64_t i = 0; i < k; ++i) {
        row.push_back(xs[static_cast<size_t>(r * k + i)]);
        if (Fed(smooth)) row.back() *= ToDoubles(smooth)[static_cast<size_t>(i)];
        most = std::max(most, std::fabs(row.back()));
      }
      const int64_t given = Fed(x_scale) ? x_scale.elements() : 0;
      const double scale = given == 1  ? ToDoubles(x_scale)[0]
                           : given > 1 ? ToDoubles(x_scale)[static_cast<size_t>(r)]
                                       : static_cast<float>(most) / 127.0f;
      const std::vector<double> q = QuantisedRow(row, scale);
      for (int64_t c = 0; c < n; ++c) {
        double sum = Fed(bias) ? ToDoubles(bias)[static_cast<size_t>(g * n + c)] : 0;
        for (int64_t i = 0; i < k; ++i) {
          const int64_t at = g * n * k + (transposed ? c * k + i : i * n + c);
          sum += q[static_cast<size_t>(i)] * ws[static_cast<size_t>(at)];
        }
        y[static_cast<size_t>(r * n + c)] =
            sum * ToDoubles(w_scale)[static_cast<size_t>(g * n + c)] * scale;
      }
    }
    return y;
  }
};

Online Make(int64_t groups, bool transposed) {
  Online test;
  test.groups = groups;
  test.transposed = transposed;
  test.x = Noise(kF16, {test.m, test.k}, 1, 2);
  const int64_t a = transposed ? test.n : test.k, b = transposed ? test.k : test.n;
  test.w = Noise(kInt8, groups == 1 ? Shape{a, b} : Shape{groups, a, b}, 2, 100);
  test.w_scale = Noise(kF32, groups == 1 ? Shape{test.n} : Shape{groups, test.n}, 3, 0.01);
  return test;
}

TEST(QuantMatmulDequant, QuantisesRowsOrTheTensor) {
  for (const bool transposed : {true, false}) {
    Online test = Make(1, transposed);
    ExpectNear(MustRun(test.Call("QuantMatmulDequant"))[0], test.Want());
    test.bias = Noise(DataType::kInt32, {test.n}, 4, 500);
    test.smooth = Noise(kF16, {test.k}, 5, 2);
    ExpectNear(MustRun(test.Call("QuantMatmulDequant"))[0], test.Want());
    test.x_scale = FromDoubles(kF32, {5}, {0.01, 0.02, 0.015, 0.03, 0.5});
    ExpectNear(MustRun(test.Call("QuantMatmulDequant"))[0], test.Want());
    test.x_scale = FromDoubles(kF32, {1}, {0.02});
    ExpectNear(MustRun(test.Call("QuantMatmulDequant"))[0], test.Want());
  }
}

TEST(QuantMatmulDequant, PackedScalesIncludeTheScaleOfX) {
  Online test = Make(1, true);
  test.x_scale = FromDoubles(kF32, {1}, {0.02});
  const std::vector<double> want = test.Want();
  std::vector<int64_t> packed;
  for (const double scale : ToDoubles(test.w_scale)) {
    const auto folded = static_cast<float>(scale * ToDoubles(test.x_scale)[0]);
    packed.push_back(std::bit_cast<int32_t>(folded));
  }
  test.w_scale = npumesh::Make<int64_t>(DataType::kInt64, {test.n}, packed);
  ExpectNear(MustRun(test.Call("QuantMatmulDequant"))[0], want);
}

TEST(QuantGroupedMatmulDequant, EveryGroupHasItsWeight) {
  for (const bool transposed : {true, false}) {
    Online test = Make(3, transposed);
    test.ends = {2, 2, 4};  // the last row is in no group
    ExpectNear(MustRun(test.Call("QuantGroupedMatmulDequant"))[0], test.Want());
    test.ends = {1, 3, 5};
    test.bias = Noise(DataType::kInt32, {3, test.n}, 4, 500);
    ExpectNear(MustRun(test.Call("QuantGroupedMatmulDequant"))[0], test.Want());
  }
}

TEST(QuantMatmulReduceSum, SumsTheBatch) {
  const int64_t b = 3, m = 4, n = 5, k = 9;
  for (const bool by_matrix : {false, true}) {
    const Tensor x1 = Noise(kInt8, {b, m, k}, 1, 100), x2 = Noise(kInt8, {b, k, n}, 2, 100);
    const Tensor s1 = Noise(kF32, by_matrix ? Shape{b, m} : Shape{m}, 3, 0.1);
    const Tensor s2 = Noise(DataType::kBfloat16, {n}, 4, 0.1);
    const std::vector<double> a = ToDoubles(x1), w = ToDoubles(x2);
    std::vector<double> want(static_cast<size_t>(m * n), 0.0);
    for (int64_t at = 0; at < b * m * n * k; ++at) {
      const int64_t i = at % k, c = at / k % n, r = at / k / n % m, g = at / k / n / m;
      want[static_cast<size_t>(r * n + c)] +=
          a[static_cast<size_t>((g * m + r) * k + i)] *
          w[static_cast<size_t>((g * k + i) * n + c)] *
          ToDoubles(s1)[static_cast<size_t>(by_matrix ? g * m + r : r)] *
          ToDoubles(s2)[static_cast<size_t>(c)];
    }
    OpCall call = {.type = "QuantMatmulReduceSum",
                   .inputs = {{"x1", x1},
                              {"x2", x2},
                              {"dims", MakeInts({0})},
                              {"x1_scale", s1},
                              {"x2_scale", s2}},
                   .attrs = {{"dtype", AttrValue::Int(27)}}};
    const Tensor y = MustRun(call)[0];
    EXPECT_EQ(y.shape(), Shape({m, n}));
    ExpectNear(y, want, 1e-5);
    call.attrs.emplace_back("keep_dims", AttrValue::Bool(true));
    EXPECT_EQ(MustRun(call)[0].shape(), Shape({1, m, n}));
  }
}

}  // namespace
}  // namespace npumesh
