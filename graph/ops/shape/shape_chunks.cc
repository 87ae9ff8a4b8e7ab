// ChunkCat: the chunks of several tensors side by side.
#include <algorithm>
#include <cstring>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {
namespace {

// A tensor as `outer` rows of bytes, each cut into chunks, the last of which zeros fill up.
struct Chunked {
  size_t row = 0, chunk = 0;
};

struct ChunksPlan : Planned {
  int slot = 0;
  int64_t outer = 1, count = 1;  // rows; chunks of a row
  size_t width = 0;              // bytes of the chunks of all tensors
  std::vector<Chunked> tensors;
};

ChunksPlan PlanChunkCat(const OpContext& op, Check& check) {
  const int tensors = op.count("x");
  check.Consistent(tensors > 0, "no input \"x0\"");
  if (!check.ok()) return {};
  ChunksPlan plan;
  plan.slot = op.slot("x");
  const auto& [dtype, first] = op.in(plan.slot);
  const size_t bytes = check.Take(ElementBytes(op, dtype));
  const int axis = check.Axis("dim", first.rank());
  plan.count = check.Between("num_chunks", 1, INT32_MAX);
  if (!check.ok()) return {};
  plan.outer = ElementsBetween(first, 0, axis);
  int64_t elements = 0;
  for (int i = 0; i < tensors; ++i) {
    const auto& [other, x] = op.in(plan.slot + i);
    check.Keep(ExpectSameDtype(op, plan.slot, plan.slot + i));
    check.That(x.rank() > axis &&
                   std::equal(first.dims().begin(), first.dims().begin() + axis, x.dims().begin()),
               "x{} {} and x0 {} differ before dimension {}", i, x, first, axis);
    if (!check.ok()) return {};
    const int64_t inner = ElementsBetween(x, axis + 1, x.rank());
    const __int128 chunk = static_cast<__int128>(CeilDiv(x[axis], plan.count)) * inner;
    check.That(chunk * plan.count < INT64_MAX / 16 - elements, "chunks of x{} {} are too large", i,
               x);
    if (!check.ok()) return {};
    plan.tensors.push_back(
        {static_cast<size_t>(x[axis] * inner) * bytes, static_cast<size_t>(chunk) * bytes});
    elements += static_cast<int64_t>(chunk);
  }
  plan.width = static_cast<size_t>(elements) * bytes;
  const Shape y = Spliced(first, axis, first.rank(), {plan.count, elements});
  check.Keep(y.Check().WithContext(op.Who()));
  plan.outputs = {{dtype, y}};
  return plan;
}

Status RunChunkCat(const ChunksPlan& plan, const KernelArgs& args) {
  auto* to = static_cast<std::byte*>(args.out[0]);
  ClearOutput(plan, args, 0);
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const auto [row, chunk] = plan.tensors[i];
    const auto* from = static_cast<const std::byte*>(args.in[plan.slot + static_cast<int>(i)]);
    for (int64_t outer = 0; outer < plan.outer; ++outer) {
      std::byte* place = to + static_cast<size_t>(outer * plan.count) * plan.width;
      for (size_t done = 0; done < row; done += chunk, place += plan.width) {
        std::memcpy(place, from + done, std::min(chunk, row - done));
      }
      from += row;
    }
    to += chunk;
  }
  return Status();
}

}  // namespace

void RegisterChunkOps(OpRegistry& registry) {
  registry.Add(Define<PlanChunkCat, RunChunkCat>("ChunkCat(x...; dim:int, num_chunks:int) -> y"));
}

}  // namespace npumesh
