// Problem lists: the calls of operators that tests make, as text.
//
//   # An operator, its inputs and attributes, and what comes of them.
//   Neg x=float32[3]{1 -2 0} -> float32[3]{-1 2 -0}
//   ReduceMax T={float32,int8} x=$T[2,3]{1 5 2, 3 4 0} axes=int64[1]{1} -> $T[2]{5 4}
//   Tile x=float32[2,1] multiples=int64[1]{2} ! invalid "multiples" "1 numbers"
//
//   # A call without an end is what the indented lines below depart from.
//   Pack x0=int64[]{1} x1=int64[]{2} N=2
//     axis=0           -> int64[2]{1 2}
//     axis=1           ! invalid "axis 1"
//     x1=int64[1]{2}   ! invalid "x1 [1]"
//     -x1 N=1          -> int64[1]{1}
//
// A word of a call is
//   port=TENSOR        an input (tensor_text.h); known:TENSOR, late:TENSOR: inference sees its
//                      value, or does not, whatever the operator asks for
//   name=VALUE         an attribute as signatures write it: 2, 1.0, true, "text", [1,2], float16;
//                      name:floats=[] where the value does not show its kind
//   -name              without this input or attribute of the call above
//   @threads=3 @outputs=2   threads; outputs where the schema leaves their number open
//   T={a,b}            the line once for each: $T stands for it; several are combined. `reals`,
//                      `floats`, `ints` and `all` are sets of types
//
// Behind the call stands one of
//   -> TENSOR TENSOR   its outputs, if any, bit by bit (a NaN for a NaN); _ for one that does not
//                      matter, TYPE[DIMS]? for one of which only the type does; `within 1e-6` at
//                      the end: so near, over max(1, |expected|)
//   -> float64         as near as its types allow to what float64 gives (float64_calls.cc)
//   == Pack x0=...     the outputs of that call; == axis=1: of this call with other words
//   ! CODE "words"     it fails so, in these words: invalid, not_found, corrupt, unsupported ...
//
// A line that ends in \ goes on in the next; # begins a comment.
#ifndef NPUMESH_TESTS_OPERATORS_PROBLEM_LIST_H_
#define NPUMESH_TESTS_OPERATORS_PROBLEM_LIST_H_

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace npumesh {

// A call in words, or two with what is between them.
struct Problem {
  int line = 0;      // of the file, from 1
  std::string type;  // the operator
  std::vector<std::string> call;
  std::string relation;  // "->", "==" or "!"
  std::vector<std::string> expected;
};

// The problems of a list, with the words of the calls that they depart from. Error
// (kInvalidArgument): a line that does not follow this, with its number.
Result<std::vector<Problem>> ReadProblems(std::string_view text);

// The problem once for each combination of its sets, without them.
Result<std::vector<Problem>> Combinations(const Problem& problem);

// `words` with those of `changes` in place of, behind or without their namesakes.
std::vector<std::string> Changed(const std::vector<std::string>& words,
                                 const std::vector<std::string>& changes);

// The words of a problem as a line.
std::string TextOf(const Problem& problem);

}  // namespace npumesh

#endif  // NPUMESH_TESTS_OPERATORS_PROBLEM_LIST_H_
