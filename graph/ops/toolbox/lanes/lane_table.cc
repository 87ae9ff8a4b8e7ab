#include "graph/ops/toolbox/lanes/lane_table.h"

#include <type_traits>
#include <utility>

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/toolbox/lanes/lane_table.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

// After Highway.
#include "graph/ops/toolbox/lanes/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {

// How lanes of a type lie in memory.
template <class Lanes>
struct Memory;
#define NM_MEMORY(Lanes, number, name)                                                       \
  template <>                                                                                \
  struct Memory<Lanes> {                                                                     \
    using Number = number;                                                                   \
    NM_INLINE Lanes Load(const number* p) { return Load##name(p); }                          \
    NM_INLINE Lanes LoadRest(const number* p, int n) { return LoadPart(Load##name, p, n); }  \
    NM_INLINE void Store(Lanes x, number* p) { Store##name(x, p); }                          \
    NM_INLINE void StoreRest(Lanes x, number* p, int n) { StorePart(Store##name, x, p, n); } \
  };
NM_MEMORY(F, float, Float)
NM_MEMORY(B, unsigned char, Bool)
NM_MEMORY(I, int, Int32)
NM_MEMORY(L, long long, Int64)
NM_MEMORY(D, double, Double)

// One number for all elements, as lanes.
template <class Lanes>
struct One {};
template <class Arg>
struct LanesOf {
  using Type = Arg;
};
template <class Lanes>
struct LanesOf<One<Lanes>> {
  using Type = Lanes;
};

// A function of lanes, and then of parameters, on blocks. The last numbers, fewer than NM_WIDTH, go
// through whole vectors as all others do, so an element's bits never depend on where it lies.
template <class Function>
struct Block;
template <class Result, class... Args>
struct Block<Result(Args...)> {
  static constexpr size_t kInputs = (0 + ... + !std::is_same_v<Args, double>);

  template <Result (*kFunction)(typename LanesOf<Args>::Type...)>
  static void Of(const void* const* inputs, void* out, size_t count, const LaneParams& params) {
    using Out = Memory<Result>;
    const void* in[kInputs];  // which nothing that is stored can change
    for (size_t k = 0; k < kInputs; ++k) in[k] = inputs[k];
    auto* const to = static_cast<typename Out::Number*>(out);
    size_t i = 0;
    for (; i + NM_WIDTH <= count; i += NM_WIDTH) {
      Out::Store(Call<kFunction>(in, i, Whole(), params, Indices()), to + i);
    }
    if (i == count) return;
    const int rest = static_cast<int>(count - i);
    Out::StoreRest(Call<kFunction>(in, i, rest, params, Indices()), to + i, rest);
  }

 private:
  struct Whole {};  // NM_WIDTH numbers
  using Indices = std::index_sequence_for<Args...>;

  template <Result (*kFunction)(typename LanesOf<Args>::Type...), class Count, size_t... k>
  NM_INLINE Result Call(const void* const* in, size_t at, Count count, const LaneParams& params,
                        std::index_sequence<k...> /*indices*/) {
    return kFunction(Argument<Args, k>(in, at, count, params)...);
  }

  template <class Arg, size_t k, class Count>
  NM_INLINE typename LanesOf<Arg>::Type Argument(const void* const* in, size_t at, Count count,
                                                 const LaneParams& params) {
    if constexpr (std::is_same_v<Arg, double>) {
      return params[k - kInputs];
    } else if constexpr (std::is_same_v<Arg, One<F>>) {
      return Set(*static_cast<const float*>(in[k]));
    } else if constexpr (std::is_same_v<Arg, One<D>>) {
      return SetWide(*static_cast<const double*>(in[k]));
    } else {
      const auto* const from = static_cast<const typename Memory<Arg>::Number*>(in[k]) + at;
      if constexpr (std::is_same_v<Count, Whole>) return Memory<Arg>::Load(from);
      if constexpr (!std::is_same_v<Count, Whole>) return Memory<Arg>::LoadRest(from, count);
    }
  }
};

// Two functions as one; the first one takes two arguments.
template <F (*kFirst)(F, F), F (*kSecond)(F, F)>
NM_INLINE F Pair(F a, F b, F c) {
  return kSecond(kFirst(a, b), c);
}
template <F (*kFirst)(F, F), F (*kSecond)(F)>
NM_INLINE F Pair(F a, F b) {
  return kSecond(kFirst(a, b));
}

// Functions of the C library, by one number after the other: the same numbers as by lanes, which
// would be taken apart and put together again.
template <double (*kFunction)(double)>
void EachOne(const void* const* in, void* out, size_t count, const LaneParams& /*params*/) {
  const auto* const x = static_cast<const double*>(in[0]);
  for (size_t i = 0; i < count; ++i) static_cast<double*>(out)[i] = kFunction(x[i]);
}
template <double (*kFunction)(double, double)>
void EachTwo(const void* const* in, void* out, size_t count, const LaneParams& /*params*/) {
  const auto *const x = static_cast<const double*>(in[0]), *const y =
                                                               static_cast<const double*>(in[1]);
  for (size_t i = 0; i < count; ++i) static_cast<double*>(out)[i] = kFunction(x[i], y[i]);
}
template <double (*kFunction)(double, double, double, double)>
void EachScaled(const void* const* in, void* out, size_t count, const LaneParams& params) {
  const auto* const x = static_cast<const double*>(in[0]);
  auto* const y = static_cast<double*>(out);
  if (params == LaneParams{-1, 1, 0}) {  // by far the most frequent
    for (size_t i = 0; i < count; ++i) y[i] = kFunction(x[i], -1, 1, 0);
    return;
  }
  const auto [base, scale, shift] = params;
  for (size_t i = 0; i < count; ++i) y[i] = kFunction(x[i], base, scale, shift);
}

// Calls join(lanes) for the elements of a block; those that are left stand among `filler`.
template <class Lanes, class Join>
NM_INLINE void ForLanes(const void* x, size_t count, typename Memory<Lanes>::Number filler,
                        Join join) {
  const auto* const from = static_cast<const typename Memory<Lanes>::Number*>(x);
  size_t i = 0;
  for (; i + NM_WIDTH <= count; i += NM_WIDTH) join(Memory<Lanes>::Load(from + i));
  if (i == count) return;
  const int rest = static_cast<int>(count - i);
  join(FirstLanes(Memory<Lanes>::LoadRest(from + i, rest), rest, filler));
}

NM_INLINE void Lead(F lanes, double& total) {
  float first;
  StorePart(StoreFloat, lanes, &first, 1);
  total = first;
}
NM_INLINE void Lead(D lanes, double& total) { StorePart(StoreDouble, lanes, &total, 1); }
NM_INLINE F Raised(F most, F x) {
  Raise(most, x);
  return most;
}
NM_INLINE void Spread(double total, F& lanes) { lanes = Set((float)total); }
NM_INLINE void Spread(double total, D& lanes) { lanes = SetWide(total); }

template <class Lanes, Lanes (*kJoin)(Lanes, Lanes), Lanes (*kEnd)(Lanes)>
void JoinFurthest(const void* x, size_t count, RowGathered& row) {
  Lanes lanes;
  Spread(row.total, lanes);
  const auto filler = static_cast<typename Memory<Lanes>::Number>(row.total);
  ForLanes<Lanes>(x, count, filler, [&](Lanes each) { lanes = kJoin(lanes, each); });
  Lead(kEnd(lanes), row.total);
}
template <void (*kJoin)(W&, D), void (*kEmpty)(W&, double&), int kNothing>
void JoinDoubles(const void* x, size_t count, RowGathered& row) {
  W lanes = Sixteen(kNothing);
  ForLanes<D>(x, count, kNothing, [&](D each) { kJoin(lanes, each); });
  kEmpty(lanes, row.total);
}
NM_INLINE void EmptyFloats(RowGathered& row) {
  S lanes;
  __builtin_memcpy(&lanes, row.lanes.data(), sizeof(lanes));
  Empty(lanes, row.total);
  row.lanes = {};
}
void EndFloats(RowGathered& row) { EmptyFloats(row); }
constexpr size_t kSumBlock = 1024;  // as BlockedSum of row_io.h
NM_INLINE F Itself(F x) { return x; }
template <F (*kOf)(F)>
NM_INLINE void AddEach(const void* x, size_t count, S& lanes) {
  ForLanes<F>(x, count, 0, [&](F each) { AddLanes(lanes, kOf(each)); });
}
template <F (*kOf)(F)>
void JoinFloats(const void* x, size_t count, RowGathered& row) {
  S lanes;
  __builtin_memcpy(&lanes, row.lanes.data(), sizeof(lanes));
  AddEach<kOf>(x, count, lanes);
  __builtin_memcpy(row.lanes.data(), &lanes, sizeof(lanes));
  row.count += count;
  if (row.count % kSumBlock == 0) EmptyFloats(row);
}

// Of whole rows, whose lanes never lie in memory.
template <class Number, void (*kJoin)(const void*, size_t, RowGathered&)>
void JoinEach(double start, const void* x, size_t rows, size_t columns, double* totals) {
  const auto* from = static_cast<const Number*>(x);
  for (size_t r = 0; r < rows; ++r, from += columns) {
    RowGathered row{.total = start};
    for (size_t i = 0; i < columns; i += kJoinBlock) {
      kJoin(from + i, columns - i < kJoinBlock ? columns - i : kJoinBlock, row);
    }
    totals[r] = row.total;
  }
}
template <F (*kOf)(F)>
void SumEach(const void* x, size_t rows, size_t columns, double* totals) {
  const auto* from = static_cast<const float*>(x);
  for (size_t r = 0; r < rows; ++r, from += columns) {
    double total = 0;
    for (size_t i = 0; i < columns; i += kSumBlock) {
      S lanes = {};
      AddEach<kOf>(from + i, columns - i < kSumBlock ? columns - i : kSumBlock, lanes);
      Empty(lanes, total);
    }
    totals[r] = total;
  }
}

constexpr double kInfinity = __builtin_inf();
constexpr double kLowest = -kInfinity, kNone = 0, kOne = 1;
template <class Number, void (*kJoin)(const void*, size_t, RowGathered&), const double& kStart>
constexpr RowJoin JoinRow(LoopOp op, LoopType type) {
  return {.op = op,
          .type = type,
          .start = kStart,
          .join = kJoin,
          .each = [](const void* x, size_t rows, size_t columns, double* totals) {
            JoinEach<Number, kJoin>(kStart, x, rows, columns, totals);
          }};
}
template <F (*kOf)(F)>
constexpr RowJoin SumRow(bool squares) {
  return {.op = LoopOp::kRowSum,
          .type = LoopType::kFloat,
          .join = JoinFloats<kOf>,
          .end = EndFloats,
          .each = SumEach<kOf>,
          .squares = squares};
}
constexpr RowJoin kJoins[] = {
    JoinRow<float, JoinFurthest<F, Raised, LargestLane>, kLowest>(LoopOp::kRowMax,
                                                                  LoopType::kFloat),
    JoinRow<float, JoinFurthest<F, Largest, LargestOrNan>, kLowest>(LoopOp::kRowLargest,
                                                                    LoopType::kFloat),
    JoinRow<double, JoinFurthest<D, Largest, LargestOrNan>, kLowest>(LoopOp::kRowLargest,
                                                                     LoopType::kDouble),
    JoinRow<float, JoinFurthest<F, Least, LeastOrNan>, kInfinity>(LoopOp::kRowLeast,
                                                                  LoopType::kFloat),
    JoinRow<double, JoinFurthest<D, Least, LeastOrNan>, kInfinity>(LoopOp::kRowLeast,
                                                                   LoopType::kDouble),
    SumRow<Itself>(false),
    SumRow<Square>(true),
    JoinRow<double, JoinDoubles<JoinSums, EmptySums, 0>, kNone>(LoopOp::kRowTotal,
                                                                LoopType::kDouble),
    JoinRow<double, JoinDoubles<JoinProducts, EmptyProducts, 1>, kOne>(LoopOp::kRowProduct,
                                                                       LoopType::kDouble),
};

struct LaneRow {
  LoopOp op;
  LoopType type;
  LaneFn fn;
};

// clang-format off
#define NM_ROW(name, type, ...) {LoopOp::k##name, LoopType::type, Block<__VA_ARGS__>::Of<name>}
#define NM_EACH_ROW(name, each) {LoopOp::k##name, LoopType::kDouble, each<name>}
#define NM_CALL_ROW(name) NM_EACH_ROW(name, EachOne)
// What floats round once, before that; for the wide machine.
#define NM_WIDE_ROW(name, ...) {LoopOp::k##name, LoopType::kDouble, Block<__VA_ARGS__>::Of<Wide##name>}
#define NM_REALS_ONE(name) NM_ROW(name, kFloat, F(F)), NM_ROW(name, kDouble, D(D))
#define NM_WHOLE_ONE(name) NM_ROW(name, kInt, I(I)), NM_ROW(name, kLong, L(L))
#define NM_REALS_TWO(name) NM_ROW(name, kFloat, F(F, F)), NM_ROW(name, kDouble, D(D, D))
#define NM_WHOLE_TWO(name) NM_ROW(name, kInt, I(I, I)), NM_ROW(name, kLong, L(L, L))
#define NM_RELATION(name) NM_ROW(name, kFloat, B(F, F)), NM_ROW(name, kDouble, B(D, D)), \
                          NM_ROW(name, kInt, B(I, I)), NM_ROW(name, kLong, B(L, L))
constexpr LaneRow kLanes[] = {
    NM_REALS_TWO(Add), NM_WHOLE_TWO(Add), NM_REALS_TWO(Sub), NM_WHOLE_TWO(Sub),
    NM_REALS_TWO(Mul), NM_WHOLE_TWO(Mul), NM_REALS_TWO(Max), NM_WHOLE_TWO(Max),
    NM_REALS_TWO(Min), NM_WHOLE_TWO(Min), NM_REALS_TWO(Div),
    NM_REALS_TWO(FloorDiv),
    NM_ROW(Scale, kFloat, F(F, double)), NM_ROW(Scale, kDouble, D(D, double)), NM_ROW(ToOdd, kDouble, F(D)),
    NM_REALS_ONE(Neg), NM_WHOLE_ONE(Neg), NM_REALS_ONE(Abs), NM_WHOLE_ONE(Abs),
    NM_REALS_ONE(Square), NM_WHOLE_ONE(Square), NM_REALS_ONE(Sign), NM_WHOLE_ONE(Sign),
    NM_REALS_ONE(Relu), NM_WHOLE_ONE(Relu), NM_REALS_ONE(Relu6), NM_WHOLE_ONE(Relu6),
    NM_REALS_ONE(HardSwish), NM_ROW(LeakyRelu, kFloat, F(F, double)), NM_ROW(LeakyRelu, kDouble, D(D, double)),
    NM_ROW(HardSigmoid, kFloat, F(F, double, double)), NM_ROW(HardSigmoid, kDouble, D(D, double, double)),
    NM_REALS_ONE(Sqrt), NM_REALS_ONE(Rsqrt),
    NM_REALS_ONE(Reciprocal), NM_REALS_ONE(Floor), NM_REALS_ONE(Ceil), NM_REALS_ONE(Rint),
    NM_RELATION(Equal), NM_RELATION(NotEqual), NM_RELATION(Less), NM_RELATION(LessEqual),
    NM_RELATION(Greater), NM_RELATION(GreaterEqual),
    NM_ROW(And, kBool, B(B, B)), NM_ROW(Or, kBool, B(B, B)), NM_ROW(Not, kBool, B(B)),
    NM_ROW(Select, kFloat, F(B, F, F)), NM_ROW(Select, kDouble, D(B, D, D)),
    NM_ROW(Select, kInt, I(B, I, I)), NM_ROW(Select, kLong, L(B, L, L)),
    NM_ROW(Exp, kFloat, F(F, double, double, double)),
    NM_ROW(Log, kFloat, F(F, double, double, double)),
    NM_ROW(Expm1, kFloat, F(F)), NM_ROW(Log1p, kFloat, F(F)), NM_ROW(Sin, kFloat, F(F)),
    NM_ROW(Cos, kFloat, F(F)), NM_ROW(Tanh, kFloat, F(F)), NM_ROW(Erf, kFloat, F(F)),
    NM_ROW(Sigmoid, kFloat, F(F)), NM_ROW(GeluTanh, kFloat, F(F)), NM_ROW(GeluErf, kFloat, F(F)),
    NM_ROW(FastGelu, kFloat, F(F)), NM_ROW(Swish, kFloat, F(F, double)),
    NM_ROW(SwiGlu, kFloat, F(F, F)), NM_ROW(Cube, kFloat, F(F)), NM_ROW(ExpOfNonPositive, kFloat, F(F)),
    NM_EACH_ROW(Exp, EachScaled), NM_EACH_ROW(Log, EachScaled),
    NM_CALL_ROW(Expm1), NM_CALL_ROW(Log1p), NM_CALL_ROW(Sin), NM_CALL_ROW(Cos), NM_CALL_ROW(Tan),
    NM_CALL_ROW(Sinh), NM_CALL_ROW(Cosh), NM_CALL_ROW(Tanh), NM_CALL_ROW(Asin), NM_CALL_ROW(Acos),
    NM_CALL_ROW(Atan), NM_CALL_ROW(Asinh), NM_CALL_ROW(Acosh), NM_CALL_ROW(Atanh), NM_CALL_ROW(Erf),
    NM_CALL_ROW(Erfc), NM_CALL_ROW(Sigmoid), NM_EACH_ROW(Atan2, EachTwo),
    NM_EACH_ROW(Mod, EachTwo), NM_EACH_ROW(Pow, EachTwo),
    NM_WIDE_ROW(GeluTanh, D(D)), NM_WIDE_ROW(GeluErf, D(D)), NM_WIDE_ROW(FastGelu, D(D)),
    NM_WIDE_ROW(Swish, D(D, double)), NM_WIDE_ROW(SwiGlu, D(D, D)), NM_WIDE_ROW(Cube, D(D)),
};
#define NM_BY_NUMBER(name) NM_ROW(name, kFloat, F(F, One<F>)), NM_ROW(name, kDouble, D(D, One<D>))
constexpr LaneRow kNumberLanes[] = {
    NM_BY_NUMBER(Add), NM_BY_NUMBER(Sub), NM_BY_NUMBER(Mul), NM_BY_NUMBER(Div),
};
constexpr LanePair kPairs[] = {
    {LoopOp::kMul, LoopOp::kMul, Block<F(F, F, F)>::Of<Pair<Mul, Mul>>, Block<F(F, One<F>, F)>::Of<Pair<Mul, Mul>>},
    {LoopOp::kSub, LoopOp::kExpOfNonPositive, Block<F(F, F)>::Of<Pair<Sub, ExpOfNonPositive>>, Block<F(F, One<F>)>::Of<Pair<Sub, ExpOfNonPositive>>},
};
// clang-format on

template <size_t kRows>
LaneFn FindIn(const LaneRow (&rows)[kRows], LoopOp op, LoopType type) {
  for (const LaneRow& row : rows) {
    if (row.op == op && row.type == type) return row.fn;
  }
  return nullptr;
}
LaneFn FindLanes(LoopOp op, LoopType type) { return FindIn(kLanes, op, type); }
LaneFn FindNumberLanes(LoopOp op, LoopType type) { return FindIn(kNumberLanes, op, type); }

const LanePair* FindPair(LoopOp first, LoopOp second) {
  for (const LanePair& pair : kPairs) {
    if (pair.first == first && pair.second == second) return &pair;
  }
  return nullptr;
}

const RowJoin* FindJoin(LoopOp op, LoopType type, bool squares) {
  for (const RowJoin& row : kJoins) {
    if (row.op == op && row.type == type && row.squares == squares) return &row;
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace npumesh {

HWY_EXPORT(FindLanes);
HWY_EXPORT(FindNumberLanes);
HWY_EXPORT(FindPair);
HWY_EXPORT(FindJoin);

LaneFn FindLanes(LoopOp op, LoopType type) { return HWY_DYNAMIC_DISPATCH(FindLanes)(op, type); }
LaneFn FindNumberLanes(LoopOp op, LoopType type) {
  return HWY_DYNAMIC_DISPATCH(FindNumberLanes)(op, type);
}
const LanePair* FindPair(LoopOp first, LoopOp second) {
  return HWY_DYNAMIC_DISPATCH(FindPair)(first, second);
}
const RowJoin* FindJoin(LoopOp op, LoopType type, bool squares) {
  return HWY_DYNAMIC_DISPATCH(FindJoin)(op, type, squares);
}

}  // namespace npumesh
#endif  // HWY_ONCE
