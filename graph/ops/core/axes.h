// Axes: what an operator does along each axis of its tensors, as one line of text beside its
// signature (docs/extending.md has the grammar):
//
//   MatMul       x1[.. m? k+ | transpose_x1], x2[.. k n? | transpose_x2], bias[.. 1? n]
//                  -> y[.. m? n?]
//   SoftmaxV2    x[.. a! ..] -> y[.. a ..]; a = axes
//   ReduceSum    x[.. a! ..] -> y[.. a?keep_dims ..]; a = axes
//   Transpose    x[..] -> y[..^perm]
//   GatherV2     x[.. r@indices ..], indices[i..] -> y[.. i.. ..]; r = axis
//   SwiGlu       x[.. 2a ..] -> y[.. a ..]; a = dim
//   Add          [..]                                      (all ports alike)
//
// A letter is an axis, the same in all tensors: an element of the output depends on the elements
// that have its places along the letters that it has. What can be split over ranks, what is summed,
// which axes move where, how much is multiplied, and whether the operator is element-wise follow
// from the text (graph/shard, graph/engine, graph/compare).
//
// Thread-safety: plain values and free functions.
#ifndef NPUMESH_GRAPH_OPS_CORE_AXES_H_
#define NPUMESH_GRAPH_OPS_CORE_AXES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// What an element of an output takes of a letter.
enum class AxisNeed : uint8_t {
  kPlace,      // its own place
  kWhole,      // `!`: all places
  kSum,        // `+`: the sum over all places
  kUnchanged,  // `~`: its own place where the size stays as it is, others where it changes
  kPositions,  // `@port`: the places that the values of `port` name
};

// A letter, or a group: any number of axes, which broadcast as NumPy does.
struct AxisLetter {
  std::string_view name;  // ".." is the group without a name
  AxisNeed need = AxisNeed::kPlace;
  std::string_view positions;  // of kPositions: the port
  // The port or attribute that says at which axes of the first tensor it stands; empty: where it
  // is written.
  std::string_view place;
};

// One term of a tensor's pattern.
struct AxisTerm {
  std::string_view name;  // "1": an axis of size 1
  bool group = false;
  bool counts = false;     // `#name`: an axis with an entry for each axis of what has the name
  int times = 1;           // `2a`: that many blocks of the letter
  bool joined = false;     // `a*`: the letter of all tensors of a list, one after the other
  bool optional = false;   // `a?`: missing in tensors of fewer axes
  std::string_view kept;   // `a?keep_dims`: of size 1, there if the attribute is true
  std::string_view order;  // `..^perm`: in the order that a port or attribute says
};

// The axes of a port; of each of its tensors, if it is dynamic.
struct PortAxes {
  std::string_view port;
  std::vector<AxisTerm> terms;
  std::string_view swapped;  // an attribute: the last two are exchanged if it is true
  bool spread = false;       // `[?]`: it belongs to axes of others that the text does not tell
};

// `name == value`, or `name > value` for each of its integers: the text holds only then.
struct AxisCondition {
  std::string_view name;
  bool greater = false;
  int64_t value = 0;
};

// A product of matrices, of the last two dimensions of two inputs: output 0 is left * right, plus
// the bias where there is one.
struct ProductTrait {
  std::string_view left = "x1";
  std::string_view right = "x2";  // where models have their weights
  // Attributes: whether the operand is transposed before it is multiplied.
  std::string_view left_transposed;
  std::string_view right_transposed;
  // An optional port with one row for all rows of the product; empty: no such port.
  std::string_view bias;
};

// The sizes of a tensor stand in a port, or an attribute.
struct AxisSizes {
  std::string_view name;
  std::string_view of;  // an output; or a letter that falls into parts
};

// A port with positions, and the input in which they are.
struct AxisLookup {
  std::string_view positions;
  std::string_view data;
};

class Axes {
 public:
  Axes() = default;  // the operator says nothing
  // REQUIRES: the text lives as long as the program and follows the notation; ends the program
  // otherwise, because tests read every built-in operator.
  Axes(const char* text);  // NOLINT: implicit
  // The names are views into `text`. Error (kInvalidArgument): what does not follow the notation,
  // and at which character.
  static Result<Axes> Parse(std::string_view text);

  bool given() const { return !text_.empty(); }
  std::string_view text() const { return text_; }

  // Null: the text says nothing of this port.
  const PortAxes* input(std::string_view port) const;
  const PortAxes* output(std::string_view port) const;
  const std::vector<PortAxes>& inputs() const { return inputs_; }
  const std::vector<PortAxes>& outputs() const { return outputs_; }
  const std::vector<AxisLetter>& letters() const { return letters_; }
  const std::vector<AxisCondition>& conditions() const { return conditions_; }
  // REQUIRES: the text has it.
  const AxisLetter& letter(std::string_view name) const;
  bool has_letter(std::string_view name) const;

  // ---- what follows from the text ----

  // Element i of output 0 depends only on element i of inputs of equal size: the output may take
  // over the storage of such an input when it is the only reader.
  bool elementwise() const { return elementwise_; }
  // The port, or the attribute, that says how output 0 permutes the axes of input 0; empty: it is
  // no permutation.
  std::string_view permutation() const { return permutation_; }
  const std::optional<ProductTrait>& product() const { return product_; }
  const std::vector<AxisSizes>& sizes() const { return sizes_; }
  // The outputs follow from the types of the inputs, whose bytes the kernel does not read.
  bool shape_query() const { return shape_query_; }
  // All elements of the output are equal, whatever its sizes are.
  bool fills() const { return inputs_.size() == 1 && sizes_.size() == 1; }
  const std::vector<AxisLookup>& lookups() const { return lookups_; }
  // The letter of input 0 for each place of which outputs have a place of the positions; null: none.
  const AxisLetter* looked_up() const;

 private:
  friend class AxesReader;
  void Conclude();
  bool FindsElementwise() const;
  bool AsksForSizes() const;
  void FindProduct();
  void FindLookups();

  std::string_view text_;
  std::vector<PortAxes> inputs_, outputs_;
  std::optional<PortAxes> every_;
  std::vector<AxisLetter> letters_;
  std::vector<AxisCondition> conditions_;
  std::vector<AxisSizes> sizes_;
  std::vector<AxisLookup> lookups_;
  std::optional<ProductTrait> product_;
  std::string_view permutation_;
  bool elementwise_ = false;
  bool shape_query_ = false;
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_CORE_AXES_H_
