// FusedMatMul, FullyConnection, AddLora, TransposeBatchMatMul and TransposeQuantBatchMatMul against
// sums in double.
#include <bit>
#include <cmath>

#include "tests/unit/op_reference.h"
#include "tests/unit/ops/quant/small_values.h"

namespace npumesh {
namespace {

constexpr DataType kE4M3 = DataType::kFloat8E4M3Fn;

// x[m, k] w[k, n] of values in C order.
std::vector<double> Product(const std::vector<double>& x, const std::vector<double>& w, int64_t m,
                            int64_t n, int64_t k) {
  std::vector<double> y(static_cast<size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m * n * k; ++i) {
    const int64_t at = i % k, c = i / k % n, r = i / k / n;
    y[static_cast<size_t>(r * n + c)] +=
        x[static_cast<size_t>(r * k + at)] * w[static_cast<size_t>(at * n + c)];
  }
  return y;
}

double Gelu(double x, bool tanh) {
  if (!tanh) return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

// One rounding at the end: 16-bit results are within half a unit of the exact ones.
TEST(FusedMatMul, EveryFollower) {
  const int64_t m = 3, n = 700, k = 8;
  for (const DataType dtype : {kF32, kF16, kBf16}) {
    const Tensor x1 = Noise(dtype, {m, k}, 1), x2 = Noise(dtype, {k, n}, 2);
    const Tensor x3 = Noise(dtype, {m, n}, 3, 2), bias = Noise(dtype, {n}, 4);
    std::vector<double> sums = Product(ToDoubles(x1), ToDoubles(x2), m, n, k);
    for (size_t i = 0; i < sums.size(); ++i) {
      sums[i] += ToDoubles(bias)[i % static_cast<size_t>(n)];
    }
    const std::vector<double> other = ToDoubles(x3);
    for (const std::string type : {"", "relu", "add", "mul", "gelu_erf", "gelu_tanh", "16cast32"}) {
      OpCall call = {.type = "FusedMatMul",
                     .inputs = {{"x1", x1}, {"x2", x2}, {"bias", bias}},
                     .attrs = {{"fused_op_type", AttrValue::String(type)}}};
      if (type == "add" || type == "mul") call.inputs.push_back({"x3", x3});
      std::vector<double> want = sums;
      for (size_t i = 0; i < want.size(); ++i) {
        double& value = want[i];
        if (type == "relu") value = std::max(value, 0.0);
        if (type == "add") value += other[i];
        if (type == "mul") value *= other[i];
        if (type.starts_with("gelu")) value = Gelu(value, type == "gelu_tanh");
      }
      const Tensor y = Results(call)[0];
      EXPECT_EQ(y.dtype(), type == "16cast32" ? kF32 : dtype);
      ExpectNear(y, want, 3e-6);
    }
  }
}

TEST(FusedMatMul, TransposesAndRefuses) {
  const Tensor x1 = Noise(kF32, {4, 3}, 1), x2 = Noise(kF32, {4, 2}, 2);
  OpCall call = {.type = "FusedMatMul",
                 .inputs = {{"x1", x1}, {"x2", x2}},
                 .attrs = {{"transpose_x1", AttrValue::Bool(true)},
                           {"fused_op_type", AttrValue::String("relu")}}};
  const std::vector<double> a = ToDoubles(x1);
  std::vector<double> turned;
  for (size_t i = 0; i < 12; ++i) turned.push_back(a[i % 4 * 3 + i / 4]);
  std::vector<double> want = Product(turned, ToDoubles(x2), 3, 2, 4);
  for (double& value : want) value = std::max(value, 0.0);
  ExpectNear(Results(call)[0], want);
  call.attrs[1].second = AttrValue::String("silu");
  ExpectFails(call, Code::kInvalidArgument, {"fused_op_type is \"silu\""});
  call.attrs[1].second = AttrValue::String("add");
  ExpectFails(call, Code::kInvalidArgument, {"\"x3\" is missing"});
  call.inputs.push_back({"x3", x2});
  ExpectFails(call, Code::kInvalidArgument, {"\"x3\" is float32[4,2]", "float32[3,2]"});
}

TEST(AddLora, EveryRowHasItsMatrices) {
  const int64_t rows = 4, inner = 6, rank = 2, slice = 5, width = 9, weights = 3, layers = 2;
  const std::vector<int32_t> picks = {2, -1, 0, 2};
  const Tensor y = Noise(kF16, {rows, width}, 1), x = Noise(kF16, {rows, inner}, 2);
  const Tensor a = Noise(kF16, {weights, layers, rank, inner}, 3);
  const Tensor indices = Make<int32_t>(DataType::kInt32, {rows}, picks);
  for (const bool low_rank : {true, false}) {
    const int64_t from = low_rank ? rank : inner;
    const Tensor b = Noise(kF16, {weights, layers, slice, from}, 4);
    OpCall call = {.type = "AddLora",
                   .inputs = {{"y", y}, {"x", x}, {"weightB", b}, {"indices", indices}},
                   .attrs = {{"layer_idx", AttrValue::Int(1)},
                             {"scale", AttrValue::Float(0.5f)},
                             {"y_offset", AttrValue::Int(3)},
                             {"y_slice_size", AttrValue::Int(slice)}}};
    if (low_rank) call.inputs.push_back({"weightA", a});
    std::vector<double> want = ToDoubles(y);
    const std::vector<double> av = ToDoubles(a), bv = ToDoubles(b), xv = ToDoubles(x);
    for (int64_t r = 0; r < rows; ++r) {
      if (picks[static_cast<size_t>(r)] < 0) continue;
      const int64_t matrix = picks[static_cast<size_t>(r)] * layers + 1;
      for (int64_t h = 0; h < slice; ++h) {
        double sum = 0;
        for (int64_t i = 0; i < from; ++i) {
          double z = low_rank ? 0 : xv[static_cast<size_t>(r * inner + i)];
          for (int64_t j = 0; low_rank && j < inner; ++j) {
            z += av[static_cast<size_t>((matrix * rank + i) * inner + j)] *
                 xv[static_cast<size_t>(r * inner + j)];
          }
          sum += z * bv[static_cast<size_t>((matrix * slice + h) * from + i)];
        }
        want[static_cast<size_t>(r * width + 3 + h)] += 0.5 * sum;
      }
    }
    ExpectNear(Results(call)[0], want);
  }
}

// The tensor with its dimensions in the order of `perm`.
std::vector<double> Permuted(const std::vector<double>& values, const Shape& shape,
                             const std::vector<int64_t>& perm) {
  const auto dim = [&](size_t i) { return shape[static_cast<int>(perm[i])]; };
  const Shape to({dim(0), dim(1), dim(2)});
  std::vector<double> result;
  for (const std::vector<int64_t>& at : Positions(to)) {
    std::vector<int64_t> from(3);
    for (size_t i = 0; i < 3; ++i) from[static_cast<size_t>(perm[i])] = at[i];
    result.push_back(values[Index(shape, from)]);
  }
  return result;
}

// The products of a batch as [batch, m, n].
std::vector<double> Batch(const std::vector<double>& x, const std::vector<double>& w, int64_t batch,
                          int64_t m, int64_t n, int64_t k) {
  std::vector<double> all;
  for (int64_t b = 0; b < batch; ++b) {
    const std::vector<double> y =
        Product({x.begin() + b * m * k, x.begin() + (b + 1) * m * k},
                {w.begin() + b * k * n, w.begin() + (b + 1) * k * n}, m, n, k);
    all.insert(all.end(), y.begin(), y.end());
  }
  return all;
}

using Perm = std::vector<int64_t>;

Shape Stored(const Shape& seen, const Perm& perm) {
  Shape stored({0, 0, 0});
  for (int i = 0; i < 3; ++i) stored[static_cast<int>(perm[static_cast<size_t>(i)])] = seen[i];
  return stored;
}

TEST(TransposeBatchMatMul, EveryPermutation) {
  const int64_t batch = 4, m = 3, n = 5, k = 6;
  for (const DataType dtype : {kF32, kF16, kBf16}) {
    for (const Perm& p1 : {Perm{0, 1, 2}, Perm{1, 0, 2}, Perm{0, 2, 1}, Perm{1, 2, 0}}) {
      for (const Perm& p2 : {Perm{0, 1, 2}, Perm{0, 2, 1}, Perm{1, 0, 2}}) {
        for (const Perm& py : {Perm{0, 1, 2}, Perm{1, 0, 2}, Perm{2, 1, 0}}) {
          const Tensor x1 = Pattern(dtype, Stored({batch, m, k}, p1), 1);
          const Tensor x2 = Pattern(dtype, Stored({batch, k, n}, p2), 2);
          const Tensor bias = Pattern(dtype, {n}, 3);
          std::vector<double> y = Batch(Permuted(ToDoubles(x1), x1.shape(), p1),
                                        Permuted(ToDoubles(x2), x2.shape(), p2), batch, m, n, k);
          for (size_t i = 0; i < y.size(); ++i) y[i] += ToDoubles(bias)[i % 5];
          const OpCall call = {.type = "TransposeBatchMatMul",
                               .inputs = {{"x1", x1}, {"x2", x2}, {"bias", bias}},
                               .attrs = {{"perm_x1", AttrValue::Ints(p1)},
                                         {"perm_x2", AttrValue::Ints(p2)},
                                         {"perm_y", AttrValue::Ints(py)}}};
          const std::vector<double> want = Permuted(y, {batch, m, n}, py);
          EXPECT_EQ(ToDoubles(Results(call)[0]), want) << Name(dtype);
        }
      }
    }
  }
}

TEST(TransposeBatchMatMul, QuantisesWithPackedScales) {
  const int64_t batch = 2, m = 3, n = 4, k = 5;
  const Tensor x1 = Noise(kF16, {batch, m, k}, 1, 4), x2 = Noise(kF16, {batch, k, n}, 2, 4);
  std::vector<uint64_t> packed;
  std::vector<double> scales;
  for (int64_t i = 0; i < batch * n; ++i) {
    scales.push_back(0.25 * static_cast<double>(i + 1));
    const auto scale = static_cast<float>(scales.back());
    packed.push_back(uint64_t{1} << 46 | std::bit_cast<uint32_t>(scale));
  }
  const OpCall call = {
      .type = "TransposeBatchMatMul",
      .inputs = {{"x1", x1},
                 {"x2", x2},
                 {"scale", Make<uint64_t>(DataType::kUint64, {batch * n}, packed)}},
      .attrs = {{"perm_y", AttrValue::Ints({1, 0, 2})}}};
  const std::vector<double> y = Batch(ToDoubles(x1), ToDoubles(x2), batch, m, n, k);
  std::vector<double> want;
  for (int64_t i = 0; i < m * batch * n; ++i) {
    const int64_t c = i % (batch * n), r = i / (batch * n);
    want.push_back(y[static_cast<size_t>((c / n * m + r) * n + c % n)] *
                   scales[static_cast<size_t>(c)]);
  }
  const Tensor got = Results(call)[0];
  EXPECT_EQ(got.type(), (TensorType{DataType::kInt8, {m, 1, batch * n}}));
  ExpectRounded(got, want);
}

TEST(TransposeQuantBatchMatMul, ScalesOfRowsAndColumnsOrBlocks) {
  const int64_t batch = 3, m = 2, n = 5, k = 64;
  for (const bool turned : {false, true}) {
    const Tensor x1 = Quarters(kE4M3, {m, batch, k}, 1);
    const Tensor x2 = Quarters(kE4M3, turned ? Shape{batch, n, k} : Shape{batch, k, n}, 2);
    std::vector<double> a = Permuted(Wide(x1), x1.shape(), {1, 0, 2});
    std::vector<double> b = Wide(x2);
    if (turned) b = Permuted(b, x2.shape(), {0, 2, 1});
    OpCall call = {.type = "TransposeQuantBatchMatMul",
                   .inputs = {{"x1", x1}, {"x2", x2}},
                   .attrs = {{"dtype", AttrValue::Int(27)},
                             {"perm_x2", AttrValue::Ints(turned ? Perm{0, 2, 1} : Perm{0, 1, 2})}}};
    OpCall rows = call;
    const Tensor s1 = Noise(kF32, {m}, 3), s2 = Noise(kF32, {n}, 4);
    rows.inputs.push_back({"x1_scale", s1});
    rows.inputs.push_back({"x2_scale", s2});
    std::vector<double> y = Batch(a, b, batch, m, n, k);
    for (int64_t i = 0; i < batch * m * n; ++i) {
      y[static_cast<size_t>(i)] *=
          ToDoubles(s1)[static_cast<size_t>(i / n % m)] * ToDoubles(s2)[static_cast<size_t>(i % n)];
    }
    ExpectNear(Results(rows)[0], Permuted(y, {batch, m, n}, {1, 0, 2}), 1e-5);

    const Tensor p1 = Powers({m, batch, 1, 2}, 3);
    const Tensor p2 = Powers(turned ? Shape{batch, n, 1, 2} : Shape{batch, 1, n, 2}, 4);
    for (int64_t i = 0; i < batch * m * k; ++i) {
      const int64_t at = i % k, r = i / k % m, g = i / k / m;
      a[static_cast<size_t>(i)] *= PowerAt(p1, (r * batch + g) * 2 + at / 32);
    }
    for (int64_t i = 0; i < batch * k * n; ++i) {
      const int64_t c = i % n, at = i / n % k, g = i / n / k;
      b[static_cast<size_t>(i)] *= PowerAt(p2, (g * n + c) * 2 + at / 32);
    }
    call.inputs.push_back({"x1_scale", p1});
    call.inputs.push_back({"x2_scale", p2});
    const std::vector<double> want =
        Permuted(Batch(a, b, batch, m, n, k), {batch, m, n}, {1, 0, 2});
    ExpectNear(Results(call)[0], want, 0);
    if (!turned) {
      call.attrs[1].second = AttrValue::Ints({});
      ExpectNear(Results(call)[0], want, 0);
    }
  }
}

}  // namespace
}  // namespace npumesh
