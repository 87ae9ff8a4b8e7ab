// Numbers that stand for words.
#include <algorithm>

#include "graph/onnx/op_table.h"

namespace npumesh {
namespace {

// The n-grams of one length that are looked for, and where their counts go.
struct NGrams {
  int64_t length = 0;
  std::vector<int64_t> words;    // [count, length]
  std::vector<int64_t> columns;  // of the output, one for each n-gram
};

// ngram_counts says where in the pool the n-grams of each length begin.
std::vector<NGrams> NGramsOf(Lowering& at) {
  const std::vector<int64_t> pool = at.IntList("pool_int64s"), begins = at.IntList("ngram_counts"),
                             columns = at.IntList("ngram_indexes");
  std::vector<NGrams> all;
  size_t number = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    NGrams grams;
    grams.length = static_cast<int64_t>(i) + 1;
    const int64_t end = i + 1 < begins.size() ? begins[i + 1] : static_cast<int64_t>(pool.size());
    const bool fits = begins[i] >= 0 && begins[i] <= end &&
                      end <= static_cast<int64_t>(pool.size()) &&
                      (end - begins[i]) % grams.length == 0;
    const auto count = fits ? static_cast<size_t>((end - begins[i]) / grams.length) : 0;
    if (!fits || number + count > columns.size()) {
      at.Fail(Code::kCorrupt, "ngram_counts and ngram_indexes do not fit the {} words of the pool",
              pool.size());
      return {};
    }
    grams.words.assign(pool.begin() + begins[i], pool.begin() + end);
    for (size_t k = 0; k < count; ++k) grams.columns.push_back(columns[number++]);
    all.push_back(std::move(grams));
  }
  return all;
}

// How often each n-gram stands in each row of x [rows, words], when its words are `step` apart:
// [rows, n-grams].
Value CountsOf(Lowering& at, Value x, const NGrams& grams, int64_t words, int64_t step) {
  const int64_t starts = words - (grams.length - 1) * step;
  std::vector<int64_t> places;
  if (!at.Affords(starts, grams.length)) return x;
  for (int64_t i = 0; i < starts; ++i) {
    for (int64_t k = 0; k < grams.length; ++k) places.push_back(i + k * step);
  }
  const auto count = static_cast<int64_t>(grams.columns.size());
  const Value windows = at.Reshape(at.Gather(x, at.Ints(places), 1), {0, starts, 1, grams.length});
  const Value wanted = at.Reshape(at.Ints(grams.words), {1, 1, count, grams.length});
  const Value found = at.Reduce("ReduceAll", at.Binary("Equal", windows, wanted), {3}, false);
  return at.Reduce("ReduceSum", at.Cast(found, DataType::kFloat), {1}, false);
}

// The counts of n-grams of min_gram_length to max_gram_length words, whose words may be up to
// max_skip_count words apart; by mode the counts, or weights where a count is not 0, or both.
void LowerTfIdf(Lowering& at) {
  if (at.has_attr("pool_strings")) return at.Refuse("npumesh has no tensors of strings");
  Value x = at.Cast(at.in(0), DataType::kInt64);
  const bool one_row = at.Rank(x) == 1;
  if (one_row) x = at.Unsqueeze(x, {0});
  const int64_t words = at.Dim(x, 1);
  const int64_t least = at.Int("min_gram_length", 1), most = at.Int("max_gram_length", 1);
  const std::vector<int64_t> columns = at.IntList("ngram_indexes");
  constexpr int64_t kWidest = 1 << 20;
  const auto [low, high] = std::minmax_element(columns.begin(), columns.end());
  if (columns.empty() || *low < 0 || *high >= kWidest) {
    return at.Fail(Code::kCorrupt, "ngram_indexes are empty, negative, or {} and more", kWidest);
  }
  const int64_t width = *high + 1;
  std::optional<Value> sum;
  for (const NGrams& grams : NGramsOf(at)) {
    if (grams.length < least || grams.length > most || grams.columns.empty()) continue;
    const int64_t skips = grams.length == 1 ? 0 : at.Int("max_skip_count", 0);
    if (!at.Affords(static_cast<int64_t>(grams.columns.size()), width)) return;
    std::vector<float> targets(grams.columns.size() * static_cast<size_t>(width), 0);
    for (size_t k = 0; k < grams.columns.size(); ++k) {
      targets[k * static_cast<size_t>(width) + static_cast<size_t>(grams.columns[k])] = 1;
    }
    const Value matrix =
        at.Floats(targets, Shape({static_cast<int64_t>(grams.columns.size()), width}));
    for (int64_t skip = 0; skip <= skips && at.ok(); ++skip) {
      if (words < (grams.length - 1) * (skip + 1) + 1) break;
      const Value counts = at.MatMul(CountsOf(at, x, grams, words, skip + 1), matrix);
      sum = sum ? at.Add(*sum, counts) : counts;
    }
  }
  if (!at.ok()) return;
  if (!sum) return at.Refuse("no n-gram fits into a row of {} words", words);
  Value y = *sum;
  const std::string mode = at.Text("mode", "TF");
  if (mode == "IDF") y = at.Min(y, at.Like(1, y));
  const std::vector<float> weights = at.FloatList("weights");
  if (mode != "TF" && !weights.empty()) {
    // Weights stand in the order of the n-grams.
    std::vector<float> by_column(static_cast<size_t>(width), 1);
    for (size_t k = 0; k < columns.size() && k < weights.size(); ++k) {
      by_column[static_cast<size_t>(columns[k])] = weights[k];
    }
    y = at.Mul(y, at.Floats(by_column, Shape({width})));
  }
  at.Out(0, one_row ? at.Squeeze(y, {0}) : y);
}

}  // namespace

void AddTextRows(std::vector<OnnxOp>& rows) {
  rows.push_back({"TfIdfVectorizer", 9, LowerTfIdf, "GatherV2, Equal, BatchMatMulV2",
                  "I max_gram_length:int! max_skip_count:int! min_gram_length:int! mode:string! "
                  "ngram_counts:ints! ngram_indexes:ints! pool_int64s:ints pool_strings:strings "
                  "weights:floats"});
}

}  // namespace npumesh
