// Point-wise operators: everything of which one element of every output depends on one element of
// every input. A family is a table of formulas on single elements; this driver does the rest:
// schema, types, broadcasting, conversion, blocks, losses that are summed, updates in place.
//
// Formulas on real numbers are computed in double and rounded once to the type of the output.
// Formulas on integers are computed in 128 bits, which hold every value of every type; the low bits
// of the result are the wrapped result.
//
// formula.h is the fast sibling for the operators that every model is full of.
//
// Thread-safety: formulas are pure functions; a kernel runs on one thread at a time.
#ifndef NPUMESH_GRAPH_OPS_ELEMENTWISE_POINTWISE_H_
#define NPUMESH_GRAPH_OPS_ELEMENTWISE_POINTWISE_H_

#include <string_view>
#include <vector>

#include "graph/ops/core/op_registry.h"

namespace npumesh {

__extension__ using WideInt = __int128;

// What is the same for all elements.
struct PointwiseConstants {
  // Attributes in schema order: numbers and flags as they are, of the text attribute the place of
  // its value among PointwiseSpec::words.
  std::vector<double> attr;
  int bits = 0;          // of the promoted type
  int slots = 0;         // inputs, with the tensors of a dynamic one counted singly
  int64_t elements = 0;  // over which the formula is evaluated
};

// `in` by slot, `out` by formula result.
using RealFormula = void (*)(const double* in, const PointwiseConstants& constants, double* out);
using IntegerFormula = void (*)(const WideInt* in, const PointwiseConstants& constants,
                                WideInt* out);

// What becomes of the computed elements.
enum class Gathered : uint8_t {
  kElements,  // they are the output
  kByAttr,    // text attribute "reduction": 0 none, 1 mean, 2 sum, 3 batchmean (of kReductions)
  kSum,       // their sum is the output, a scalar
};
inline const std::vector<std::string_view> kReductions = {"none", "mean", "sum", "batchmean"};

struct PointwiseSpec {
  std::string_view type;
  std::vector<PortSpec> inputs;
  RealFormula real = nullptr;        // null: integers only
  IntegerFormula integer = nullptr;  // null: see `truncates`
  std::vector<AttrSpec> attrs = {};
  std::vector<PortSpec> outputs = {{"y"}};

  // The first `data` inputs decide type and shape of the outputs by promotion and broadcasting; the
  // others broadcast to that shape. 0: all.
  int data = 0;
  int like = -1;           // slot whose type the outputs have; -1: promoted
  bool flags = false;      // the output is bool
  bool widens = false;     // integers and bool give float32
  bool truncates = false;  // integers narrower than 64 bits go through `real` and lose the fraction
  // The shape under which an input takes part (a vector along the channels); null: its own.
  Result<Shape> (*seen_as)(const OpContext& op, int slot) = nullptr;
  int divisor = -1;   // slot that may hold no (integer) zero
  double absent = 0;  // value of an optional input that is not fed
  // Slots that results 0, 1, ... are written to, for operators that update their inputs. Results
  // past the last output port are seen in the inputs alone.
  std::vector<int> updates = {};
  std::string_view text = {};  // attribute that holds one of `words`
  std::vector<std::string_view> words = {};
  Gathered gathered = Gathered::kElements;
};

void RegisterPointwise(OpRegistry& registry, PointwiseSpec spec);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_ELEMENTWISE_POINTWISE_H_
