#include "graph/ops/toolbox/product/pair_kernels.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <utility>

#include "graph/ops/toolbox/values/unroll.h"

// Highway 1.0 does not know the instruction.
#define NPUMESH_PAIRS [[gnu::target("avx512f,avx512bf16")]]

namespace npumesh {
namespace {

constexpr int kPanelVectors = 2;
constexpr int64_t kLanes = 16;
constexpr int kMostRows = 12;

template <int kVectors, int kRows>
NPUMESH_PAIRS void MultiplyPairs(const PanelOperands& operands, bool adds, float* y,
                                 int64_t y_stride) {
  const auto* x = static_cast<const int32_t*>(operands.x);
  const auto* panel = static_cast<const std::byte*>(operands.panel);
  __m512 sums[kRows][kVectors];
  NPUMESH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    NPUMESH_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[r][v] = _mm512_setzero_ps();
    // Rows of y lie far apart, and are wanted last.
    __builtin_prefetch(y + r * y_stride, 1);
    __builtin_prefetch(y + r * y_stride + kVectors * kLanes - 1, 1);
  }
  Asking asking(operands.ahead);
  const int64_t pairs = (operands.k + 1) / 2;
  const int64_t row_bytes = operands.panel_stride * 2;
  for (int64_t i = 0; i < pairs; ++i, x += kRows, panel += row_bytes) {
    asking.At(i);
    __m512bh columns[kVectors];
    NPUMESH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      // Bits as they are: there is no other cast to vectors of bfloat16.
      columns[v] = (__m512bh)_mm512_loadu_si512(panel + v * sizeof(__m512));
    }
    NPUMESH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const auto pair = (__m512bh)_mm512_set1_epi32(x[r]);
      NPUMESH_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = _mm512_dpbf16_ps(sums[r][v], pair, columns[v]);
      }
    }
  }
  NPUMESH_UNROLL
  for (int r = 0; r < kRows; ++r, y += y_stride) {
    NPUMESH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* const to = y + v * kLanes;
      const __m512 sum = sums[r][v];
      _mm512_storeu_ps(to, adds ? _mm512_add_ps(_mm512_loadu_ps(to), sum) : sum);
    }
  }
}

template <int kVectors, int... kRowsLessOne>
constexpr auto PairTable(std::integer_sequence<int, kRowsLessOne...>) {
  return std::array<PanelKernels::Multiply, sizeof...(kRowsLessOne)>{
      &MultiplyPairs<kVectors, kRowsLessOne + 1>...};
}
template <int kVectors, int kMost>
constexpr auto kMultiplyPairs = PairTable<kVectors>(std::make_integer_sequence<int, kMost>());

}  // namespace

PanelKernels::OfType PairKernels(const PanelKernels& kernels) {
  const bool fit = kernels.columns == kPanelVectors * kLanes && kernels.most_rows == kMostRows;
  if (!fit || !__builtin_cpu_supports("avx512bf16")) return {};
  const auto one = kMultiplyPairs<kPanelVectors, kMostRows>.data();
  return {.rows = {one, one, one},
          .two = kMultiplyPairs<2 * kPanelVectors, kMostRows / 2>.data(),
          .two_to = kernels.bfloat16.two_to};
}

}  // namespace npumesh

#else

namespace npumesh {

PanelKernels::OfType PairKernels(const PanelKernels&) {
  return {};
}

}  // namespace npumesh

#endif  // defined(__x86_64__)
