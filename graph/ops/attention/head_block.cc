// By Highway; no fused multiply-add, so that every target gives the same bits. A dot product is
// kept in 16 sums, which several vectors share on smaller processors; four rows are read at once,
// so that one's latency is hidden by the others'.
#include "graph/ops/attention/head_block.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "graph/ops/toolbox/lanes/simd_targets.h"
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

// Of a lambda: part of the loop around it, whose variables it would read from memory otherwise.
#define NPUMESH_INLINED HWY_ATTR __attribute__((always_inline))

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

#if HWY_TARGET <= HWY_AVX2

// Blocks of four lanes, even ones of `even` and odd ones of `odd`, each added to its neighbour.
HWY_INLINE DotVec AddBlocks(DotVec even, DotVec odd) {
  return hn::Add(hn::OddEvenBlocks(odd, even),
                 hn::SwapAdjacentBlocks(hn::OddEvenBlocks(even, odd)));
}
// In every lane the sum of its block.
HWY_INLINE DotVec AddLanes(DotVec sum) {
  sum = hn::Add(sum, hn::Shuffle1032(sum));
  return hn::Add(sum, hn::Shuffle2301(sum));
}

// SumOfHalves of four rows at once: as many operations as two rows would take one by one.
template <int64_t kVectors>
HWY_INLINE void StoreFourSums(const DotVec (&sums)[4][kVectors], float* scores) {
#if HWY_TARGET <= HWY_AVX3
  const auto halves = [](DotVec low, DotVec high) HWY_ATTR {
    const DotTag d;
    return hn::Add(hn::ConcatLowerLower(d, high, low), hn::ConcatUpperUpper(d, high, low));
  };
  const DotVec all =
      AddLanes(AddBlocks(halves(sums[0][0], sums[2][0]), halves(sums[1][0], sums[3][0])));
  HWY_ALIGN static constexpr int32_t kFirstOfBlocks[kDotLanes] = {0, 4, 8, 12};
  const auto four = hn::TableLookupLanes(all, hn::SetTableIndices(DotTag(), kFirstOfBlocks));
  hn::StoreU(hn::LowerHalf(hn::LowerHalf(four)), hn::FixedTag<float, 4>(), scores);
#else
  NPUMESH_UNROLL
  for (int64_t row = 0; row < 4; row += 2) {
    const DotVec both = AddLanes(AddBlocks(hn::Add(sums[row][0], sums[row][1]),
                                           hn::Add(sums[row + 1][0], sums[row + 1][1])));
    scores[row] = hn::GetLane(both);
    scores[row + 1] = hn::GetLane(hn::UpperHalf(hn::Half<DotTag>(), both));
  }
#endif
}

#endif  // HWY_TARGET

// scores[row] = SumOfHalves of the sums of each row.
template <int64_t kRows, int64_t kVectors>
HWY_INLINE void StoreSums(const DotVec (&sums)[kRows][kVectors], float* scores) {
#if HWY_TARGET <= HWY_AVX2
  if constexpr (kRows == 4) return StoreFourSums(sums, scores);
#endif
  NPUMESH_UNROLL
  for (int64_t row = 0; row < kRows; ++row) scores[row] = SumOfHalves<kVectors>(sums[row]);
}

// scores[row] = query * row. `kWidth`: the width, when it is one of the usual ones, otherwise 0. A
// call, because where it is part of the loops around it, their addresses do not fit into registers;
// so keys of width 64, 1.5 MiB in no cache, take 58 us instead of 72.
template <int64_t kRows, int64_t kWidth, class T>
HWY_NOINLINE void Dots(Rows<T> rows, int64_t width, const float* query, float* scores) {
  constexpr int64_t kLanes = hn::MaxLanes(DotTag());
  constexpr int64_t kVectors = kDotLanes / kLanes;
  DotVec sums[kRows][kVectors];
  NPUMESH_UNROLL
  for (auto& of_row : sums) {
    NPUMESH_UNROLL
    for (auto& sum : of_row) sum = hn::Zero(DotTag());
  }
  const auto add = [&](int64_t row, int64_t v, DotVec q, DotVec k)
                       HWY_ATTR { sums[row][v] = hn::Add(sums[row][v], hn::Mul(q, k)); };
  const auto add_all = [&](int64_t at) HWY_ATTR {
    NPUMESH_UNROLL
    for (int64_t v = 0; v < kVectors; ++v) {
      const DotVec q = LoadFloats(query + at + v * kLanes);
      NPUMESH_UNROLL
      for (int64_t row = 0; row < kRows; ++row) {
        add(row, v, q, LoadFloats(rows.at(row) + at + v * kLanes));
      }
    }
  };
  if constexpr (kWidth != 0) {
    static_assert(kWidth % kDotLanes == 0);
    NPUMESH_UNROLL
    for (int64_t at = 0; at < kWidth; at += kDotLanes) add_all(at);
    return StoreSums<kRows, kVectors>(sums, scores);
  }
  int64_t i = 0;
  for (; i + kDotLanes <= width; i += kDotLanes) add_all(i);
  NPUMESH_UNROLL
  for (int64_t v = 0; v < kVectors; ++v, i += kLanes) {
    if (i >= width) break;
    const int64_t count = std::min(kLanes, width - i);
    const DotVec q = LoadRest(query + i, count);
    NPUMESH_UNROLL
    for (int64_t row = 0; row < kRows; ++row) add(row, v, q, LoadRest(rows.at(row) + i, count));
  }
  StoreSums<kRows, kVectors>(sums, scores);
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
  const auto rows_of = [&](int64_t head, int64_t row) NPUMESH_INLINED {
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

// Dots of kRowsAtOnce rows. Only what is short has separate code: that of all widths took 8 s
// more to compile.
template <class T>
auto DotsOf(int64_t width) {
  constexpr int64_t k64 = HWY_TARGET <= HWY_AVX2 ? 64 : 0, k128 = HWY_TARGET <= HWY_AVX3 ? 128 : 0;
  if (width == k64) return &Dots<kRowsAtOnce, k64, T>;
  return width == k128 ? &Dots<kRowsAtOnce, k128, T> : &Dots<kRowsAtOnce, 0, T>;
}

template <class T>
void ScoresOf(const HeadBlock& keys, const float* query, int64_t queries, float* scores,
              int64_t stride) {
  const auto several = DotsOf<T>(keys.width);
  EachVector<T>(keys,
                [&](const Rows<T>& rows, int64_t head, int64_t row, auto count) NPUMESH_INLINED {
                  const auto dots = count() == kRowsAtOnce ? several : &Dots<1, 0, T>;
                  for (int64_t q = head * queries; q < (head + 1) * queries; ++q) {
                    dots(rows, keys.width, query + q * keys.width, scores + q * stride + row);
                  }
                });
}

template <class T>
void SumsOf(const HeadBlock& values, const float* weights, int64_t stride, int64_t queries,
            float* sums) {
  EachVector<T>(
      values, [&](const Rows<T>& rows, int64_t head, int64_t row, auto count) NPUMESH_INLINED {
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
