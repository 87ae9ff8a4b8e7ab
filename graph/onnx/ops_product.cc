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

// The sum over all labels that the result lacks, of the product of all operands.
void LowerEinsum(Lowering& at) {
  std::optional<EinsumLabels> labels = LabelsOf(at);
  if (!labels || !at.ok()) return;
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
      {"Einsum", 12, LowerEinsum, "TransposeD, Mul, ReduceSumD", "T=N... equation:string!"},
      {"Gemm", 7, LowerGemm, "MatMulV2, Add",
       "T=RIK T T? alpha:float beta:float transA:int transB:int"},
      {"MatMul", 1, LowerMatMul, "MatMulV2, BatchMatMulV2", "T=RIK T"},
  };
  rows.insert(rows.end(), std::begin(all), std::end(all));
}

}  // namespace npumesh
