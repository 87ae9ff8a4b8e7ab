// Matrix products, softmax, norms of rows, and collectives of one rank.
#include <cmath>

#include "tests/fuzz/engine/plain_ops.h"

namespace npumesh::fuzz {
namespace {

struct Turned {
  bool x1 = false;
  bool x2 = false;
};

Turned TurnedOf(const Node& node) {
  return {node.BoolAttr("transpose_x1", false) || node.BoolAttr("adj_x1", false),
          node.BoolAttr("transpose_x2", false) || node.BoolAttr("adj_x2", false)};
}

// x[b][i][k] of the last two dimensions, read turned or not.
int64_t ElementOf(const PlainTensor& x, bool turned, int64_t matrix, int64_t row, int64_t column) {
  const int64_t rows = x.dims[x.dims.size() - 2], columns = x.dims[x.dims.size() - 1];
  return matrix * rows * columns + (turned ? column * columns + row : row * columns + column);
}

std::optional<PlainTensors> Product(const PlainCall& call) {
  const PlainTensor &a = call.in("x1"), &b = call.in("x2");
  const PlainTensor* bias = call.find("bias");
  if (a.dtype != b.dtype || a.rank() < 2 || b.rank() < 2) return std::nullopt;
  const Turned turned = TurnedOf(call.node);
  const auto size = [](const PlainTensor& x, bool first) {
    return x.dims[x.dims.size() - (first ? 2 : 1)];
  };
  const int64_t m = size(a, !turned.x1), k = size(a, turned.x1), n = size(b, turned.x2);
  if (size(b, !turned.x2) != k) return std::nullopt;
  if (bias != nullptr && static_cast<int64_t>(bias->v.size()) != n) return std::nullopt;
  const Extents batch_a(a.dims.begin(), a.dims.end() - 2),
      batch_b(b.dims.begin(), b.dims.end() - 2);
  const std::optional<Extents> batch = Joined(batch_a, batch_b);
  if (!batch) return std::nullopt;
  const auto from_a = BroadcastSources(batch_a, *batch), from_b = BroadcastSources(batch_b, *batch);
  PlainTensor y{a.dtype, *batch, {}};
  y.dims.insert(y.dims.end(), {m, n});
  bool exact = true;
  for (size_t matrix = 0; matrix < from_a.size(); ++matrix) {
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        ExactSum sum;
        for (int64_t l = 0; l < k; ++l) {
          sum.Add(a.at(ElementOf(a, turned.x1, from_a[matrix], i, l)) *
                  b.at(ElementOf(b, turned.x2, from_b[matrix], l, j)));
        }
        if (bias != nullptr) sum.Add(bias->at(j));
        exact = exact && sum.exact();
        y.v.push_back(RoundTo(y.dtype, sum.sum()));
      }
    }
  }
  if (!exact) y.trust = Trust::kRough;
  return PlainTensors{std::move(y)};
}

// Over the last axis.
std::optional<PlainTensors> Softmax(const PlainCall& call) {
  PlainTensor y = call.in("x");
  if (y.rank() == 0) return std::nullopt;
  const int64_t columns = y.dims.back();
  for (int64_t row = 0; columns > 0 && row < y.count(); row += columns) {
    Number most = y.at(row), sum = 0;
    for (int64_t i = 0; i < columns; ++i) most = std::max(most, y.at(row + i));
    for (int64_t i = 0; i < columns; ++i) sum += std::exp(y.at(row + i) - most);
    for (int64_t i = 0; i < columns; ++i) y.at(row + i) = std::exp(y.at(row + i) - most) / sum;
  }
  RoundAll(y);
  y.trust = Trust::kRough;
  return PlainTensors{std::move(y)};
}

std::optional<PlainTensors> RmsNormOf(const Node& node, const PlainTensor& x,
                                      const PlainTensor& gamma) {
  const Number epsilon = node.FloatAttr("epsilon", 1e-6f);
  if (x.rank() == 0 || gamma.rank() != 1 || gamma.count() != x.dims.back()) return std::nullopt;
  PlainTensor y = x;
  Extents rows = x.dims;
  rows.back() = 1;
  PlainTensor rstd{DataType::kFloat, rows, {}};
  const int64_t columns = gamma.count();
  for (int64_t row = 0; columns > 0 && row < y.count(); row += columns) {
    Number sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += x.at(row + i) * x.at(row + i);
    const Number scale = 1 / std::sqrt(sum / static_cast<Number>(columns) + epsilon);
    rstd.v.push_back(scale);
    for (int64_t i = 0; i < columns; ++i) y.at(row + i) = x.at(row + i) * scale * gamma.at(i);
  }
  if (columns == 0) return std::nullopt;
  RoundAll(y);
  RoundAll(rstd);
  y.trust = rstd.trust = Trust::kRough;
  return PlainTensors{std::move(y), std::move(rstd)};
}

std::optional<PlainTensors> RmsNorm(const PlainCall& call) {
  return RmsNormOf(call.node, call.in("x"), call.in("gamma"));
}

std::optional<PlainTensors> AddRmsNorm(const PlainCall& call) {
  const PlainTensor &x1 = call.in("x1"), &x2 = call.in("x2");
  if (x1.dtype != x2.dtype || x1.dims != x2.dims) return std::nullopt;
  PlainTensor sum = x1;
  for (int64_t i = 0; i < sum.count(); ++i) sum.at(i) += x2.at(i);
  RoundAll(sum);
  std::optional<PlainTensors> made = RmsNormOf(call.node, sum, call.in("gamma"));
  if (!made) return std::nullopt;
  sum.trust = Trust::kRough;
  made->push_back(std::move(sum));
  return made;
}

// Over the last axis.
std::optional<PlainTensors> LayerNorm(const PlainCall& call) {
  const PlainTensor& x = call.in("x");
  const PlainTensor *gamma = call.find("gamma"), *beta = call.find("beta");
  const Number epsilon = call.node.FloatAttr("epsilon", 1e-5f);
  if (x.rank() == 0 || call.ints("normalized_shape") != Extents{x.dims.back()}) return std::nullopt;
  const int64_t columns = x.dims.back();
  if (columns == 0) return std::nullopt;
  for (const PlainTensor* factors : {gamma, beta}) {
    if (factors != nullptr && factors->dims != Extents{columns}) return std::nullopt;
  }
  PlainTensor y = x;
  Extents rows = x.dims;
  rows.back() = 1;
  PlainTensor mean{DataType::kFloat, rows, {}}, rstd = mean;
  for (int64_t row = 0; row < x.count(); row += columns) {
    Number sum = 0, squares = 0;
    for (int64_t i = 0; i < columns; ++i) sum += x.at(row + i);
    mean.v.push_back(sum / static_cast<Number>(columns));
    for (int64_t i = 0; i < columns; ++i) {
      squares += (x.at(row + i) - mean.v.back()) * (x.at(row + i) - mean.v.back());
    }
    rstd.v.push_back(1 / std::sqrt(squares / static_cast<Number>(columns) + epsilon));
    for (int64_t i = 0; i < columns; ++i) {
      Number& value = y.at(row + i);
      value = (value - mean.v.back()) * rstd.v.back();
      if (gamma != nullptr) value *= gamma->at(i);
      if (beta != nullptr) value += beta->at(i);
    }
  }
  for (PlainTensor* each : {&y, &mean, &rstd}) {
    RoundAll(*each);
    each->trust = Trust::kRough;
  }
  return PlainTensors{std::move(y), std::move(mean), std::move(rstd)};
}

std::optional<PlainTensors> FirstInput(const PlainCall& call) {
  return PlainTensors{*call.inputs[0]};
}

}  // namespace

void AddProductOps(PlainOpTable& table) {
  for (const char* type : {"MatMul", "MatMulV2", "BatchMatMul", "BatchMatMulV2"}) {
    table[type] = {.compute = Product};
  }
  table["SoftmaxV2"] = {.compute = Softmax};
  table["RmsNorm"] = {.compute = RmsNorm};
  table["AddRmsNorm"] = {.compute = AddRmsNorm};
  table["LayerNormV4"] = {.compute = LayerNorm};
  for (const char* type : {"HcomAllReduce", "HcomAllGather", "HcomBroadcast"}) {
    table[type] = {.compute = FirstInput};
  }
}

}  // namespace npumesh::fuzz
