// Products of matrices.
#include <algorithm>
#include <map>

#include "graph/onnx/op_table.h"
#include "graph/onnx/rewrites.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

void LowerMatMul(Lowering& at) {
  const Value a = at.in(0), b = at.in(1);
  const bool plain = IsFloating(at.dtype(a)) && at.dtype(a) != DataType::kDouble &&
                     at.shape(a).has_rank() && at.shape(b).has_rank() && at.shape(a).rank() >= 2 &&
                     at.shape(b).rank() >= 2;
  if (!plain) return at.Out(0, GeneralProduct(at, a, b));
  const bool flat = at.shape(a).rank() == 2 && at.shape(b).rank() == 2;
  at.Out(0, at.Node(flat ? "MatMulV2" : "BatchMatMulV2", {a, b}));
}

// alpha * A' * B' + beta * C
void LowerGemm(Lowering& at) {
  const Value a = at.in(0), b = at.in(1);
  const float alpha = at.Float("alpha", 1), beta = at.Float("beta", 1);
  const bool has_c = at.has(2) && beta != 0;
  if (!at.has(2) && at.version() < 11) return (void)at.in(2);  // which it needs until then
  const Lowering::Attrs attrs = {{"transpose_x1", at.Int("transA", 0) != 0},
                                 {"transpose_x2", at.Int("transB", 0) != 0}};
  if (alpha == 1 && !has_c && IsFloating(at.dtype(a)) && at.dtype(a) != DataType::kDouble) {
    return at.Out(0, at.Node("MatMulV2", {a, b}, attrs));
  }
  Value y;
  if (IsFloating(at.dtype(a)) && at.dtype(a) != DataType::kDouble) {
    y = at.Op("MatMulV2", {a, b}, attrs);
  } else {
    y = GeneralProduct(at, at.Int("transA", 0) != 0 ? at.Transpose(a, {1, 0}) : a,
                       at.Int("transB", 0) != 0 ? at.Transpose(b, {1, 0}) : b);
  }
  if (alpha != 1) y = at.Mul(y, at.Like(alpha, y));
  if (!has_c) return at.Out(0, y);
  Value c = at.in(2);
  if (beta != 1) c = at.Mul(c, at.Like(beta, c));
  at.Out(0, at.Node("Add", {y, c}));
}

// ---- Einsum ----

// Labels of the operands and of the result, one letter for each dimension. Dimensions of "..." have
// the labels '0', '1', ..., counted from the last one.
struct EinsumLabels {
  std::vector<std::string> operands;
  std::string result;
};

std::string WithoutBlanks(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ' '), text.end());
  return text;
}

// Whether a term has letters and at most one "..." alone.
bool IsTerm(std::string term) {
  const size_t dots = term.find("...");
  if (dots != std::string::npos) term.erase(dots, 3);
  return std::all_of(term.begin(), term.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); });
}

// `term` with its dots replaced, for a tensor of this rank.
std::string Spread(const std::string& term, int rank) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  std::string spread;
  const int hidden = rank - static_cast<int>(term.size() - 3);
  for (int i = hidden - 1; i >= 0; --i) spread += static_cast<char>('0' + i);
  return term.substr(0, dots) + spread + term.substr(dots + 3);
}

// Whether each label of a result is one of an operand, and there once. `hidden`: the labels of
// "...".
bool IsResult(const std::string& result, const std::vector<std::string>& operands,
              const std::string& hidden) {
  const bool dots = result.find("...") != std::string::npos;
  if (!IsTerm(result) || (!hidden.empty() && !dots)) return false;
  return std::all_of(result.begin(), result.end(), [&](char label) {
    const bool known = std::any_of(operands.begin(), operands.end(), [&](const std::string& term) {
      return term.find(label) != std::string::npos;
    });
    return label == '.' || (known && std::count(result.begin(), result.end(), label) == 1);
  });
}

std::optional<EinsumLabels> LabelsOf(Lowering& at) {
  const std::string equation = WithoutBlanks(at.Text("equation", ""));
  const size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  if (std::count(left.begin(), left.end(), ',') + 1 != at.inputs()) {
    at.Fail(Code::kCorrupt, "equation \"{}\" has {} terms for {} inputs", Quotable(equation),
            std::count(left.begin(), left.end(), ',') + 1, at.inputs());
    return std::nullopt;
  }
  EinsumLabels labels;
  std::string hidden;
  for (int i = 0; i < at.inputs(); ++i) {
    const size_t comma = left.find(',');
    if (!IsTerm(left.substr(0, comma))) {
      at.Fail(Code::kCorrupt, "equation \"{}\": term {} is not letters and one \"...\" at most",
              Quotable(equation), i);
      return std::nullopt;
    }
    labels.operands.push_back(Spread(left.substr(0, comma), at.Rank(at.in(i))));
    left = comma == std::string::npos ? "" : left.substr(comma + 1);
    const std::string& mine = labels.operands.back();
    std::string digits;
    std::copy_if(mine.begin(), mine.end(), std::back_inserter(digits),
                 [](char c) { return c >= '0' && c <= '9'; });
    if (digits.size() > hidden.size()) hidden = digits;
    if (static_cast<int>(mine.size()) != at.Rank(at.in(i))) {
      at.Fail(Code::kCorrupt, "equation \"{}\" does not fit input {} of rank {}",
              Quotable(equation), i, at.Rank(at.in(i)));
      return std::nullopt;
    }
  }
  if (arrow != std::string::npos) {
    labels.result = equation.substr(arrow + 2);
    if (!IsResult(labels.result, labels.operands, hidden)) {
      at.Fail(Code::kCorrupt,
              "equation \"{}\": expected a result of labels that operands have, each once, and "
              "\"...\" where operands have hidden dimensions",
              Quotable(equation));
      return std::nullopt;
    }
    const size_t dots = labels.result.find("...");
    if (dots != std::string::npos) labels.result.replace(dots, 3, hidden);
    return labels;
  }
  // Without an arrow: the labels that stand once, in the order of the alphabet.
  std::map<char, int> counts;
  for (const std::string& mine : labels.operands) {
    for (const char label : mine) ++counts[label];
  }
  labels.result = hidden;
  for (const auto& [label, count] : counts) {
    if (count == 1 && (label < '0' || label > '9')) labels.result += label;
  }
  return labels;
}

// The diagonal along two dimensions with one label, which becomes the first of them.
Value Diagonal(Lowering& at, Value x, std::string& labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    const size_t other = labels.find(labels[i], i + 1);
    if (other == std::string::npos) continue;
    const int64_t dim = at.Dim(x, static_cast<int>(i));
    if (!at.Affords(dim, dim)) return x;
    std::vector<int64_t> shape(labels.size(), 1);
    shape[i] = shape[other] = dim;
    std::vector<float> eye(static_cast<size_t>(dim * dim), 0);
    for (int64_t k = 0; k < dim; ++k) eye[static_cast<size_t>(k * dim + k)] = 1;
    const Value mask = at.Cast(at.Floats(eye, Shape(shape)), at.dtype(x));
    x = at.Reduce("ReduceSum", at.Mul(x, mask), {static_cast<int64_t>(other)}, false);
    labels.erase(other, 1);
    return Diagonal(at, x, labels);
  }
  return x;
}

// x with one dimension for each label of `all`, in that order; 1 where it has none.
Value Aligned(Lowering& at, Value x, const std::string& labels, const std::string& all) {
  std::vector<int64_t> perm, missing;
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t place = labels.find(all[i]);
    if (place == std::string::npos) {
      missing.push_back(static_cast<int64_t>(i));
    } else {
      perm.push_back(static_cast<int64_t>(place));
    }
  }
  x = at.Transpose(x, perm);
  return missing.empty() ? x : at.Unsqueeze(x, missing);
}

// The labels of `mine` that `other` has, or has not, and the same of `result`.
std::string LabelsIn(const std::string& mine, const std::string& other, bool in_other,
                     const std::string& result, bool in_result) {
  std::string labels;
  for (const char label : mine) {
    const bool fits = (other.find(label) != std::string::npos) == in_other &&
                      (result.find(label) != std::string::npos) == in_result;
    if (fits) labels += label;
  }
  return labels;
}

// An operand of a product of matrices: batches, and two groups of labels that become one dimension
// each.
struct Grouped {
  Value value;
  std::string batch, first, second;
};

// x with the dimensions of `group` as one, where they are not one already.
Value Flattened(Lowering& at, const Grouped& x) {
  if (x.first.size() == 1 && x.second.size() == 1) return x.value;
  const auto batch = static_cast<int64_t>(x.batch.size());
  const auto first = static_cast<int64_t>(x.first.size());
  const auto rank = static_cast<int64_t>(x.batch.size() + x.first.size() + x.second.size());
  const Value shape = at.ShapeOf(x.value);
  const auto sizes = [&](int64_t begin, int64_t end) {
    return at.Reduce("ReduceProd", at.Slice(shape, 0, begin, end), {0}, true);
  };
  std::vector<Value> parts;
  if (batch > 0) parts.push_back(at.Slice(shape, 0, 0, batch));
  parts.push_back(sizes(batch, batch + first));
  parts.push_back(sizes(batch + first, rank));
  return at.ReshapeTo(x.value, at.Concat(parts, 0), static_cast<int>(batch) + 2);
}

// Two operands with labels to sum over are a product of matrices: labels of both and of the result
// number the matrices, the others of the result are rows of a and columns of b. nullopt: not so, or
// a type without products.
std::optional<Value> AsMatrices(Lowering& at, const EinsumLabels& labels, Value a, Value b) {
  std::string of_a = labels.operands[0], of_b = labels.operands[1];
  const std::string& result = labels.result;
  const std::string summed = LabelsIn(of_a, of_b, true, result, false);
  if (summed.empty() || at.dtype(a) != DataType::kFloat || at.dtype(b) != DataType::kFloat) {
    return std::nullopt;
  }
  for (const char label : summed) {
    const int64_t here = at.KnownSize(a, static_cast<int>(of_a.find(label)));
    const int64_t there = at.KnownSize(b, static_cast<int>(of_b.find(label)));
    if (here != there && here >= 0 && there >= 0) return std::nullopt;  // one is broadcast
  }
  // What only one operand has and nothing asks for is summed first.
  const auto reduced = [&](Value x, std::string& mine, const std::string& other) {
    std::vector<int64_t> axes;
    const std::string gone = LabelsIn(mine, other, false, result, false);
    for (const char label : gone) axes.push_back(static_cast<int64_t>(mine.find(label)));
    std::erase_if(mine, [&](char label) { return gone.find(label) != std::string::npos; });
    return axes.empty() ? x : at.Reduce("ReduceSum", x, axes, false);
  };
  const std::string whole_a = of_a;
  a = reduced(a, of_a, of_b);
  b = reduced(b, of_b, whole_a);
  const std::string batch = LabelsIn(of_a, of_b, true, result, true);
  const std::string rows = LabelsIn(of_a, of_b, false, result, true);
  const std::string columns = LabelsIn(of_b, of_a, false, result, true);
  const auto grouped = [&](Value x, const std::string& mine, const std::string& first,
                           const std::string& second) {
    return Flattened(at, {Aligned(at, x, mine, batch + first + second), batch, first, second});
  };
  Value y = at.MatMul(grouped(a, of_a, rows, summed), grouped(b, of_b, summed, columns));
  if (rows.size() != 1 || columns.size() != 1) {
    // The sizes of the groups again.
    std::vector<Value> parts;
    const auto count = [](const std::string& group) { return static_cast<int64_t>(group.size()); };
    if (!batch.empty()) parts.push_back(at.Slice(at.ShapeOf(y), 0, 0, count(batch)));
    const auto sizes = [&](Value x, const std::string& mine, const std::string& group) {
      for (const char label : group) {
        parts.push_back(at.DimOf(x, static_cast<int64_t>(mine.find(label))));
      }
    };
    sizes(a, of_a, rows);
    sizes(b, of_b, columns);
    const auto rank = static_cast<int>(result.size());
    y = parts.empty() ? at.Reshape(y, {}) : at.ReshapeTo(y, at.Concat(parts, 0), rank);
  }
  return Aligned(at, y, batch + rows + columns, result);
}

// The sum over all labels that the result lacks, of the product of all operands.
void LowerEinsum(Lowering& at) {
  std::optional<EinsumLabels> labels = LabelsOf(at);
  if (!labels || !at.ok()) return;
  if (at.inputs() == 2) {
    EinsumLabels own = *labels;
    const Value a = Diagonal(at, at.Wide(at.in(0)), own.operands[0]);
    const Value b = Diagonal(at, at.Wide(at.in(1)), own.operands[1]);
    if (!at.ok()) return;
    if (const std::optional<Value> y = AsMatrices(at, own, a, b)) {
      return at.Out(0, at.Cast(*y, at.dtype(at.in(0))));
    }
  }
  std::string all = labels->result;
  for (const std::string& mine : labels->operands) {
    for (const char label : mine) {
      if (all.find(label) == std::string::npos) all += label;
    }
  }
  Value y;
  for (int i = 0; i < at.inputs(); ++i) {
    std::string& mine = labels->operands[static_cast<size_t>(i)];
    const Value x = Diagonal(at, at.Wide(at.in(i)), mine);
    const Value operand = Aligned(at, x, mine, all);
    y = i == 0 ? operand : at.Mul(y, operand);
  }
  std::vector<int64_t> summed;
  for (size_t i = labels->result.size(); i < all.size(); ++i) {
    summed.push_back(static_cast<int64_t>(i));
  }
  if (!summed.empty()) y = at.Reduce("ReduceSum", y, summed, false);
  at.Out(0, at.Cast(y, at.dtype(at.in(0))));
}

// ---- determinant ----

// By the first row; the matrices have n rows.
Value Determinant(Lowering& at, Value x, int64_t n) {
  if (n == 1) return at.Squeeze(x, {-1, -2});
  Value sum;
  for (int64_t j = 0; j < n; ++j) {
    std::vector<int64_t> others;
    for (int64_t k = 0; k < n; ++k) {
      if (k != j) others.push_back(k);
    }
    const Value entry = at.Squeeze(at.Slice(at.Slice(x, -2, 0, 1), -1, j, j + 1), {-1, -2});
    const Value minor = at.Gather(at.Slice(x, -2, 1, n), at.Ints(others), -1);
    const Value term = at.Mul(entry, Determinant(at, minor, n - 1));
    sum = j == 0 ? term : at.Binary(j % 2 == 0 ? "Add" : "Sub", sum, term);
  }
  return sum;
}

void LowerDet(Lowering& at) {
  constexpr int64_t kMostRows = 5;  // n! terms
  const Value x = at.in(0);
  const int64_t n = at.Dim(x, at.Rank(x) - 1);
  if (n < 1 || n > kMostRows)
    return at.Refuse("a determinant of {} rows; npumesh expands 1 to {}", n, kMostRows);
  if (at.ok()) at.Out(0, Determinant(at, x, n));
}

}  // namespace

void AddProductRows(std::vector<OnnxOp>& rows) {
  const OnnxOp all[] = {
      {"Det", 11, LowerDet, "Mul, Add", "R"},
      {"Einsum", 12, LowerEinsum, "TransposeD, BatchMatMulV2; Mul, ReduceSumD",
       "T=N... equation:string!"},
      {"Gemm", 7, LowerGemm, "MatMulV2, Add",
       "T=RIK T T? alpha:float beta:float transA:int transB:int"},
      {"MatMul", 1, LowerMatMul, "MatMulV2, BatchMatMulV2", "T=RIK T"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
