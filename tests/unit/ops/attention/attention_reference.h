// Attention written down plainly, in double, with all scores of a row at once; and tensors of heads
// in every layout.
#ifndef NPUMESH_TESTS_UNIT_OPS_ATTENTION_ATTENTION_REFERENCE_H_
#define NPUMESH_TESTS_UNIT_OPS_ATTENTION_ATTENTION_REFERENCE_H_

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/unit/op_values.h"

namespace npumesh {

// Values of [batch, head, row, column].
struct Heads {
  int64_t batches = 0;
  int64_t heads = 0;
  int64_t rows = 0;
  int64_t width = 0;
  std::vector<double> values = {};

  double& at(int64_t b, int64_t n, int64_t s, int64_t d) {
    return values[static_cast<size_t>(((b * heads + n) * rows + s) * width + d)];
  }
  double at(int64_t b, int64_t n, int64_t s, int64_t d) const {
    return values[static_cast<size_t>(((b * heads + n) * rows + s) * width + d)];
  }
};

inline Heads Zeros(int64_t batches, int64_t heads, int64_t rows, int64_t width) {
  return {batches, heads, rows, width,
          std::vector<double>(static_cast<size_t>(batches * heads * rows * width))};
}

// Values in [-1, 1], exact in the dtype, without a period that a wrong index would hide behind.
inline Heads Noise(DataType dtype, int64_t batches, int64_t heads, int64_t rows, int64_t width,
                   int seed) {
  Heads result = Zeros(batches, heads, rows, width);
  for (size_t i = 0; i < result.values.size(); ++i) {
    const double x = std::sin(static_cast<double>(i) * 12.9898 + seed * 78.233) * 43758.5453;
    result.values[i] = Rounded(dtype, 2 * (x - std::floor(x)) - 1);
  }
  return result;
}

// Index of (b, n, s, d) in a layout. In T the sequence b begins at row starts[b].
inline size_t IndexIn(const std::string& letters, const Heads& h, int64_t b, int64_t n, int64_t s,
                      int64_t d, const std::vector<int64_t>& starts) {
  int64_t index = 0;
  for (const char letter : letters) {
    switch (letter) {
      case 'B':
        index = index * h.batches + b;
        break;
      case 'S':
        index = index * h.rows + s;
        break;
      case 'T':
        index = index * starts.back() + starts[static_cast<size_t>(b)] + s;
        break;
      case 'N':
        index = index * h.heads + n;
        break;
      case 'H':
        index = (index * h.heads + n) * h.width + d;
        break;
      default:
        index = index * h.width + d;
    }
  }
  return static_cast<size_t>(index);
}

inline Shape ShapeIn(const std::string& letters, const Heads& h,
                     const std::vector<int64_t>& starts) {
  std::vector<int64_t> dims;
  for (const char letter : letters) {
    dims.push_back(letter == 'B'   ? h.batches
                   : letter == 'S' ? h.rows
                   : letter == 'T' ? starts.back()
                   : letter == 'N' ? h.heads
                   : letter == 'H' ? h.heads * h.width
                                   : h.width);
  }
  return Shape(std::move(dims));
}

// The heads in a layout; for T the first rows of each sequence, as many as between its starts.
inline Tensor InLayout(DataType dtype, const std::string& letters, const Heads& h,
                       const std::vector<int64_t>& starts = {}) {
  const Shape shape = ShapeIn(letters, h, starts);
  std::vector<double> values(static_cast<size_t>(shape.elements()));
  const bool packed = letters.find('T') != std::string::npos;
  for (int64_t b = 0; b < h.batches; ++b) {
    const auto at = static_cast<size_t>(b);
    const int64_t rows = packed ? starts[at + 1] - starts[at] : h.rows;
    for (int64_t n = 0; n < h.heads; ++n) {
      for (int64_t s = 0; s < rows; ++s) {
        for (int64_t d = 0; d < h.width; ++d) {
          values[IndexIn(letters, h, b, n, s, d, starts)] = h.at(b, n, s, d);
        }
      }
    }
  }
  return FromDoubles(dtype, shape, values);
}

// The heads in the blocks of a cache: page i of sequence b is in block block_of(b, i). The shape is
// [blocks, page, N * D], [blocks, N, page, D] or tiled [blocks, N, D / e, page, e]; elements of no
// sequence are 99.
inline Tensor CacheOf(DataType dtype, const Shape& shape, const Heads& h,
                      const std::function<int64_t(int64_t b, int64_t i)>& block_of) {
  const int rank = shape.rank();
  const int64_t page = shape[rank == 3 ? 1 : rank - 2], tile = shape[rank - 1];
  std::vector<double> values(static_cast<size_t>(shape.elements()), 99);
  for (int64_t b = 0; b < h.batches; ++b) {
    for (int64_t s = 0; s < h.rows; ++s) {
      const int64_t block = block_of(b, s / page), row = s % page;
      for (int64_t n = 0; n < h.heads; ++n) {
        for (int64_t d = 0; d < h.width; ++d) {
          const size_t at = rank == 3   ? Index(shape, {block, row, n * h.width + d})
                            : rank == 4 ? Index(shape, {block, n, row, d})
                                        : Index(shape, {block, n, d / tile, row, d % tile});
          values[at] = h.at(b, n, s, d);
        }
      }
    }
  }
  return FromDoubles(dtype, shape, values);
}

// What the plain formula needs to know. Rows and columns count within a sequence.
struct Plain {
  double scale = 1;
  std::function<bool(int64_t b, int64_t h, int64_t i, int64_t j)> sees = nullptr;
  std::function<double(int64_t b, int64_t h, int64_t i, int64_t j)> shift = nullptr;
  std::function<double(int64_t b, int64_t h, int64_t i, int64_t j)> keep = nullptr;
  std::vector<int64_t> q_rows = {};   // empty: all
  std::vector<int64_t> kv_rows = {};  // empty: all
  std::vector<double> sink = {};
};

struct PlainResult {
  Heads out;
  Heads most;  // width 1
  Heads sum;
};

inline PlainResult PlainAttention(const Heads& q, const Heads& k, const Heads& v,
                                  const Plain& plain) {
  PlainResult result{Zeros(q.batches, q.heads, q.rows, v.width),
                     Zeros(q.batches, q.heads, q.rows, 1), Zeros(q.batches, q.heads, q.rows, 1)};
  for (int64_t b = 0; b < q.batches; ++b) {
    const auto at = static_cast<size_t>(b);
    const int64_t rows = plain.q_rows.empty() ? q.rows : plain.q_rows[at];
    const int64_t columns = plain.kv_rows.empty() ? k.rows : plain.kv_rows[at];
    for (int64_t h = 0; h < q.heads; ++h) {
      const int64_t g = h * k.heads / q.heads;
      for (int64_t i = 0; i < rows; ++i) {
        const double nothing = -std::numeric_limits<double>::infinity();
        std::vector<double> scores(static_cast<size_t>(columns), nothing);
        double most = plain.sink.empty() ? nothing : plain.sink[static_cast<size_t>(h)];
        for (int64_t j = 0; j < columns; ++j) {
          if (plain.sees && !plain.sees(b, h, i, j)) continue;
          double dot = 0;
          for (int64_t d = 0; d < q.width; ++d) dot += q.at(b, h, i, d) * k.at(b, g, j, d);
          double& score = scores[static_cast<size_t>(j)];
          score = dot * plain.scale + (plain.shift ? plain.shift(b, h, i, j) : 0);
          most = std::max(most, score);
        }
        double sum = plain.sink.empty() ? 0 : std::exp(plain.sink[static_cast<size_t>(h)] - most);
        for (const double score : scores) sum += score == nothing ? 0 : std::exp(score - most);
        for (int64_t j = 0; j < columns && sum > 0; ++j) {
          if (scores[static_cast<size_t>(j)] == nothing) continue;
          double p = std::exp(scores[static_cast<size_t>(j)] - most) / sum;
          if (plain.keep) p *= plain.keep(b, h, i, j);
          for (int64_t d = 0; d < v.width; ++d) result.out.at(b, h, i, d) += p * v.at(b, g, j, d);
        }
        result.most.at(b, h, i, 0) = most;
        result.sum.at(b, h, i, 0) = sum;
      }
    }
  }
  return result;
}

// Every element of `got`, which lies in a layout, near that of `expected`: one rounding to the
// dtype and what a sum in float32 loses.
inline void ExpectHeads(const Tensor& got, const std::string& letters, const Heads& expected,
                        const std::vector<int64_t>& starts = {}) {
  ASSERT_EQ(got.shape(), ShapeIn(letters, expected, starts));
  const std::vector<double> values = ToDoubles(got);
  const bool packed = letters.find('T') != std::string::npos;
  for (int64_t b = 0; b < expected.batches; ++b) {
    const auto at = static_cast<size_t>(b);
    const int64_t rows = packed ? starts[at + 1] - starts[at] : expected.rows;
    for (int64_t n = 0; n < expected.heads; ++n) {
      for (int64_t s = 0; s < rows; ++s) {
        for (int64_t d = 0; d < expected.width; ++d) {
          const double want = expected.at(b, n, s, d);
          const double value = values[IndexIn(letters, expected, b, n, s, d, starts)];
          ASSERT_NEAR(value, want, 0.51 * Ulp(got.dtype(), want) + 4e-6)
              << "batch " << b << " head " << n << " row " << s << " column " << d;
        }
      }
    }
  }
}

// The call with both starts, which TorchAir feeds to every FlashAttentionScore, as scalars.
inline OpCall WithStarts(OpCall call) {
  call.inputs.push_back({"q_start_idx", Make<int64_t>(DataType::kInt64, {}, {3})});
  call.inputs.push_back({"kv_start_idx", Make<int64_t>(DataType::kInt64, {}, {1})});
  return call;
}

// The outputs of the call have the same bits with starts and without.
inline void ExpectStartsChangeNothing(const OpCall& call) {
  const Result<std::vector<Tensor>> without = RunOp(call);
  const Result<std::vector<Tensor>> with = RunOp(WithStarts(call));
  ASSERT_TRUE(without.ok()) << without.status().ToString();
  ASSERT_TRUE(with.ok()) << with.status().ToString();
  ASSERT_GT((*without)[0].elements(), 0);
  ASSERT_EQ(with->size(), without->size());
  for (size_t i = 0; i < with->size(); ++i) {
    EXPECT_TRUE(SameBytes((*with)[i], (*without)[i])) << call.type << ", output " << i;
  }
}

}  // namespace npumesh

#endif  // NPUMESH_TESTS_UNIT_OPS_ATTENTION_ATTENTION_REFERENCE_H_
