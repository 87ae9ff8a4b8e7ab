// ScatterPaKvCache: writing rows of keys and values into paged caches.
//
// A slot below 0 is skipped; one past the cache is a run-time error.
#include <cstring>
#include <string>

#include "graph/ops/attention/family.h"
#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/rows/plan_parts.h"

namespace npumesh {
namespace {

// Copies the rows of one tensor into its cache. A row is `chunks` pieces of `chunk` bytes; in tiled
// caches [blocks, chunks, block_size, e] they are a block's rows apart.
struct CacheCopy {
  int from = 0;  // slot
  int output = 0;
  int64_t blocks = 0, block_size = 0, chunks = 1, chunk = 0;
};

struct ScatterPlan : Planned {
  Integers slots;  // by token
  std::vector<CacheCopy> copies;
};

CacheCopy PlanCopy(const OpContext& op, std::string_view port, std::string_view cache_port,
                   int64_t tokens, Check& check) {
  const TensorType &rows = op.in(port), &cache = op.in(cache_port);
  const auto element = static_cast<int64_t>(check.Take(ElementBytes(op, rows.dtype)));
  const int rank = cache.shape.rank();
  const int64_t row = tokens == 0 ? 0 : rows.shape.elements() / tokens;
  CacheCopy copy;
  copy.from = op.slot(port);
  copy.output = port == "key" ? 0 : 1;
  bool fits = rows.dtype == cache.dtype && row * tokens == rows.shape.elements() && rank >= 3;
  if (fits) {
    const bool tiled = op.attr_string("cache_mode") == "PA_NZ";
    const int64_t tile = cache.shape[rank - 1];
    copy.blocks = cache.shape[0];
    copy.block_size = cache.shape[tiled ? rank - 2 : 1];
    copy.chunks = tiled ? ElementsBetween(cache.shape, 1, rank - 2) : 1;
    copy.chunk = (tiled ? tile : row) * element;
    fits =
        tokens == 0 || row == (tiled ? copy.chunks * tile : ElementsBetween(cache.shape, 2, rank));
  }
  check.That(fits, "{} is {} for {} slots, which does not fit {} {} in cache_mode {}", port, rows,
             tokens, cache_port, cache, op.attr_string("cache_mode"));
  return copy;
}

Result<ScatterPlan> PlanScatter(const OpContext& op) {
  Check check(op);
  ScatterPlan plan;
  const std::string cache = op.attr_string("cache_mode"), scatter = op.attr_string("scatter_mode");
  check.Supported(cache == "Norm" || cache == "PA_NZ",
                  "cache_mode is \"{}\", expected Norm or PA_NZ", cache);
  check.Supported(scatter == "None", "scatter_mode is \"{}\", expected None", scatter);
  check.Type("slot_mapping", kIndices);
  if (!check.ok()) return check.status();
  plan.slots = Integers::OfSlot(op, op.slot("slot_mapping"));
  plan.copies.push_back(PlanCopy(op, "key", "key_cache", plan.slots.count(), check));
  if (SlotIfFed(op, "value") >= 0 && SlotIfFed(op, "value_cache") >= 0) {
    plan.copies.push_back(PlanCopy(op, "value", "value_cache", plan.slots.count(), check));
  }
  plan.outputs = {op.in("key_cache"), op.in("value_cache")};
  plan.outputs.resize(std::min(plan.outputs.size(), static_cast<size_t>(op.outputs())));
  return check.Done(std::move(plan));
}

Status Copy(const ScatterPlan& plan, const CacheCopy& copy, const KernelArgs& args) {
  const auto* row = static_cast<const std::byte*>(args.in[copy.from]);
  auto* cache = static_cast<std::byte*>(args.out[copy.output]);
  for (int64_t t = 0; t < plan.slots.count(); ++t) {
    const int64_t slot = plan.slots.At(args, t);
    NPUMESH_RETURN_IF_ERROR(CheckSlot(plan.who, t, slot, copy.blocks * copy.block_size));
    for (int64_t c = 0; c < copy.chunks; ++c, row += copy.chunk) {
      if (slot < 0) continue;
      const int64_t block = slot / copy.block_size * copy.chunks + c;
      std::memcpy(cache + (block * copy.block_size + slot % copy.block_size) * copy.chunk, row,
                  static_cast<size_t>(copy.chunk));
    }
  }
  return Status();
}

Status RunScatter(const ScatterPlan& plan, const KernelArgs& args) {
  for (const CacheCopy& copy : plan.copies) NPUMESH_RETURN_IF_ERROR(Copy(plan, copy, args));
  return Status();
}

}  // namespace

void RegisterCacheScatterOps(OpRegistry& registry) {
  registry.Add(Define<PlanScatter, RunScatter>(
      "ScatterPaKvCache(key, key_cache, slot_mapping, value, value_cache, compress_lens?, "
      "compress_seq_offset?, seq_lens?; cache_mode=\"Norm\", scatter_mode=\"None\", "
      "strides=[1,1], offsets=[0,0]) -> key_cache, value_cache",
      {.in_place = {{0, 1}, {1, 4}}}));
}

}  // namespace npumesh
