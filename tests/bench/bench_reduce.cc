// Reduction kernels beside memcpy of the same output: both bounded by memory, so the time of two
// inputs should come to at most 3/2 of a copy's.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "collectives/reduce/reduce.h"

namespace npumesh {
namespace {

constexpr int64_t kSmall = 4 << 10;   // in the first cache
constexpr int64_t kMedium = 1 << 20;  // in the last
constexpr int64_t kLarge = 32 << 20;  // in none

std::vector<std::byte> Block(int64_t bytes) {
  return std::vector<std::byte>(static_cast<size_t>(bytes));
}

void Copy(benchmark::State& state) {
  const int64_t bytes = state.range(0);
  const std::vector<std::byte> from = Block(bytes);
  std::vector<std::byte> to = Block(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), static_cast<size_t>(bytes));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}
BENCHMARK(Copy)->Arg(kSmall)->Arg(kMedium)->Arg(kLarge);

// range(0): bytes of the output; range(1): inputs.
void Reduce(benchmark::State& state, DataType dtype, ReduceOp op, bool stream) {
  const int64_t bytes = state.range(0);
  const auto inputs = static_cast<int>(state.range(1));
  std::vector<std::vector<std::byte>> blocks;
  std::vector<const void*> in;
  for (int i = 0; i < inputs; ++i) blocks.push_back(Block(bytes));
  for (const auto& block : blocks) in.push_back(block.data());
  std::vector<std::byte> result = Block(bytes);
  void* out = result.data();
  const ReduceFn reduce = FindReduce(dtype, op);
  const auto count = static_cast<uint64_t>(bytes) / *BytesOf(dtype, 1);
  for (auto _ : state) {
    reduce(in.data(), inputs, &out, 1, count, stream);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

#define NPUMESH_REDUCE_BENCHMARK(name, dtype, op)   \
  BENCHMARK_CAPTURE(Reduce, name, dtype, op, false) \
      ->ArgsProduct({{kSmall, kMedium, kLarge}, {2, 8}})
NPUMESH_REDUCE_BENCHMARK(float32_sum, DataType::kFloat, ReduceOp::kSum);
NPUMESH_REDUCE_BENCHMARK(float32_max, DataType::kFloat, ReduceOp::kMax);
NPUMESH_REDUCE_BENCHMARK(float16_sum, DataType::kFloat16, ReduceOp::kSum);
NPUMESH_REDUCE_BENCHMARK(bfloat16_sum, DataType::kBfloat16, ReduceOp::kSum);
NPUMESH_REDUCE_BENCHMARK(int8_sum, DataType::kInt8, ReduceOp::kSum);
BENCHMARK_CAPTURE(Reduce, float32_sum_streamed, DataType::kFloat, ReduceOp::kSum, true)
    ->ArgsProduct({{kMedium, kLarge}, {2, 8}});

}  // namespace
}  // namespace npumesh
