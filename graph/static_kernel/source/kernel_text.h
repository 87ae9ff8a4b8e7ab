// The C++ text of static kernels.
//
// A kernel is one function with the signature of LoopEntry, in which trip counts, strides,
// constants and types are literals. The texts of many kernels stand after one common beginning in
// one file.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_STATIC_KERNEL_SOURCE_KERNEL_TEXT_H_
#define NPUMESH_GRAPH_STATIC_KERNEL_SOURCE_KERNEL_TEXT_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ops/core/loop_program.h"

namespace npumesh {

// Counts up with every change of what the generator writes; it stands in every key.
inline constexpr int kGeneratorVersion = 8;

// Floats that a kernel takes at a time: few, or many where it rounds long rows to 16 bits. More
// than a vector has let the operations of several vectors overlap, because those of one wait for
// each other: 20 operators on float16 take half the time by 64 that they take by 16.
inline constexpr std::array<int, 2> kKernelWidths = {16, 64};

// The common beginning: vectors and the functions that instructions call, for each width in a
// namespace. Needs no header.
std::string KernelBeginning();

// How many floats the generator takes at a time where it is not told: one of kKernelWidths.
int64_t KernelWidth(const LoopProgram& program);

// The function `symbol`, a C identifier, by `width` floats at a time: one of kKernelWidths, or 0:
// KernelWidth decides. Each operator's instructions stand below a comment with its title, of which
// all but letters, digits and " ._/()-" is replaced.
std::string KernelText(const LoopProgram& program, std::string_view symbol, int64_t width = 0);

// The same, and by line (the first is 0) the operator that it computes, reads or writes for, an
// index into program.titles; -1: a comment, a brace or a loop of the kernel as a whole.
struct MappedKernelText {
  std::string text;
  std::vector<int> origins;
};
MappedKernelText MapKernelText(const LoopProgram& program, std::string_view symbol,
                               int64_t width = 0);

// Scratch that the function works in: rows of values that a later walk along the row needs.
uint64_t KernelScratchBytes(const LoopProgram& program, int64_t width = 0);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_STATIC_KERNEL_SOURCE_KERNEL_TEXT_H_
