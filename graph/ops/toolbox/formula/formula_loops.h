// Plain loops around formulas on single elements, for the types without vector forms.
//
// A formula is a function object without state, so that the loop has it inline.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_LOOPS_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_LOOPS_H_

#include <functional>
#include <type_traits>

#include "graph/ops/toolbox/formula/formula.h"

namespace npumesh {

// y = f(x), with the parameters where it takes them.
template <typename T, typename To = T, typename F>
constexpr BlockFn EachOf(F) {
  return [](const void* const* in, void* out, size_t count, const FormulaParams& params) {
    const T* x = static_cast<const T*>(in[0]);
    To* y = static_cast<To*>(out);
    for (size_t i = 0; i < count; ++i) {
      if constexpr (std::is_invocable_v<F, T>) {
        y[i] = F()(x[i]);
      } else {
        y[i] = F()(x[i], params);
      }
    }
  };
}

// y = f(a, b).
template <typename T, typename To = T, typename F>
constexpr BlockFn PairsOf(F) {
  return [](const void* const* in, void* out, size_t count, const FormulaParams& /*params*/) {
    const T* a = static_cast<const T*>(in[0]);
    const T* b = static_cast<const T*>(in[1]);
    To* y = static_cast<To*>(out);
    for (size_t i = 0; i < count; ++i) y[i] = F()(a[i], b[i]);
  };
}

// The comparisons of a type with an order.
template <typename T>
constexpr FormulaRow kComparisons[] = {
    {Formula::kEqual, PairsOf<T, uint8_t>(std::equal_to<>())},
    {Formula::kNotEqual, PairsOf<T, uint8_t>(std::not_equal_to<>())},
    {Formula::kLess, PairsOf<T, uint8_t>(std::less<>())},
    {Formula::kLessEqual, PairsOf<T, uint8_t>(std::less_equal<>())},
    {Formula::kGreater, PairsOf<T, uint8_t>(std::greater<>())},
    {Formula::kGreaterEqual, PairsOf<T, uint8_t>(std::greater_equal<>())},
};

// The block function of a formula on T, of the comparisons or of the type's own table.
template <typename T>
BlockFn FindBlockOf(std::span<const FormulaRow> rows, Formula formula) {
  const BlockFn comparison = FindBlock(kComparisons<T>, formula);
  return comparison != nullptr ? comparison : FindBlock(rows, formula);
}

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_FORMULA_FORMULA_LOOPS_H_
