// PlainValues: the numbers of a graph in double precision, computed while the graph is written. It
// shares no code with the engine or with graph/shard.
#ifndef NPUMESH_TESTS_RANKS_SHARD_PLAIN_VALUES_H_
#define NPUMESH_TESTS_RANKS_SHARD_PLAIN_VALUES_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace npumesh {

// Row-major.
struct Plain {
  std::vector<int64_t> shape;
  std::vector<double> values;

  int64_t elements() const { return static_cast<int64_t>(values.size()); }
  // Of a matrix: every axis but the last is rows.
  int64_t columns() const { return shape.back(); }
  int64_t rows() const { return elements() / columns(); }
};

Plain PlainProduct(const Plain& x, const Plain& weight, bool transposed);
// Of [rows, columns] and a vector or a tensor of the same shape.
Plain PlainWith(const Plain& a, const Plain& b, const std::function<double(double, double)>& f);
Plain PlainEach(const Plain& x, const std::function<double(double)>& f);
Plain PlainRmsNorm(const Plain& x, const Plain& gamma, double epsilon);
Plain PlainLayerNorm(const Plain& x, const Plain& gamma, const Plain& beta, double epsilon);
// Columns [from, from + count) of every row.
Plain PlainColumns(const Plain& x, int64_t from, int64_t count);
Plain PlainRows(const Plain& table, const std::vector<int64_t>& rows);
// The rows of `a`, then those of `b`.
Plain PlainBelow(const Plain& a, const Plain& b);
// [heads, rows, d] as [rows, heads * d], and back.
Plain PlainJoined(const Plain& x);
Plain PlainApart(const Plain& x, int64_t heads);

struct PlainHeads {
  int heads = 1;
  int shared = 1;      // heads of keys and values
  int64_t before = 0;  // rows of keys that every query sees; of the others, those up to its own
};
// Scaled dot-product attention of rows of one sequence: query [s, heads * d], key and value
// [before + s, shared * d].
Plain PlainAttention(const Plain& query, const Plain& key, const Plain& value,
                     const PlainHeads& heads);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_RANKS_SHARD_PLAIN_VALUES_H_
