// The block machine: computes element-wise programs block by block, so that what one line gives the
// next reads from a buffer of a few KiB in the first-level cache.
//
// Thread-safety: immutable; a kernel runs on the threads that it was made for.
#ifndef NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_BLOCK_MACHINE_H_
#define NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_BLOCK_MACHINE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/ops/core/operator.h"
#include "graph/ops/toolbox/lanes/lane_table.h"

namespace npumesh {

// A function on blocks, and the conversions around it.
struct BlockLine {
  LaneFn lanes = nullptr;  // null: gives its operand
  LaneParams params = {};
  // By operand: an input of the machine, or -1 - i for what line i gives, an earlier one.
  std::vector<int> from;
  std::vector<DataType> reads;             // by operand
  DataType writes = DataType::kUndefined;  // what `lanes` writes
  DataType gives = DataType::kUndefined;   // what others read: converted where it is another type
  int divisor = -1;                        // operand that may hold no (integer) zero
};

// Lines whose values all have the shape of the output, which the last one gives. Inputs broadcast
// to it.
struct BlockProgram {
  std::vector<BlockLine> lines;
  std::vector<TensorType> inputs;
  TensorType out;
};

struct BlockOptions {
  int threads = 1;
  // Input 0 lies where the output will be, and KernelArgs::in begins with input 1.
  bool first_in_output = false;
  std::string who;  // in errors
};

// Error of a run (kInvalidArgument): an integer is divided by zero.
// REQUIRES: conversions between what is stored, read, written and given exist.
std::unique_ptr<Kernel> MakeBlockMachine(const BlockProgram& program, BlockOptions options);

// Whether the kernel is a block machine whose runs cannot fail.
bool IsSafeBlockMachine(const Kernel& kernel);

// Error (kInvalidArgument) for a zero among `count` divisors of 64 bits; the first one is for
// element `begin` of the output.
Status RefuseZeros(const std::string& who, const void* block, int64_t begin, size_t count);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_TOOLBOX_MACHINE_BLOCK_MACHINE_H_
