// The rotary embeddings against their definition by pairs.
#include "tests/unit/ops/attention/attention_reference.h"

namespace npumesh {
namespace {

// The vector `x` rotated as the reference writes it: x * cos + rot(x) * sin.
std::vector<double> Rotated(const std::vector<double>& x, const std::vector<double>& cos,
                            const std::vector<double>& sin, int mode) {
  const size_t n = x.size();
  std::vector<double> base = x;
  std::vector<double> rot(n);
  const auto halves = [&](size_t begin, size_t size) {
    for (size_t i = 0; i < size / 2; ++i) {
      rot[begin + i] = -base[begin + size / 2 + i];
      rot[begin + size / 2 + i] = base[begin + i];
    }
  };
  if (mode == 3) {
    for (size_t i = 0; i < n / 2; ++i) {
      base[i] = x[2 * i];
      base[n / 2 + i] = x[2 * i + 1];
    }
  }
  if (mode == 0 || mode == 3) halves(0, n);
  if (mode == 1) {
    for (size_t i = 0; i < n; i += 2) halves(i, 2);
  }
  if (mode == 2) {
    halves(0, n / 2);
    halves(n / 2, n / 2);
  }
  std::vector<double> y(n);
  for (size_t i = 0; i < n; ++i) y[i] = base[i] * cos[i] + rot[i] * sin[i];
  return y;
}

// The same for every vector of a tensor whose tables broadcast to it.
std::vector<double> RotatedTensor(const Tensor& x, const Tensor& cos, const Tensor& sin, int mode) {
  const std::vector<double> from = ToDoubles(x);
  std::vector<double> y(from.size());
  const int64_t width = x.shape().dims().back();
  Shape rows = x.shape();
  rows.mutable_dims().pop_back();
  for (const auto& at : Positions(rows)) {
    std::vector<int64_t> table_at;
    const int skip = x.shape().rank() - cos.shape().rank();
    for (int i = 0; i + 1 < cos.shape().rank(); ++i) {
      table_at.push_back(cos.shape()[i] == 1 ? 0 : at[static_cast<size_t>(i + skip)]);
    }
    const auto vector_at = [&](const Tensor& t, std::vector<int64_t> position) {
      position.push_back(0);
      const auto begin = static_cast<std::ptrdiff_t>(Index(t.shape(), position));
      const std::vector<double> all = ToDoubles(t);
      return std::vector<double>(all.begin() + begin, all.begin() + begin + width);
    };
    const std::vector<double> row =
        Rotated(vector_at(x, at), vector_at(cos, table_at), vector_at(sin, table_at), mode);
    std::copy(row.begin(), row.end(),
              y.begin() + static_cast<std::ptrdiff_t>(Index(rows, at)) * width);
  }
  return y;
}

void ExpectRotated(const Tensor& got, const Tensor& x, const Tensor& cos, const Tensor& sin,
                   int mode) {
  ASSERT_EQ(got.type(), x.type());
  const std::vector<double> want = RotatedTensor(x, cos, sin, mode);
  const std::vector<double> values = ToDoubles(got);
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(values[i], want[i], 0.51 * Ulp(got.dtype(), want[i]) + 1e-6) << i;
  }
}

Tensor Random(DataType dtype, const Shape& shape, int seed) {
  return FromDoubles(dtype, shape, Noise(dtype, 1, 1, 1, shape.elements(), seed).values);
}

TEST(RotaryPositionEmbedding, RotatesInEveryMode) {
  for (const int mode : {0, 1, 2, 3}) {
    for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
      for (const auto& [x, table] :
           std::vector<std::pair<Shape, Shape>>{{{2, 3, 5, 8}, {1, 1, 5, 8}},
                                                {{2, 5, 3, 8}, {1, 5, 1, 8}},
                                                {{4, 3, 12}, {4, 1, 12}},
                                                {{2, 3, 4}, {2, 3, 4}},
                                                {{3, 8}, {8}},
                                                {{0, 8}, {1, 8}}}) {
        SCOPED_TRACE(fmt::format("mode {} {}", mode, x.ToString()));
        const Tensor input = Random(dtype, x, 1);
        const Tensor cos = Random(dtype, table, 2);
        const Tensor sin = Random(dtype, table, 3);
        ExpectRotated(RunOne({.type = "RotaryPositionEmbedding",
                              .inputs = {{"x", input}, {"cos", cos}, {"sin", sin}},
                              .attrs = {{"mode", AttrValue::Int(mode)}}}),
                      input, cos, sin, mode);
      }
    }
  }
}

TEST(RotaryPositionEmbedding, OtherNames) {
  const Tensor x = Random(DataType::kFloat16, {2, 3, 4, 64}, 1);
  const Tensor cos = Random(DataType::kFloat16, {2, 1, 4, 64}, 2);
  const Tensor sin = Random(DataType::kFloat16, {2, 1, 4, 64}, 3);
  ExpectRotated(RunOne({.type = "RotaryMul", .inputs = {{"x", x}, {"r1", cos}, {"r2", sin}}}), x,
                cos, sin, 0);
  ExpectRotated(
      RunOne({.type = "InterleaveRope", .inputs = {{"x", x}, {"cos", cos}, {"sin", sin}}}), x, cos,
      sin, 3);
}

TEST(ApplyRotaryPosEmb, RotatesQueryAndKeyInPlace) {
  struct Case {
    int64_t layout;
    Shape query, key, table;
  };
  const std::vector<Case> cases = {{1, {2, 3, 4, 8}, {2, 3, 1, 8}, {2, 3, 1, 8}},
                                   {2, {3, 2, 4, 8}, {3, 2, 2, 8}, {3, 2, 1, 8}},
                                   {3, {2, 4, 3, 8}, {2, 2, 3, 8}, {2, 1, 3, 8}},
                                   {4, {6, 4, 8}, {6, 2, 8}, {6, 1, 8}}};
  const std::vector<std::string> modes = {"half", "interleave", "quarter"};
  for (const Case& c : cases) {
    for (size_t mode = 0; mode < modes.size(); ++mode) {
      const Tensor query = Random(DataType::kBfloat16, c.query, 1);
      const Tensor key = Random(DataType::kBfloat16, c.key, 2);
      const Tensor cos = Random(DataType::kBfloat16, c.table, 3);
      const Tensor sin = Random(DataType::kBfloat16, c.table, 4);
      const Result<std::vector<Tensor>> out =
          RunOp({.type = "ApplyRotaryPosEmb",
                 .inputs = {{"query", query}, {"key", key}, {"cos", cos}, {"sin", sin}},
                 .attrs = {{"layout", AttrValue::Int(c.layout)},
                           {"rotary_mode", AttrValue::String(modes[mode])}}});
      ASSERT_TRUE(out.ok()) << out.status().ToString();
      ExpectRotated((*out)[0], query, cos, sin, static_cast<int>(mode));
      ExpectRotated((*out)[1], key, cos, sin, static_cast<int>(mode));
    }
  }
}

}  // namespace
}  // namespace npumesh
