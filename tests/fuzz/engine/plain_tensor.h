// A tensor as the plain interpreter computes with it: one number for each element.
//
// A long double holds every int64 and every float exactly, and 64 bits of mantissa are more than
// twice those of a float plus two: + - * / and the root, computed in it and rounded once, have the
// bits of the same operation in float32, float16 or bfloat16.
#ifndef NPUMESH_TESTS_FUZZ_ENGINE_PLAIN_TENSOR_H_
#define NPUMESH_TESTS_FUZZ_ENGINE_PLAIN_TENSOR_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "graph/ir/tensor.h"

namespace npumesh::fuzz {

using Number = long double;
using Extents = std::vector<int64_t>;

// How far the numbers can be relied on, from best to worst.
enum class Trust : uint8_t {
  kExact,   // every correct implementation has these numbers
  kRough,   // sums in another order and functions of other libraries differ in the last places
  kUnsure,  // a rough number decided something: an index, a comparison, an integer
};

struct PlainTensor {
  DataType dtype = DataType::kUndefined;
  Extents dims;
  std::vector<Number> v;
  Trust trust = Trust::kExact;

  int rank() const { return static_cast<int>(dims.size()); }
  int64_t count() const { return static_cast<int64_t>(v.size()); }
  Number at(int64_t i) const { return v[static_cast<size_t>(i)]; }
  Number& at(int64_t i) { return v[static_cast<size_t>(i)]; }
  int64_t integer(int64_t i) const { return static_cast<int64_t>(at(i)); }
};

bool IsFloat(DataType dtype);
bool IsWholeType(DataType dtype);  // int32, int64, int8, uint8; not bool

int64_t CountOf(const Extents& dims);
// Numbers that a graph computes may ask for more elements than that, or fewer than none.
bool FitsInMemory(const Extents& dims);
// Elements between neighbours of each axis, in C order.
Extents StridesOf(const Extents& dims);
// A tensor of zeros.
PlainTensor Zeros(DataType dtype, Extents dims);
// `at` takes every position of `dims`, in C order.
void ForEachPosition(const Extents& dims, const std::function<void(const Extents& at)>& take);
int64_t OffsetOf(const Extents& at, const Extents& strides);

// What both broadcast to; nullopt: they do not.
std::optional<Extents> Joined(const Extents& a, const Extents& b);
// By element of `dims`: the element of a tensor of the extents `from` that is broadcast there.
std::vector<int64_t> BroadcastSources(const Extents& from, const Extents& dims);
// Axis from the front; nullopt: no such axis.
std::optional<int> AxisIn(int64_t axis, int rank);

// The nearest number of the dtype, ties to even; integers wrap, bool is 0 or 1.
Number RoundTo(DataType dtype, Number x);
void RoundAll(PlainTensor& tensor);
// Unit in the last place of 1.
Number EpsilonOf(DataType dtype);

// The same bytes as numbers of another type of the same width.
PlainTensor Reinterpreted(const PlainTensor& plain, DataType dtype);

// Both ways between bytes and numbers: float32, float16, bfloat16, int64, int32, int8, uint8, bool.
PlainTensor FromTensor(const Tensor& tensor);
Tensor ToTensor(const PlainTensor& plain);

}  // namespace npumesh::fuzz

#endif  // NPUMESH_TESTS_FUZZ_ENGINE_PLAIN_TENSOR_H_
