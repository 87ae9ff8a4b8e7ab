// Point-wise operators: everything of which one element of every output depends on one element of
// every input. A family is a table of formulas on single elements; this driver does the rest:
// schema, types, broadcasting, conversion, blocks, losses that are summed, updates in place.
//
// Formulas on real numbers are computed in double and rounded once to the type of the output.
// Formulas on integers are computed in 128 bits, which hold every value of every type; the low bits
// of the result are the wrapped result.
//
// The operators that models use most are loop programs (toolbox/machine/elementwise.h), which run
// faster.
//
// Thread-safety: formulas are pure functions; a kernel runs once at a time, on the threads of its
// session.
#ifndef NPUMESH_GRAPH_OPS_ELEMENTWISE_POINTWISE_H_
#define NPUMESH_GRAPH_OPS_ELEMENTWISE_POINTWISE_H_

#include <array>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/ops/core/loop_number.h"
#include "graph/ops/core/op_registry.h"

namespace npumesh {

__extension__ using WideInt = __int128;

// What is the same for all elements.
struct PointwiseConstants {
  // Attributes in schema order: numbers and flags as they are, of the text attribute the place of
  // its value among PointwiseTraits::words.
  std::vector<double> attr;
  int bits = 0;          // of the promoted type
  int slots = 0;         // inputs, with the tensors of a dynamic one counted singly
  int64_t elements = 0;  // over which the formula is evaluated

  double operator[](size_t i) const { return attr[i]; }
};

// A formula on one element of each input: a function object without state that takes (a), (a, b),
// (a, b, c) ..., with or without the constants after them, or (in, constants), `in` by slot. It
// gives the result, or a std::array of several. Called for a block of elements at once, so that the
// compiler sees the loop. A template over doubles (loop_number.h) is a loop program, too.
template <typename Number>
class PointwiseFormula {
 public:
  constexpr PointwiseFormula() = default;  // none
  template <typename F, typename = std::enable_if_t<std::is_class_v<F>>>
  constexpr PointwiseFormula(F)  // NOLINT: implicit
      : first_(Evaluate<F, First>), second_(Evaluate<F, Second>), write_(WriterOf<F>()) {}

  bool given() const { return first_ != nullptr; }
  bool is_program() const { return write_ != nullptr; }
  // The results of values of doubles, by slot. REQUIRES: is_program().
  std::vector<LoopValue> Write(LoopBuilder& loop, std::span<const LoopValue> in,
                               const PointwiseConstants& constants) const {
    return write_(loop, in, constants);
  }
  // Computes `count` elements that are stored as `Stored`: double for real formulas, int64_t or
  // uint64_t for those on integers. `in` has the address of each slot's, `out` of each result's.
  template <typename Stored>
  void operator()(const void* const* in, const PointwiseConstants& constants, void* const* out,
                  size_t count) const {
    static_assert(std::is_same_v<Stored, First> || std::is_same_v<Stored, Second>);
    (std::is_same_v<Stored, First> ? first_ : second_)(in, constants, out, count);
  }

 private:
  static constexpr bool kReal = std::is_same_v<Number, double>;
  using First = std::conditional_t<kReal, double, int64_t>;
  using Second = std::conditional_t<kReal, double, uint64_t>;
  using Function = void (*)(const void* const* in, const PointwiseConstants& constants,
                            void* const* out, size_t count);
  template <size_t>
  using NumberAt = Number;

  template <typename F, typename Stored>
  static void Evaluate(const void* const* in, const PointwiseConstants& constants, void* const* out,
                       size_t count) {
    if constexpr (std::is_invocable_v<F, const Number*, const PointwiseConstants&>) {
      std::vector<Number> row(static_cast<size_t>(constants.slots));
      for (size_t i = 0; i < count; ++i) {
        for (size_t slot = 0; slot < row.size(); ++slot) {
          row[slot] = static_cast<const Stored*>(in[slot])[i];
        }
        Put<Stored>(F()(row.data(), constants), out, i);
      }
    } else {
      Spread<F, Stored>(in, constants, out, count, std::index_sequence<0>());
    }
  }
  // With the first slots as arguments, as many as it takes.
  template <typename F, typename Stored, size_t... kSlots>
  static void Spread(const void* const* in, const PointwiseConstants& constants, void* const* out,
                     size_t count, std::index_sequence<kSlots...>) {
    constexpr bool kPlain = std::is_invocable_v<F, NumberAt<kSlots>...>;
    if constexpr (kPlain ||
                  std::is_invocable_v<F, NumberAt<kSlots>..., const PointwiseConstants&>) {
      const Stored* const x[] = {static_cast<const Stored*>(in[kSlots])...};
      const auto at = [&](size_t i) {
        if constexpr (kPlain) {
          return F()(static_cast<Number>(x[kSlots][i])...);
        } else {
          return F()(static_cast<Number>(x[kSlots][i])..., constants);
        }
      };
      if constexpr (std::is_convertible_v<decltype(at(0)), Number>) {
        // Results lie apart from inputs and constants, which are read once therefore.
        Stored* __restrict const y = static_cast<Stored*>(out[0]);
        for (size_t i = 0; i < count; ++i) y[i] = static_cast<Stored>(at(i));
      } else {
        for (size_t i = 0; i < count; ++i) Put<Stored>(at(i), out, i);
      }
    } else {
      Spread<F, Stored>(in, constants, out, count,
                        std::make_index_sequence<sizeof...(kSlots) + 1>());
    }
  }
  template <typename Stored>
  static void Put(Number result, void* const* out, size_t i) {
    static_cast<Stored*>(out[0])[i] = static_cast<Stored>(result);
  }
  template <typename Stored, size_t kResults>
  static void Put(const std::array<Number, kResults>& results, void* const* out, size_t i) {
    for (size_t r = 0; r < kResults; ++r) {
      static_cast<Stored*>(out[r])[i] = static_cast<Stored>(results[r]);
    }
  }

  using Writer = std::vector<LoopValue> (*)(LoopBuilder& loop, std::span<const LoopValue> in,
                                            const PointwiseConstants& constants);
  template <size_t>
  using LoopNumberAt = LoopNumber;

  template <typename F>
  static constexpr Writer WriterOf() {
    if constexpr (!kReal) {
      return nullptr;
    } else if constexpr (std::is_invocable_v<F, const Number*, const PointwiseConstants&>) {
      return [](LoopBuilder& loop, std::span<const LoopValue> in, const PointwiseConstants& c) {
        std::vector<LoopNumber> row;
        for (const LoopValue value : in) row.emplace_back(loop, value);
        return ValuesOf(loop, F()(row.data(), c));
      };
    } else {
      return WriterOf<F>(std::index_sequence<0>());
    }
  }
  // For the first slots as arguments, as many as it takes of doubles. Null: it takes nothing else.
  template <typename F, size_t... kSlots>
  static constexpr Writer WriterOf(std::index_sequence<kSlots...>) {
    if constexpr (std::is_invocable_v<F, NumberAt<kSlots>...>) {
      if constexpr (std::is_invocable_v<F, LoopNumberAt<kSlots>...>) {
        return [](LoopBuilder& loop, std::span<const LoopValue> in, const PointwiseConstants&) {
          return ValuesOf(loop, F()(LoopNumber(loop, in[kSlots])...));
        };
      }
      return nullptr;
    } else if constexpr (std::is_invocable_v<F, NumberAt<kSlots>..., const PointwiseConstants&>) {
      if constexpr (std::is_invocable_v<F, LoopNumberAt<kSlots>..., const PointwiseConstants&>) {
        return [](LoopBuilder& loop, std::span<const LoopValue> in, const PointwiseConstants& c) {
          return ValuesOf(loop, F()(LoopNumber(loop, in[kSlots])..., c));
        };
      }
      return nullptr;
    } else {
      return WriterOf<F>(std::make_index_sequence<sizeof...(kSlots) + 1>());
    }
  }

  Function first_ = nullptr, second_ = nullptr;
  Writer write_ = nullptr;
};
using RealFormula = PointwiseFormula<double>;
using IntegerFormula = PointwiseFormula<WideInt>;

// What becomes of the computed elements.
enum class Gathered : uint8_t {
  kElements,  // they are the output
  kByAttr,    // text attribute "reduction": 0 none, 1 mean, 2 sum, 3 batchmean (of kReductions)
  kSum,       // their sum is the output, a scalar
};
inline const std::vector<std::string_view> kReductions = {"none", "mean", "sum", "batchmean"};

struct PointwiseTraits {
  IntegerFormula integer = {};  // none: see `truncates`
  // The first `data` inputs decide type and shape of the outputs by promotion and broadcasting; the
  // others broadcast to that shape. 0: all.
  int data = 0;
  int like = -1;           // slot whose type the outputs have; -1: promoted
  bool flags = false;      // the output is bool
  bool widens = false;     // integers and bool give float32
  bool truncates = false;  // integers narrower than 64 bits go through `real` and lose the fraction
  // The shape under which an input takes part (a vector along the channels); null: its own.
  Result<Shape> (*seen_as)(const OpContext& op, int slot) = nullptr;
  const char* axes = "[..]";  // of those with one output that gather and update nothing
  int divisor = -1;           // slot that may hold no (integer) zero
  double absent = 0;          // value of an optional input that is not fed
  // Slots that results 0, 1, ... are written to, for operators that update their inputs. Results
  // past the last output port are seen in the inputs alone.
  std::vector<int> updates = {};
  std::vector<std::string_view> words = kReductions;  // values of the one attribute that is a text
  Gathered gathered = Gathered::kElements;
  PrecisionClass precision = PrecisionClass::kGrey;
};

struct PointwiseSpec {
  std::string_view signature;
  RealFormula real;  // none: integers only
  PointwiseTraits traits = {};
};

// `like`: PointwiseTraits::like of the rows that have none. `change`: what is different about some
// of the operators; may be null.
void RegisterPointwise(OpRegistry& registry, std::span<const PointwiseSpec> specs, int like = -1,
                       void (*change)(Operator& op) = nullptr);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ELEMENTWISE_POINTWISE_H_
