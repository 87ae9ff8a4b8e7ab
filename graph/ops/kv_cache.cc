// ScatterPaKvCache and KvRmsNormRopeCache: writing rows into caches of keys and values. Ops
// reference 5.11.
//
// A slot below 0 is skipped; one behind the cache is a run-time error.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"
#include "graph/ops/rope.h"

namespace npumesh {
namespace {

Status SlotOutside(const std::string& who, int64_t token, int64_t slot, int64_t slots) {
  return Error(Code::kInvalidArgument, "{}: token {} goes to slot {}, the cache has {}", who, token,
               slot, slots);
}

// ---- ScatterPaKvCache ----

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
      if (slot >= blocks * block_size) return SlotOutside(who, t, slot, blocks * block_size);
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

// ---- KvRmsNormRopeCache ----

// Where the row of a token lies in a cache.
struct CachePlace {
  bool by_batch = false;   // Norm: [B, N, Smax, D], otherwise [blocks, block_size, N, D]
  bool by_block = false;   // one slot for each block of S
  bool tiled = false;      // each block is stored [N, D / tile, block_size, tile]
  int64_t block_size = 0;  // Smax for Norm
  int64_t slots = 0;       // that an index may name
};

Result<CachePlace> PlaceIn(const OpContext& op, std::string_view port) {
  const std::string mode = op.attr_string("cache_mode");
  const Shape& cache = op.in(port).shape;
  CachePlace place;
  place.by_batch = mode == "Norm";
  place.by_block = mode == "PA_BLK_BNSD" || mode == "PA_BLK_NZ";
  place.tiled = mode == "PA_NZ" || mode == "PA_BLK_NZ";
  if (!place.by_batch && !place.by_block && !place.tiled && mode != "PA" && mode != "PA_BNSD") {
    return Error(Code::kInvalidArgument,
                 "{}: cache_mode \"{}\", expected Norm, PA, PA_BNSD, PA_NZ, PA_BLK_BNSD or "
                 "PA_BLK_NZ",
                 op.Who(), mode);
  }
  const int64_t batch = op.in("kv").shape[0];
  const int64_t heads = op.in("kv").shape[1];
  const bool fits = cache.rank() == 4 && (place.by_batch ? cache[0] == batch && cache[1] == heads
                                                         : cache[2] == heads && cache[1] > 0);
  if (!fits) {
    return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, which does not fit kv {} in mode {}",
                 op.Who(), port, op.in(port).ToString(), op.in("kv").ToString(), mode);
  }
  place.block_size = cache[place.by_batch ? 2 : 1];
  place.slots = place.by_batch ? cache[2] : cache[0] * cache[1];
  return place;
}

// Writes vectors of one cache and of the output that repeats them without quantisation.
struct CacheWriter {
  CachePlace place;
  int cache = 0;  // output
  int plain = 0;  // output
  DataType dtype = DataType::kUndefined;
  DataType plain_dtype = DataType::kUndefined;
  int64_t heads = 1;
  int64_t width = 0;
  Factors scale;
  Factors offset;

  // First element of (batch, head, slot).
  int64_t Element(int64_t batch, int64_t head, int64_t slot) const {
    if (place.by_batch) return ((batch * heads + head) * place.block_size + slot) * width;
    if (!place.tiled) return (slot * heads + head) * width;
    const int64_t block = (slot / place.block_size * heads + head) * width * place.block_size;
    return block + slot % place.block_size * tile();
  }
  int64_t tile() const {
    return place.tiled ? std::min<int64_t>(width, dtype == DataType::kInt8 ? 32 : 16) : width;
  }

  // `row` is changed.
  void Write(const KernelArgs& args, int64_t element, float* row, float* room) const {
    if (scale.given()) Apply(args, scale, row, room, [](float a, float b) { return a * b; });
    if (offset.given()) Apply(args, offset, row, room, [](float a, float b) { return a + b; });
    for (int64_t d = 0; d < width; d += tile(), element += tile() * place.block_size) {
      if (dtype == DataType::kInt8) {
        StoreIntegers(dtype, Rounding::kNearest, row + d, args.out[cache], element, tile());
      } else {
        StoreRow(dtype, row + d, args.out[cache], element, tile());
      }
    }
  }

 private:
  template <typename F>
  void Apply(const KernelArgs& args, const Factors& factors, float* row, float* room, F f) const {
    const bool shared = factors.count() == 1;
    factors.Load(args, 0, shared ? 1 : width, room);
    for (int64_t d = 0; d < width; ++d) row[d] = f(row[d], room[shared ? 0 : d]);
  }
};

Result<CacheWriter> WriterOf(const OpContext& op, std::string_view port, int output, int64_t width,
                             std::string_view scale, std::string_view offset) {
  const TensorType& cache = op.in(port);
  CacheWriter writer;
  NPUMESH_ASSIGN_OR_RETURN(writer.place, PlaceIn(op, port));
  writer.cache = output;
  writer.plain = output + 2;
  writer.dtype = cache.dtype;
  writer.plain_dtype = op.in("kv").dtype;
  writer.heads = op.in("kv").shape[1];
  writer.width = width;
  NPUMESH_ASSIGN_OR_RETURN(writer.scale, Factors::Of(op, scale));
  NPUMESH_ASSIGN_OR_RETURN(writer.offset, Factors::Of(op, offset));
  bool fits = cache.shape[3] == width &&
              (IsRowType(cache.dtype) || cache.dtype == DataType::kInt8) &&
              width % writer.tile() == 0;
  for (const Factors* factors : {&writer.scale, &writer.offset}) {
    fits = fits && (!factors->given() || factors->count() == 1 || factors->count() == width);
  }
  if (fits) return writer;
  return Error(Code::kInvalidArgument,
               "{}: \"{}\" is {} for vectors of {} elements with {} scales and {} offsets",
               op.Who(), port, cache.ToString(), width, writer.scale.count(),
               writer.offset.count());
}

class KvRmsNormRopeKernel final : public Kernel {
 public:
  KvRmsNormRopeKernel(const OpContext& op, CacheWriter keys, CacheWriter values)
      : who_(op.Who()),
        keys_(std::move(keys)),
        values_(std::move(values)),
        kv_(op.slot("kv")),
        v_(SlotIfFed(op, "v")),
        gamma_(op.slot("gamma")),
        cos_(op.slot("cos")),
        sin_(op.slot("sin")),
        index_(op.slot("index")),
        dtype_(op.in("kv").dtype),
        gamma_dtype_(op.in("gamma").dtype),
        table_dtype_(op.in("cos").dtype),
        index_dtype_(op.in("index").dtype),
        batch_(op.in("kv").shape[0]),
        heads_(op.in("kv").shape[1]),
        rows_(op.in("kv").shape[2]),
        width_(op.in("kv").shape[3]),
        normed_(op.in("gamma").shape.elements()),
        rotated_(op.in("cos").shape[3]),
        table_rows_(op.in("cos").shape[2]),
        epsilon_(static_cast<double>(op.attr_float("epsilon"))) {}

  // Eight rows of the widest vector.
  uint64_t scratch_bytes() const override {
    return 8 * static_cast<uint64_t>(Row()) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    for (int64_t b = 0; b < batch_; ++b) {
      for (int64_t h = 0; h < heads_; ++h) {
        for (int64_t s = 0; s < rows_; ++s) NPUMESH_RETURN_IF_ERROR(RunToken(args, b, h, s));
      }
    }
    return Status();
  }

 private:
  int64_t Row() const { return std::max({width_, keys_.width, values_.width}); }

  Status RunToken(const KernelArgs& args, int64_t b, int64_t h, int64_t s) const {
    auto* scratch = static_cast<float*>(args.scratch);
    float* x = scratch;
    float* key = scratch + Row();
    float* value = scratch + 2 * Row();
    float* room = scratch + 3 * Row();
    const int64_t token = (b * heads_ + h) * rows_ + s;
    LoadNumbers(dtype_, args.in[kv_], token * width_, width_, x);
    if (v_ >= 0) {
      Normalise(args, x, room);
      std::copy(x, x + width_, key);
      RotateInto(args, b, s, x, room, key);
      LoadNumbers(dtype_, args.in[v_], token * values_.width, values_.width, value);
    } else {
      RotateInto(args, b, s, x + normed_, room, key);
      Normalise(args, x, room);
      std::copy(x, x + normed_, value);
    }
    StoreRow(keys_.plain_dtype, key, args.out[keys_.plain], token * keys_.width, keys_.width);
    StoreRow(values_.plain_dtype, value, args.out[values_.plain], token * values_.width,
             values_.width);
    NPUMESH_RETURN_IF_ERROR(WriteTo(args, keys_, b, h, s, key, room));
    return WriteTo(args, values_, b, h, s, value, room);
  }

  // x = rms norm of its first elements.
  void Normalise(const KernelArgs& args, float* x, float* room) const {
    const float* gamma = LoadRow(gamma_dtype_, args.in[gamma_], 0, normed_, room);
    const double squares = BlockedSum(x, normed_, [](float v) { return v * v; });
    const auto rstd =
        static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(normed_) + epsilon_));
    for (int64_t i = 0; i < normed_; ++i) x[i] = x[i] * rstd * gamma[i];
  }

  void RotateInto(const KernelArgs& args, int64_t b, int64_t s, const float* x, float* room,
                  float* y) const {
    const int64_t first = (b * table_rows_ + (table_rows_ == 1 ? 0 : s)) * rotated_;
    const float* cos = LoadRow(table_dtype_, args.in[cos_], first, rotated_, room);
    const float* sin = LoadRow(table_dtype_, args.in[sin_], first, rotated_, room + Row());
    Rotate(RotaryMode::kInterleaveHalf, x, cos, sin, rotated_, y);
  }

  Status WriteTo(const KernelArgs& args, const CacheWriter& writer, int64_t b, int64_t h, int64_t s,
                 float* row, float* room) const {
    const CachePlace& place = writer.place;
    const int64_t blocks = (rows_ + place.block_size - 1) / place.block_size;
    const int64_t entry = place.by_block ? b * blocks + s / place.block_size : b * rows_ + s;
    int64_t slot = IntegerAt(index_dtype_, args.in[index_], entry);
    if (slot < 0) return Status();
    if (place.by_block) slot += s % place.block_size;
    if (slot >= place.slots) return SlotOutside(who_, b * rows_ + s, slot, place.slots);
    writer.Write(args, writer.Element(b, h, slot), row, room);
    return Status();
  }

  std::string who_;
  CacheWriter keys_;
  CacheWriter values_;
  int kv_;
  int v_;
  int gamma_;
  int cos_;
  int sin_;
  int index_;
  DataType dtype_;
  DataType gamma_dtype_;
  DataType table_dtype_;
  DataType index_dtype_;
  int64_t batch_;
  int64_t heads_;
  int64_t rows_;
  int64_t width_;
  int64_t normed_;
  int64_t rotated_;
  int64_t table_rows_;
  double epsilon_;
};

struct NormRope {
  CacheWriter keys;
  CacheWriter values;
};

Result<NormRope> PlanNormRope(const OpContext& op) {
  const TensorType& kv = op.in("kv");
  const TensorType& cos = op.in("cos");
  const Shape& gamma = op.in("gamma").shape;
  const bool separate = SlotIfFed(op, "v") >= 0;
  const bool typed = IsRowType(kv.dtype) && IsRowType(cos.dtype) && IsRowType(op.in("gamma").dtype);
  bool fits = typed && kv.shape.rank() == 4 && gamma.rank() == 1 && cos.shape.rank() == 4 &&
              cos == op.in("sin");
  if (fits) {
    const int64_t width = kv.shape[3];
    fits =
        cos.shape[0] == kv.shape[0] && cos.shape[1] == 1 && cos.shape[3] % 2 == 0 &&
        (cos.shape[2] == 1 || cos.shape[2] == kv.shape[2]) &&
        (separate ? gamma[0] == width && cos.shape[3] <= width : gamma[0] + cos.shape[3] == width);
  }
  if (fits && separate) {
    const TensorType& v = op.in("v");
    fits = v.dtype == kv.dtype && v.shape.rank() == 4 &&
           std::equal(v.shape.dims().begin(), v.shape.dims().end() - 1, kv.shape.dims().begin());
  }
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: kv is {}, gamma {}, cos {} and sin {}; expected kv [B,N,S,Dv+Dk], gamma [Dv] "
                 "and cos, sin [B,1,S,Dk]",
                 op.Who(), kv.ToString(), gamma.ToString(), cos.ToString(),
                 op.in("sin").ToString());
  }
  const int64_t key_width = separate ? kv.shape[3] : cos.shape[3];
  const int64_t value_width = separate ? op.in("v").shape[3] : gamma[0];
  NormRope plan;
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, op.slot("index")));
  NPUMESH_ASSIGN_OR_RETURN(plan.keys,
                           WriterOf(op, "k_cache", 0, key_width, "k_rope_scale", "k_rope_offset"));
  NPUMESH_ASSIGN_OR_RETURN(plan.values,
                           WriterOf(op, "ckv_cache", 1, value_width, "c_kv_scale", "c_kv_offset"));
  const CachePlace& place = plan.keys.place;
  const int64_t entries =
      place.by_block ? (kv.shape[2] + place.block_size - 1) / place.block_size : kv.shape[2];
  const bool blocks_fit = !place.by_block || place.block_size == plan.values.place.block_size;
  if (op.in("index").shape.elements() == kv.shape[0] * entries && blocks_fit) return plan;
  return Error(Code::kInvalidArgument, "{}: index is {}, expected {} entries for kv {} in mode {}",
               op.Who(), op.in("index").ToString(), kv.shape[0] * entries, kv.ToString(),
               op.attr_string("cache_mode"));
}

Status InferNormRope(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const NormRope plan, PlanNormRope(op));
  const TensorType& kv = op.in("kv");
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("k_cache").dtype, op.in("k_cache").shape));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, op.in("ckv_cache").dtype, op.in("ckv_cache").shape));
  Shape row = kv.shape;
  row[3] = plan.keys.width;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2, kv.dtype, row));
  row[3] = plan.values.width;
  return SetOutput(op, 3, kv.dtype, row);
}

Result<std::unique_ptr<Kernel>> MakeNormRope(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(NormRope plan, PlanNormRope(op));
  return std::unique_ptr<Kernel>(
      std::make_unique<KvRmsNormRopeKernel>(op, std::move(plan.keys), std::move(plan.values)));
}

}  // namespace

void RegisterCacheOps(OpRegistry& registry) {
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
  registry.Add({.schema = {"KvRmsNormRopeCache",
                           {{"kv"},
                            {"gamma"},
                            {"cos"},
                            {"sin"},
                            {"index"},
                            {"k_cache"},
                            {"ckv_cache"},
                            optional("k_rope_scale"),
                            optional("c_kv_scale"),
                            optional("k_rope_offset"),
                            optional("c_kv_offset"),
                            optional("v")},
                           {{"k_cache"}, {"ckv_cache"}, {"k_rope"}, {"c_kv"}},
                           {{"epsilon", AttrValue::Float(1e-5f)},
                            {"cache_mode", AttrValue::String("Norm")},
                            {"is_output_kv", AttrValue::Bool(false)}}},
                .infer = InferNormRope,
                .make_kernel = MakeNormRope,
                .in_place = {{0, 5}, {1, 6}}});
}

}  // namespace npumesh
