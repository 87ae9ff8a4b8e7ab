// ScatterPaKvCache: writing rows of keys and values into paged caches. Ops reference 5.11.
//
// A slot below 0 is skipped; one behind the cache is a run-time error.
#include <cstring>
#include <string>

#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

// Copies the rows of one tensor into its cache. A row is `chunks` pieces of `chunk` bytes; in tiled
// caches [blocks, chunks, block_size, e] they are a block's rows apart.
struct CacheCopy {
  std::string who;
  int from = 0;
  int slots = 0;
  DataType slot_dtype = DataType::kInt32;
  int output = 0;
  int64_t tokens = 0;
  int64_t blocks = 0;
  int64_t block_size = 0;
  int64_t chunks = 1;
  int64_t chunk = 0;

  Status Run(const KernelArgs& args) const {
    const auto* row = static_cast<const std::byte*>(args.in[from]);
    auto* cache = static_cast<std::byte*>(args.out[output]);
    for (int64_t t = 0; t < tokens; ++t) {
      const int64_t slot = IntegerAt(slot_dtype, args.in[slots], t);
      if (slot >= blocks * block_size) {
        return Error(Code::kInvalidArgument, "{}: token {} goes to slot {}, the cache has {}", who,
                     t, slot, blocks * block_size);
      }
      for (int64_t c = 0; c < chunks; ++c, row += chunk) {
        if (slot < 0) continue;
        const int64_t block = slot / block_size * chunks + c;
        std::memcpy(cache + (block * block_size + slot % block_size) * chunk, row,
                    static_cast<size_t>(chunk));
      }
    }
    return Status();
  }
};

Result<CacheCopy> PlanCopy(const OpContext& op, std::string_view port, std::string_view cache_port,
                           int output) {
  const TensorType& rows = op.in(port);
  const TensorType& cache = op.in(cache_port);
  NPUMESH_ASSIGN_OR_RETURN(const size_t element, ElementBytes(op, rows.dtype));
  const bool tiled = op.attr_string("cache_mode") == "PA_NZ";
  CacheCopy copy;
  copy.who = op.Who();
  copy.from = op.slot(port);
  copy.slots = op.slot("slot_mapping");
  copy.slot_dtype = op.in("slot_mapping").dtype;
  copy.output = output;
  copy.tokens = op.in("slot_mapping").shape.elements();
  const int64_t row = copy.tokens == 0 ? 0 : rows.shape.elements() / copy.tokens;
  bool fits = rows.dtype == cache.dtype && row * copy.tokens == rows.shape.elements() &&
              cache.shape.rank() >= 3;
  if (fits && tiled) {
    copy.blocks = cache.shape[0];
    copy.block_size = cache.shape[cache.shape.rank() - 2];
    const int64_t tile = cache.shape[cache.shape.rank() - 1];
    copy.chunks = ElementsBetween(cache.shape, 1, cache.shape.rank() - 2);
    copy.chunk = tile * static_cast<int64_t>(element);
    fits = copy.tokens == 0 || row == copy.chunks * tile;
  } else if (fits) {
    copy.blocks = cache.shape[0];
    copy.block_size = cache.shape[1];
    copy.chunk = row * static_cast<int64_t>(element);
    fits = copy.tokens == 0 || row == ElementsBetween(cache.shape, 2, cache.shape.rank());
  }
  if (fits) return copy;
  return Error(Code::kInvalidArgument,
               "{}: \"{}\" is {} for {} slots, which does not fit \"{}\" {} in cache_mode {}",
               op.Who(), port, rows.ToString(), copy.tokens, cache_port, cache.ToString(),
               op.attr_string("cache_mode"));
}

Result<std::vector<CacheCopy>> PlanCopies(const OpContext& op) {
  const std::string cache_mode = op.attr_string("cache_mode");
  const std::string scatter_mode = op.attr_string("scatter_mode");
  if (cache_mode != "Norm" && cache_mode != "PA_NZ") {
    return Error(Code::kUnsupported, "{}: cache_mode \"{}\", expected Norm or PA_NZ", op.Who(),
                 cache_mode);
  }
  if (scatter_mode != "None") {
    return Error(Code::kUnsupported, "{}: scatter_mode \"{}\" is not supported, expected None",
                 op.Who(), scatter_mode);
  }
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, op.slot("slot_mapping")));
  std::vector<CacheCopy> copies;
  NPUMESH_ASSIGN_OR_RETURN(CacheCopy keys, PlanCopy(op, "key", "key_cache", 0));
  copies.push_back(std::move(keys));
  if (SlotIfFed(op, "value") >= 0 && SlotIfFed(op, "value_cache") >= 0) {
    NPUMESH_ASSIGN_OR_RETURN(CacheCopy values, PlanCopy(op, "value", "value_cache", 1));
    copies.push_back(std::move(values));
  }
  return copies;
}

Status InferScatterPa(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(PlanCopies(op).status());
  int output = 0;
  for (const std::string_view port : {"key_cache", "value_cache"}) {
    if (output == op.outputs()) break;
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, output++, op.in(port).dtype, op.in(port).shape));
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeScatterPa(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<CacheCopy> copies, PlanCopies(op));
  return MakeKernel([copies = std::move(copies)](const KernelArgs& args) {
    for (const CacheCopy& copy : copies) NPUMESH_RETURN_IF_ERROR(copy.Run(args));
    return Status();
  });
}

}  // namespace

void RegisterCacheScatterOps(OpRegistry& registry) {
  const auto optional = [](std::string_view name) { return PortSpec{name, PortKind::kOptional}; };
  registry.Add({.schema = {"ScatterPaKvCache",
                           {{"key"},
                            {"key_cache"},
                            {"slot_mapping"},
                            {"value"},
                            {"value_cache"},
                            optional("compress_lens"),
                            optional("compress_seq_offset"),
                            optional("seq_lens")},
                           {{"key_cache"}, {"value_cache"}},
                           {{"cache_mode", AttrValue::String("Norm")},
                            {"scatter_mode", AttrValue::String("None")},
                            {"strides", AttrValue::Ints({1, 1})},
                            {"offsets", AttrValue::Ints({0, 0})}}},
                .infer = InferScatterPa,
                .make_kernel = MakeScatterPa,
                .in_place = {{0, 1}, {1, 4}}});
}

}  // namespace npumesh
