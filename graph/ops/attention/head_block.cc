// By Highway; no fused multiply-add, so that every target gives the same bits. A dot product is
// kept in 16 sums, which several vectors share on smaller processors; four rows are read at once,
// so that one's latency is hidden by the others'.
#include "graph/ops/attention/head_block.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "graph/ops/toolbox/values/simd_targets.h"
#include "graph/ops/toolbox/values/unroll.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/attention/head_block.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// After Highway.
#include "graph/ops/toolbox/values/half_io-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh::attention {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kDotLanes = 16;
constexpr int64_t kRowsAtOnce = 4;
using DotTag = hn::CappedTag<float, kDotLanes>;
using DotVec = hn::Vec<DotTag>;

// A whole vector of elements as floats.
HWY_INLINE DotVec LoadFloats(const float* from) {
  return hn::LoadU(DotTag(), from);
}
template <class Half>
HWY_INLINE DotVec LoadFloats(const Half* from) {
  return npumesh::HWY_NAMESPACE::WideHalves<Half>(DotTag(),
                                                  reinterpret_cast<const uint16_t*>(from));
}

// The same of the last `count` elements of a vector, which may be none; zeros follow.
template <class T>
HWY_INLINE DotVec LoadRest(const T* from, int64_t count) {
  T rest[kDotLanes] = {};
  if (count > 0) std::memcpy(rest, from, static_cast<size_t>(count) * sizeof(T));
  return LoadFloats(rest);
}

// The vectors of 1 to kRowsAtOnce rows, of one head or of neighbours.
template <class T>
struct Rows {
  const T* data;
  int64_t stride;

  const T* at(int64_t row) const { return data + row * stride; }
};

// Asks for the vectors that come `ahead` rows later, into the second cache: of requests for the
// first one a processor has too few under way. (1.5 MiB in no cache: 66 us, asked for into the
// first cache 129 us, not asked for 155 us, and 57 us when the third one has them.)
template <int64_t kRows, class T>
HWY_INLINE void AskFor(const Rows<T>& rows, int64_t width, int64_t ahead) {
  constexpr int64_t kLine = 64 / sizeof(T);
  for (int64_t row = 0; row < kRows; ++row) {
    const T* const later = rows.at(ahead + row);
    for (int64_t at = 0; at < width; at += kLine) __builtin_prefetch(later + at, 0, 2);
  }
}

// Half of the lanes are added to the other half until one is left.
template <class D>
HWY_INLINE float SumOfHalves([[maybe_unused]] D d, hn::Vec<D> sum) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (hn::MaxLanes(D()) > 1) {
    const hn::Half<D> half;
    return SumOfHalves(half, hn::Add(hn::LowerHalf(half, sum), hn::UpperHalf(half, sum)));
  }
#endif
  return hn::GetLane(sum);
}

// The same of the lanes of several vectors, the number of which is a power of two.
template <int64_t kVectors>
HWY_INLINE float SumOfHalves(const DotVec* vectors) {
  if constexpr (kVectors == 1) {
    return SumOfHalves(DotTag(), vectors[0]);
  } else {
    constexpr int64_t kHalf = kVectors / 2;
    DotVec sums[kHalf];
    NPUMESH_UNROLL
    for (int64_t v = 0; v < kHalf; ++v) sums[v] = hn::Add(vectors[v], vectors[v + kHalf]);
    return SumOfHalves<kHalf>(sums);
  }
}

// scores[row] = query * row.
template <int64_t kRows, class T>
HWY_INLINE void Dots(const Rows<T>& rows, int64_t width, const float* query, float* scores) {
  constexpr int64_t kLanes = hn::MaxLanes(DotTag());
  constexpr int64_t kVectors = kDotLanes / kLanes;
  DotVec sums[kRows][kVectors];
  NPUMESH_UNROLL
  for (auto& of_row : sums) {
    NPUMESH_UNROLL
    for (auto& sum : of_row) sum = hn::Zero(DotTag());
  }
  const auto add = [&](int64_t row, int64_t v, DotVec q, DotVec k) {
    sums[row][v] = hn::Add(sums[row][v], hn::Mul(q, k));
  };
  int64_t i = 0;
  for (; i + kDotLanes <= width; i += kDotLanes) {
    NPUMESH_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) {
      const DotVec q = LoadFloats(query + i + v * kLanes);
      NPUMESH_UNROLL
      for (int64_t row = 0; row < kRows; ++row) {
        add(row, v, q, LoadFloats(rows.at(row) + i + v * kLanes));
      }
    }
  }
  NPUMESH_UNROLL
  for (int64_t v = 0; v < kVectors; ++v, i += kLanes) {
    if (i >= width) break;
    const int64_t count = std::min(kLanes, width - i);
    const DotVec q = LoadRest(query + i, count);
    NPUMESH_UNROLL
    for (int64_t row = 0; row < kRows; ++row) add(row, v, q, LoadRest(rows.at(row) + i, count));
  }
  NPUMESH_UNROLL
  for (int64_t row = 0; row < kRows; ++row) scores[row] = SumOfHalves<kVectors>(sums[row]);
}

// sums += the rows, each by its weight, in their order.
template <int64_t kRows, class T>
HWY_INLINE void AddRows(const Rows<T>& rows, int64_t width, const float* weights, float* sums) {
  const DotTag d;
  constexpr int64_t kLanes = hn::MaxLanes(DotTag());
  int64_t i = 0;
  for (; i + kLanes <= width; i += kLanes) {
    DotVec sum = LoadFloats(sums + i);
    NPUMESH_UNROLL
    for (int64_t row = 0; row < kRows; ++row) {
      sum = hn::Add(sum, hn::Mul(hn::Set(d, weights[row]), LoadFloats(rows.at(row) + i)));
    }
    hn::StoreU(sum, d, sums + i);
  }
  if (i == width) return;
  DotVec sum = LoadRest(sums + i, width - i);
  for (int64_t row = 0; row < kRows; ++row) {
    sum = hn::Add(sum, hn::Mul(hn::Set(d, weights[row]), LoadRest(rows.at(row) + i, width - i)));
  }
  HWY_ALIGN float rest[kDotLanes];
  hn::Store(sum, d, rest);
  std::memcpy(sums + i, rest, static_cast<size_t>(width - i) * sizeof(float));
}

// Calls `work(rows, head, row, constant of kRows)` for every vector of a block, in the order in
// which they lie, and asks for what comes later.
template <class T, class Work>
HWY_INLINE void EachVector(const HeadBlock& block, const Work& work) {
  constexpr int64_t kAheadBytes = 8192;
  const auto* const data = static_cast<const T*>(block.data);
  const bool head_by_head = block.head_stride > block.row_stride;
  const int64_t row_bytes =
      (head_by_head ? 1 : block.heads) * block.width * static_cast<int64_t>(sizeof(T));
  const int64_t ahead =
      std::clamp<int64_t>(kAheadBytes / std::max<int64_t>(row_bytes, 1), kRowsAtOnce, 64);
  const auto rows_of = [&](int64_t head, int64_t row) {
    const Rows<T> rows{data + head * block.head_stride + row * block.row_stride, block.row_stride};
    if (row + kRowsAtOnce <= block.rows) {
      AskFor<kRowsAtOnce>(rows, block.width, ahead);
      work(rows, head, row, std::integral_constant<int64_t, kRowsAtOnce>());
      return;
    }
    for (int64_t i = 0; row + i < block.rows; ++i) {
      work(Rows<T>{rows.at(i), block.row_stride}, head, row + i,
           std::integral_constant<int64_t, 1>());
    }
  };
  if (head_by_head) {
    for (int64_t head = 0; head < block.heads; ++head) {
      for (int64_t row = 0; row < block.rows; row += kRowsAtOnce) rows_of(head, row);
    }
    return;
  }
  for (int64_t row = 0; row < block.rows; row += kRowsAtOnce) {
    for (int64_t head = 0; head < block.heads; ++head) rows_of(head, row);
  }
}

template <class T>
void ScoresOf(const HeadBlock& keys, const float* query, int64_t queries, float* scores,
              int64_t stride) {
  EachVector<T>(keys, [&](const Rows<T>& rows, int64_t head, int64_t row, auto count) {
    for (int64_t q = head * queries; q < (head + 1) * queries; ++q) {
      Dots<count()>(rows, keys.width, query + q * keys.width, scores + q * stride + row);
    }
  });
}

template <class T>
void SumsOf(const HeadBlock& values, const float* weights, int64_t stride, int64_t queries,
            float* sums) {
  EachVector<T>(values, [&](const Rows<T>& rows, int64_t head, int64_t row, auto count) {
    for (int64_t q = head * queries; q < (head + 1) * queries; ++q) {
      AddRows<count()>(rows, values.width, weights + q * stride + row, sums + q * values.width);
    }
  });
}

// Calls `work` with an element of the type of the block's.
template <class Work>
HWY_INLINE void ByElement(const HeadBlock& block, const Work& work) {
  switch (block.dtype) {
    case DataType::kFloat16:
      return work(hwy::float16_t());
    case DataType::kBfloat16:
      return work(hwy::bfloat16_t());
    default:
      return work(float());
  }
}

void Scores(const HeadBlock& keys, const float* query, int64_t queries, float* scores,
            int64_t stride) {
  ByElement(keys, [&](auto element) {
    ScoresOf<decltype(element)>(keys, query, queries, scores, stride);
  });
}

void Sums(const HeadBlock& values, const float* weights, int64_t stride, int64_t queries,
          float* sums) {
  ByElement(values, [&](auto element) {
    SumsOf<decltype(element)>(values, weights, stride, queries, sums);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh::attention
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh::attention {

HWY_EXPORT(Scores);
HWY_EXPORT(Sums);

void ScoreBlock(const HeadBlock& keys, const float* query, int64_t queries, float* scores,
                int64_t stride) {
  HWY_DYNAMIC_DISPATCH(Scores)(keys, query, queries, scores, stride);
}

void AddBlock(const HeadBlock& values, const float* weights, int64_t stride, int64_t queries,
              float* sums) {
  HWY_DYNAMIC_DISPATCH(Sums)(values, weights, stride, queries, sums);
}

}  // namespace npumesh::attention
#endif  // HWY_ONCE
