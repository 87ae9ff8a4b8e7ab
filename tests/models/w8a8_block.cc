#include "tests/models/w8a8_block.h"

#include <algorithm>
#include <cmath>

#include "tests/models/aten_graph.h"
#include "tests/models/plain_math.h"

namespace npumesh::models {
namespace {

constexpr int64_t kFloat16Code = 1, kInt8Code = 2, kInt32Code = 3;

template <typename T>
Value Constant(AtenGraph& g, const std::string& name, DataType dtype, Shape shape,
               const std::vector<T>& values) {
  return g.Weight(name, Tensor::FromVector<T>({dtype, std::move(shape)}, values));
}

int8_t Clipped(double value) {
  return static_cast<int8_t>(std::clamp(std::nearbyint(value), -128.0, 127.0));
}

// q [rows, in] times w [in, out], or its transpose [out, in].
std::vector<int32_t> IntegerProduct(const std::vector<int8_t>& q, const std::vector<int8_t>& w,
                                    int64_t in, int64_t out, bool transposed) {
  const int64_t rows = static_cast<int64_t>(q.size()) / in;
  std::vector<int32_t> y(At(rows * out));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t i = 0; i < in; ++i) {
        y[At(r * out + o)] += q[At(r * in + i)] * w[At(transposed ? o * in + i : i * out + o)];
      }
    }
  }
  return y;
}

// Rows of x to int8 by max|row| / 127.
void QuantiseRows(const std::vector<double>& x, int64_t width, std::vector<int8_t>& q,
                  std::vector<float>& scales, double* nearest_tie) {
  for (size_t row = 0; row < x.size(); row += At(width)) {
    double largest = 0;
    for (int64_t i = 0; i < width; ++i) largest = std::max(largest, std::abs(x[row + At(i)]));
    scales.push_back(static_cast<float>(largest) / 127.0f);
    for (int64_t i = 0; i < width; ++i) {
      const double exact = largest == 0 ? 0 : x[row + At(i)] * 127 / largest;
      const double over = std::abs(exact - std::trunc(exact));
      *nearest_tie = std::min(*nearest_tie, std::abs(over - 0.5));
      q.push_back(Clipped(exact));
    }
  }
}

}  // namespace

QuantWeights MakeQuantWeights() {
  const auto integers = [](int64_t count, int64_t factor, int64_t range) {
    std::vector<int8_t> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(static_cast<int8_t>((i * factor + i / 5) % (2 * range + 1) - range));
    }
    return values;
  };
  const auto scales = [](int64_t count, int exponent) {
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(std::ldexp(1.0f, exponent - static_cast<int>(i % 3)));
    }
    return values;
  };
  QuantWeights weights;
  weights.w0 = integers(kBlockWidth * kBlockWidth, 37, 20);
  for (int32_t i = 0; i < kBlockWidth; ++i) weights.bias.push_back(i * 31 % 101 - 50);
  weights.scale0 = scales(kBlockWidth, -11);
  weights.w1 = integers(kBlockWidth * 2 * kBlockInner, 53, 100);
  weights.scale1 = scales(2 * kBlockInner, -9);
  weights.w2 = integers(kBlockInner * kBlockWidth, 29, 127);
  weights.scale2 = scales(kBlockWidth, -8);
  return weights;
}

std::vector<Float16> BlockInput(int64_t tokens) {
  std::vector<Float16> x;
  for (int64_t i = 0; i < tokens * kBlockWidth; ++i) {
    x.push_back(Float16(static_cast<float>((i * 57 + i / 7) % 251 - 125) / 32));
  }
  return x;
}

Result<Model> BuildW8a8Block(const QuantWeights& weights) {
  AtenGraph g("w8a8");
  const Value x = g.Input("x", {DataType::kFloat16, {-1, kBlockWidth}});
  const auto scalar = [&](float value) {
    return Constant<float>(g, "Const", DataType::kFloat, {1}, {value});
  };
  const Value q0 = g.Op("AscendQuantV2",
                        {{"x", x},
                         {"scale", scalar(weights.static_scale)},
                         {"offset", scalar(weights.static_offset)}},
                        {{"sqrt_mode", AttrValue::Bool(false)},
                         {"round_mode", AttrValue::String("round")},
                         {"dst_type", AttrValue::Int(kInt8Code)},
                         {"axis", AttrValue::Int(-1)}});
  const Value packed =
      g.Op("TransQuantParamV2",
           {{"scale", Constant(g, "scale0", DataType::kFloat, {kBlockWidth}, weights.scale0)}});
  const Value w0 = Constant(g, "w0", DataType::kInt8, {kBlockWidth, kBlockWidth}, weights.w0);
  const Value attended =
      g.Op("QuantBatchMatmulV3",
           {{"x1", q0},
            {"x2", g.T(w0)},
            {"scale", packed},
            {"bias", Constant(g, "bias", DataType::kInt32, {kBlockWidth}, weights.bias)}},
           {{"dtype", AttrValue::Int(kFloat16Code)}});
  const Value h = g.Add(x, attended);
  const Value q1 = g.Op("DynamicQuant", {{"x", h}});
  const Value scale1 = Constant(g, "scale1", DataType::kFloat, {2 * kBlockInner}, weights.scale1);
  const Value a =
      g.Op("QuantBatchMatmulV3",
           {{"x1", q1},
            {"x2", Constant(g, "w1", DataType::kInt8, {kBlockWidth, 2 * kBlockInner}, weights.w1)},
            {"scale", scale1}},
           {{"dtype", AttrValue::Int(kInt32Code)}});
  const Value q2 = g.Op(
      "DequantSwigluQuant",
      {{"x", a}, {"weight_scale", scale1}, {"activation_scale", g.Port(q1, 1)}},
      {{"activate_left", AttrValue::Bool(true)}, {"quant_mode", AttrValue::String("dynamic")}});
  const Value made =
      g.Op("QuantBatchMatmulV3",
           {{"x1", q2},
            {"x2", Constant(g, "w2", DataType::kInt8, {kBlockInner, kBlockWidth}, weights.w2)},
            {"scale", Constant(g, "scale2", DataType::kFloat, {kBlockWidth}, weights.scale2)},
            {"pertoken_scale", g.Port(q2, 1)}},
           {{"dtype", AttrValue::Int(kFloat16Code)}});
  g.Output({g.Add(h, made), q0, q1, g.Port(q1, 1), a, q2, g.Port(q2, 1)});
  return g.Build();
}

BlockResult BlockReference(const QuantWeights& weights, const std::vector<Float16>& x) {
  BlockResult result;
  for (const Float16 value : x) {
    result.q0.push_back(
        Clipped(static_cast<float>(value) * weights.static_scale + weights.static_offset));
  }
  const std::vector<int32_t> sums =
      IntegerProduct(result.q0, weights.w0, kBlockWidth, kBlockWidth, true);
  std::vector<double> h;
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t column = i % At(kBlockWidth);
    const Float16 attended(static_cast<float>(sums[i] + weights.bias[column]) *
                           weights.scale0[column]);
    const Float16 sum(static_cast<float>(x[i]) + static_cast<float>(attended));
    h.push_back(static_cast<double>(static_cast<float>(sum)));
  }
  QuantiseRows(h, kBlockWidth, result.q1, result.s1, &result.nearest_tie);
  result.a = IntegerProduct(result.q1, weights.w1, kBlockWidth, 2 * kBlockInner, false);
  std::vector<double> inner;
  for (size_t row = 0; row < result.s1.size(); ++row) {
    const auto at = [&](int64_t i) {
      return static_cast<double>(result.a[row * At(2 * kBlockInner) + At(i)]) *
             static_cast<double>(weights.scale1[At(i)]) * static_cast<double>(result.s1[row]);
    };
    for (int64_t i = 0; i < kBlockInner; ++i) {
      inner.push_back(SiluOf(at(i)).value * at(i + kBlockInner));
    }
  }
  QuantiseRows(inner, kBlockInner, result.q2, result.s2, &result.nearest_tie);
  const std::vector<int32_t> made =
      IntegerProduct(result.q2, weights.w2, kBlockInner, kBlockWidth, false);
  for (size_t i = 0; i < made.size(); ++i) {
    const Float16 part(static_cast<float>(made[i]) * weights.scale2[i % At(kBlockWidth)] *
                       result.s2[i / At(kBlockWidth)]);
    result.y.push_back(Float16(static_cast<float>(h[i]) + static_cast<float>(part)));
  }
  return result;
}

}  // namespace npumesh::models
