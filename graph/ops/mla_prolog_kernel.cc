// The kernel of MlaProlog and its later versions: chunks of tokens, one product after the other.
#include <algorithm>
#include <cmath>
#include <string>

#include "graph/ops/blocked_product.h"
#include "graph/ops/float_rows.h"
#include "graph/ops/mla_prolog.h"
#include "graph/ops/rope.h"
#include "graph/ops/row_math.h"

namespace npumesh {
namespace {

constexpr int64_t kChunk = 128;  // tokens computed together

class MlaKernel final : public Kernel {
 public:
  MlaKernel(const OpContext& op, const MlaPlan& plan)
      : plan_(plan), who_(op.Who()), threads_(op.threads()) {
    for (const std::string_view port :
         {"token_x", "weight_dq", "weight_uq_qr", "weight_uk", "weight_dkv_kr", "rmsnorm_gamma_cq",
          "rmsnorm_gamma_ckv", "rope_sin", "rope_cos"}) {
      slots_.push_back(op.slot(port));
    }
    gamma_q_ = op.in("rmsnorm_gamma_cq").dtype;
    gamma_kv_ = op.in("rmsnorm_gamma_ckv").dtype;
  }

  // The products' (which depend on the inner dimension), and the rows of a chunk.
  uint64_t scratch_bytes() const override {
    const int64_t row = plan_.latent_q + plan_.heads * plan_.head_both() + plan_.latent_kv +
                        2 * plan_.rope + RoomWidth();
    return ProductBytes() + static_cast<uint64_t>(kChunk * row) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    const ProductThreads threads(threads_);
    for (int64_t first = 0; first < plan_.tokens; first += kChunk) {
      NPUMESH_RETURN_IF_ERROR(RunChunk(args, first, std::min(kChunk, plan_.tokens - first)));
    }
    return Status();
  }

 private:
  enum Port { kX, kDq, kUq, kUk, kDkv, kGammaQ, kGammaKv, kSin, kCos };

  int64_t RoomWidth() const { return std::max({plan_.latent_q, plan_.latent_kv, 3 * plan_.rope}); }
  uint64_t ProductBytes() const {
    const int64_t k = std::max({plan_.model, plan_.latent_q, plan_.head});
    return BlockedProduct(k, false).scratch_bytes();
  }
  const void* In(const KernelArgs& args, Port port) const {
    return args.in[slots_[static_cast<size_t>(port)]];
  }
  float* Room(const KernelArgs& args) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(args.scratch) + ProductBytes());
  }

  // to[rows, n] = left w[k, n], rounded.
  Status Multiply(const KernelArgs& args, int64_t rows, int64_t n, int64_t k,
                  const StoredMatrix& left, Port weight, float* to) const {
    const BlockedProduct product(k, false);
    const StoredMatrix w{plan_.dtype, In(args, weight), 0, false};
    return product.Run(args, rows, n, left, w, {}, [&](const SumSegment& segment) {
      float* row = to + segment.row * n + segment.first;
      std::copy_n(segment.floats, segment.count, row);
      Round(row, segment.count);
    });
  }

  // Rounds floats to the type of the tokens.
  void Round(float* row, int64_t count) const {
    constexpr int64_t kBlock = 512;
    float rounded[kBlock];  // holds `kBlock` elements of any row type
    for (int64_t first = 0; first < count; first += kBlock) {
      const int64_t some = std::min(kBlock, count - first);
      StoreRow(plan_.dtype, row + first, rounded, 0, some);
      LoadNumbers(plan_.dtype, rounded, 0, some, row + first);
    }
  }

  void Normalise(const KernelArgs& args, Port gamma, DataType dtype, double epsilon, float scale,
                 int64_t width, float* room, float* row) const {
    const double mean = SumOfSquares(row, width) / static_cast<double>(width);
    ScaleRow(row, static_cast<float>(1.0 / std::sqrt(mean + epsilon)), width, row);
    MultiplyRow(row, LoadRow(dtype, In(args, gamma), 0, width, room), width, row);
    ScaleRow(row, scale, width, row);
    Round(row, width);
  }

  // `room`: three rows of the rotated width.
  void RotateRow(const KernelArgs& args, int64_t token, const float* x, float* room) const {
    const int64_t n = plan_.rope, first = token * n;
    const float* cos = LoadRow(plan_.dtype, In(args, kCos), first, n, room + n);
    const float* sin = LoadRow(plan_.dtype, In(args, kSin), first, n, room + 2 * n);
    Rotate(RotaryMode::kInterleaveHalf, x, cos, sin, n, room);
  }

  Status RunChunk(const KernelArgs& args, int64_t first, int64_t rows) const {
    float* room = Room(args);
    float* cq = room + RoomWidth();
    float* queries = cq + kChunk * plan_.latent_q;
    float* keys = queries + kChunk * plan_.heads * plan_.head_both();
    const StoredMatrix x{plan_.dtype, In(args, kX), first * plan_.model, false};
    NPUMESH_RETURN_IF_ERROR(Multiply(args, rows, plan_.latent_q, plan_.model, x, kDq, cq));
    for (int64_t r = 0; r < rows; ++r) {
      float* row = cq + r * plan_.latent_q;
      Normalise(args, kGammaQ, gamma_q_, plan_.epsilon_q, plan_.scale_q, plan_.latent_q, room, row);
      if (!plan_.gives_norm) continue;
      StoreRow(plan_.dtype, row, args.out[5], (first + r) * plan_.latent_q, plan_.latent_q);
    }
    const StoredMatrix left{DataType::kFloat, cq, 0, false};
    NPUMESH_RETURN_IF_ERROR(
        Multiply(args, rows, plan_.heads * plan_.head_both(), plan_.latent_q, left, kUq, queries));
    for (int64_t h = 0; h < plan_.heads; ++h) {
      NPUMESH_RETURN_IF_ERROR(RunHead(args, first, rows, h, queries, room));
    }
    const int64_t width = plan_.latent_kv + plan_.rope;
    NPUMESH_RETURN_IF_ERROR(Multiply(args, rows, width, plan_.model, x, kDkv, keys));
    for (int64_t r = 0; r < rows; ++r) {
      NPUMESH_RETURN_IF_ERROR(WriteCaches(args, first + r, keys + r * width, room));
    }
    return Status();
  }

  Status RunHead(const KernelArgs& args, int64_t first, int64_t rows, int64_t h,
                 const float* queries, float* room) const {
    const int64_t all = plan_.heads * plan_.head_both(), own = h * plan_.head_both();
    for (int64_t r = 0; r < rows; ++r) {
      RotateRow(args, first + r, queries + r * all + own + plan_.head, room);
      StoreRow(plan_.dtype, room, args.out[1], ((first + r) * plan_.heads + h) * plan_.rope,
               plan_.rope);
    }
    const BlockedProduct product(plan_.head, false);
    const StoredMatrix q{DataType::kFloat, queries, own, false, all};
    const StoredMatrix w{plan_.dtype, In(args, kUk), h * plan_.head * plan_.latent_kv, false};
    return product.Run(args, rows, plan_.latent_kv, q, w, {}, [&](const SumSegment& segment) {
      const int64_t row = (first + segment.row) * plan_.heads + h;
      StoreRow(plan_.dtype, segment.floats, args.out[0], row * plan_.latent_kv + segment.first,
               segment.count);
    });
  }

  Status WriteCaches(const KernelArgs& args, int64_t token, float* row, float* room) const {
    const int64_t slot =
        plan_.index < 0 ? token : static_cast<const int64_t*>(args.in[plan_.index])[token];
    if (slot < 0) return Status();
    if (slot >= plan_.slots) {
      return Error(Code::kInvalidArgument, "{}: token {} goes to slot {}, the cache has {}", who_,
                   token, slot, plan_.slots);
    }
    RotateRow(args, token, row + plan_.latent_kv, room);
    Write(args.out[3], slot, plan_.rope, room);
    Normalise(args, kGammaKv, gamma_kv_, plan_.epsilon_kv, plan_.scale_kv, plan_.latent_kv, room,
              row);
    Write(args.out[2], slot, plan_.latent_kv, row);
    return Status();
  }

  // In blocks of PA_NZ the rows are cut into tiles of 16 elements, [width / 16, block_size, 16].
  void Write(void* cache, int64_t slot, int64_t width, const float* row) const {
    if (!plan_.tiled) {
      StoreRow(plan_.dtype, row, cache, slot * width, width);
      return;
    }
    const int64_t block = slot / plan_.block_size, at = slot % plan_.block_size;
    for (int64_t tile = 0; tile < width / 16; ++tile) {
      const int64_t line = block * plan_.block_size * width / 16 + tile * plan_.block_size + at;
      StoreRow(plan_.dtype, row + tile * 16, cache, line * 16, 16);
    }
  }

  MlaPlan plan_;
  std::string who_;
  int threads_;
  std::vector<int> slots_;
  DataType gamma_q_;
  DataType gamma_kv_;
};

}  // namespace

std::unique_ptr<Kernel> MakeMlaKernel(const OpContext& op, const MlaPlan& plan) {
  return std::make_unique<MlaKernel>(op, plan);
}

}  // namespace npumesh
