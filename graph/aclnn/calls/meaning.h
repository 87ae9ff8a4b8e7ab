// AclnnMeaning: a call of an aclnn function as a graph of operators.
//
// What the expressions of a table (table.h) may call besides operators:
//   promote(a, b, ...)   the operands in the type that PyTorch computes such an operation in:
//                        tensors before tensors of no dimensions before scalars, within the kinds
//                        bool, integer, real; results are then written only into types that
//                        hold their kind
//   cast(x, like)        x in the type of a tensor, or in a type
//   real(x)              x, or float32 in place of integers and bool
//   scaled(x, alpha)     alpha * x; x where alpha is 1
//   number(s)            a scalar as a number
//   const(n, like)       a tensor of no dimensions, of the type of `like`, or of that type
//   int32(list), int64(list), uint64(list)  a constant vector, or of no dimensions for a number
//   fill(n, like)        a tensor of the shape and type of `like`, a parameter that is written
//   shape(x) size(x, d) rank(x) count(x) type(x)  of a tensor
//   axis(d, x)           d without a sign
//   axes(list, x)        the same for a list; all axes of x for an empty one or none
//   reshape(x, list) transpose(x, list) broadcast(x, list)  by these operators, where they change
//                        anything; broadcast also each tensor of a list
//   has(x)               whether an optional parameter is there
//   is_real(x) is_bool(x)  of a tensor or scalar
//   front_and_back(list, x)  pads of the last axes first, as PyTorch has them, for all axes of x
//   refuse(text)         the call is refused: npumesh lacks what the text says
//   length(list) ones(n)  a number, and a list of n ones
//   full(n, list, like)  a tensor of that shape, of the type of `like`, or of that type
//   zeros(tensors)       a list of tensors of zeros, as they are
//   wide(x)              x, or float32 in place of integers, bool and floats of 16 bits
//   single(x)            x, or float32 in place of floats of 16 bits
//   is_complex(x)        of a tensor or scalar
//   larger(a, b)         of two numbers
//   lowest(x) highest(x) the least and the largest number of the type of x
//   whole_below(n, x)    the largest whole number below n that the type of x, a float, has
//   place(type, types)   where it stands in the list; -1: nowhere
//   fits(scale, in, out) whether a scale is that of the sizes; one of 0 or less always is
//   only(condition, text)  as a statement: the call is refused unless the condition holds
//   first(list, n) from(list, n)  its first n numbers, and the others
//   doubled(list)        every number twice
//   pieces(n, most)      n as numbers of `most`, and the rest
//   without(d, x)        all axes of x but that one
//   resized(x, d, n)     the shape of x, with n for dimension d
//   batch(x)             its first dimension; 1 where it has no dimensions
//   present(tensors)     those with elements; presence(tensors): 1 for them, 0 for others
//   beside(s, x)         s with dimensions of 1 behind its first one, until it has the rank of x
//   on_axis(v, d, x)     a vector along that axis, with the rank of x
//   along(v, d, list)    the same, broadcast to that shape
//   cut(x, list)         its first elements, as many along each axis
//
// Of an operator whose outputs are a list, `outputs` says how many; without it as many as inputs.
//
// Thread-safety: any thread.
#ifndef NPUMESH_GRAPH_ACLNN_CALLS_MEANING_H_
#define NPUMESH_GRAPH_ACLNN_CALLS_MEANING_H_

#include <string>
#include <variant>
#include <vector>

#include "graph/aclnn/table/table.h"
#include "graph/ir/graph.h"
#include "graph/ir/tensor.h"

namespace npumesh {

// A scalar with the type that its creator gave it.
struct AclnnScalar {
  DataType dtype = DataType::kUndefined;
  bool is_integer = false;
  int64_t integer = 0;
  double real = 0;
  double imaginary = 0;
};

// What a parameter of a call is: the types of tensors, the values of all others. Nothing: null.
using AclnnArgument =
    std::variant<std::monostate, TensorType, std::vector<TensorType>, AclnnScalar,
                 std::vector<AclnnScalar>, std::vector<int64_t>, std::vector<double>,
                 std::vector<bool>, int64_t, double, bool, std::string, DataType>;

// A tensor of the call: a parameter, and its place in a list.
struct AclnnPlace {
  size_t param = 0;
  size_t element = 0;
};

struct AclnnMeaning {
  Model model;
  std::vector<AclnnPlace> inputs;   // of the model
  std::vector<AclnnPlace> outputs;  // the same; not all that the function could write
};

// The graph of a call. Errors (kInvalidArgument): the tensors do not fit the function, or a
// result does not fit the shape or the type of what it is written into, in words about the
// parameters;
// kUnsupported: npumesh lacks what it would take. REQUIRES: as many arguments as parameters.
Result<AclnnMeaning> MeaningOf(const AclnnTable& table, const AclnnFunction& function,
                               const std::vector<AclnnArgument>& arguments);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_ACLNN_CALLS_MEANING_H_
