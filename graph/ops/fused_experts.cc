// AlltoAllvGroupedMatMul and GroupedMatMulAlltoAllv, and both with 8-bit operands: rows travel to
// the experts of other ranks and are multiplied there, or are multiplied and travel back. Ops
// reference 5.17 and 5.19.
//
// Counts are by rank, then by its experts; so are the rows a rank sends to experts or gets back
// from them. The rows of its own experts lie by expert, then by rank. Some experts are a chunk,
// which travels while others are multiplied, at most eight of them; what they are is all that the
// ranks know of each other.
#include "graph/ops/fused_experts.h"

#include <algorithm>

#include "graph/ops/infer_checks.h"
#include "graph/ops/matmul.h"
#include "graph/ops/row_travel.h"
#include "graph/ops/scaled_matmul.h"

namespace npumesh::fused {
namespace {

Status InferExperts(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const ExpertsPlan plan, PlanExperts(op));
  const int64_t rows = Sum(plan.received);
  const Shape shared = plan.shared_rows < 0 ? Shape{0} : Shape{plan.shared_rows, plan.shared.n};
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.y_dtype, {rows, plan.routed.n}));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, plan.shared_dtype, shared));
  if (!plan.exchange_first) return Status();
  const bool gives = op.attr_bool("permute_out_flag");
  return SetOutput(op, 2, op.in("gmm_x").dtype, gives ? Shape{rows, plan.routed.k} : Shape{0});
}

// A product of `m` rows; null when it has no elements.
Result<std::unique_ptr<Kernel>> MakeFactor(const OpContext& op, const ExpertsPlan& plan,
                                           const Factor& factor, int64_t m, DataType y_dtype) {
  if (m * factor.n == 0) return std::unique_ptr<Kernel>();
  const int x = op.slot(factor.x);
  const int w = op.slot(factor.w);
  if (plan.scaled) {
    ScaledMatmul scaled;
    scaled.x_slot = x;
    scaled.w_slot = w;
    scaled.row_scale_slot = op.slot(factor.x_scale);
    NPUMESH_ASSIGN_OR_RETURN(scaled.column_scale, Factors::Of(op, factor.w_scale));
    scaled.x_dtype = op.in(x).dtype;
    scaled.w_dtype = op.in(w).dtype;
    scaled.y_dtype = y_dtype;
    scaled.transposed_w = factor.transposed;
    scaled.m = m;
    scaled.n = factor.n;
    scaled.k = factor.k;
    scaled.threads = op.threads();
    return MakeScaledMatmul(scaled);
  }
  Matmul matmul;
  matmul.who = op.Who();
  matmul.x1 = {x, op.in(x).dtype, {}, false};
  matmul.x2 = {w, op.in(w).dtype, {}, factor.transposed};
  matmul.y_dtype = y_dtype;
  matmul.m = m;
  matmul.n = factor.n;
  matmul.k = factor.k;
  matmul.threads = op.threads();
  return MakeFloatMatmul(matmul);
}

// Where rows lie: those of this rank's experts, and those at other ranks' experts.
class ExpertRows {
 public:
  explicit ExpertRows(const ExpertsPlan& plan)
      : ranks_(plan.ring.ranks), experts_(plan.experts), here_{0}, away_{0} {
    for (int64_t expert = 0; expert < experts_; ++expert) {
      for (int64_t rank = 0; rank < ranks_; ++rank) {
        here_.push_back(here_.back() + plan.here()[static_cast<size_t>(rank * experts_ + expert)]);
      }
    }
    for (const int64_t count : plan.away()) away_.push_back(away_.back() + count);
  }

  int64_t Here(int64_t expert, int64_t rank) const {
    return here_[static_cast<size_t>(expert * ranks_ + rank)];
  }
  int64_t Count(int64_t expert, int64_t rank) const {
    return here_[static_cast<size_t>(expert * ranks_ + rank + 1)] - Here(expert, rank);
  }
  int64_t Away(int64_t rank, int64_t expert) const {
    return away_[static_cast<size_t>(rank * experts_ + expert)];
  }
  int64_t total() const { return here_.back(); }

 private:
  int64_t ranks_;
  int64_t experts_;
  std::vector<int64_t> here_;  // by expert and rank, and the end
  std::vector<int64_t> away_;  // by rank and expert, and the end
};

class ExpertsKernel final : public Kernel {
 public:
  // `products` by expert, null where there are no rows; `shared` null: there is none.
  ExpertsKernel(const OpContext& op, ExpertsPlan plan, Communicator* group,
                std::vector<std::unique_ptr<Kernel>> products, std::unique_ptr<Kernel> shared)
      : node_(op.node().name),
        plan_(std::move(plan)),
        rows_(plan_),
        group_(group),
        products_(std::move(products)),
        shared_(std::move(shared)),
        x_(op.slot("gmm_x")),
        w_(op.slot("gmm_weight")),
        x_row_(plan_.routed.k * BitsOf(op.in(x_).dtype) / 8),
        y_row_(plan_.routed.n * BitsOf(plan_.y_dtype) / 8),
        w_bytes_(plan_.routed.k * plan_.routed.n * BitsOf(op.in(w_).dtype) / 8),
        travel_(plan_.ring.ranks, plan_.chunks(), row_bytes()),
        gives_(plan_.exchange_first && op.attr_bool("permute_out_flag")),
        in_(static_cast<size_t>(op.slots())) {
    LayOut();
    for (const std::unique_ptr<Kernel>& product : products_) {
      if (product != nullptr) room_ = std::max(room_, product->scratch_bytes());
    }
    if (shared_ != nullptr) room_ = std::max(room_, shared_->scratch_bytes());
  }

  // Rows as they travel, rows by expert where they are no output, then a product's.
  uint64_t scratch_bytes() const override { return (gives_ ? 1 : 2) * all_bytes() + room_; }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    auto* const travelling = static_cast<std::byte*>(args.scratch);
    auto* const sorted = gives_ ? static_cast<std::byte*>(args.out[2]) : travelling + all_bytes();
    const auto nothing = [](int64_t) { return Status(); };
    const auto shared = [&] { return MultiplyShared(args); };
    const auto* const x = static_cast<const std::byte*>(args.in[x_]);
    auto* const y = static_cast<std::byte*>(args.out[0]);
    if (plan_.exchange_first) {
      const auto use = [&](int64_t chunk) {
        EachSegment(chunk, travelling, sorted, [&](std::byte* there, std::byte* here, int64_t n) {
          std::copy_n(there, n, here);
        });
        return Multiply(args, chunk, sorted, y);
      };
      return travel_.Run(*group_, node_, x, travelling, nothing, use, shared);
    }
    const auto prepare = [&](int64_t chunk) -> Status {
      NPUMESH_RETURN_IF_ERROR(Multiply(args, chunk, x, sorted));
      EachSegment(chunk, travelling, sorted, [&](std::byte* there, std::byte* here, int64_t n) {
        std::copy_n(here, n, there);
      });
      return Status();
    };
    return travel_.Run(*group_, node_, travelling, y, prepare, nothing, shared);
  }

 private:
  int64_t row_bytes() const { return plan_.exchange_first ? x_row_ : y_row_; }
  uint64_t all_bytes() const {
    return RoundedUp(static_cast<uint64_t>(rows_.total() * row_bytes()));
  }
  int64_t FirstExpert(int64_t chunk) const { return chunk * plan_.experts / plan_.chunks(); }

  void LayOut() {
    int64_t row = 0;
    for (int64_t chunk = 0; chunk < travel_.chunks(); ++chunk) {
      const int64_t first = FirstExpert(chunk);
      const int64_t end = FirstExpert(chunk + 1);
      for (int64_t rank = 0; rank < plan_.ring.ranks; ++rank) {
        int64_t here = 0;
        for (int64_t expert = first; expert < end; ++expert) here += rows_.Count(expert, rank);
        const int64_t there = rows_.Away(rank, first);
        const int64_t away = rows_.Away(rank, end) - there;
        if (plan_.exchange_first) {
          travel_.SetRows(chunk, rank, away, here);
          travel_.SetPlace(chunk, rank, there, row);
        } else {
          travel_.SetRows(chunk, rank, here, away);
          travel_.SetPlace(chunk, rank, row, there);
        }
        row += here;
      }
    }
  }

  // Calls copy(travelling, by expert, bytes) for the rows of each rank and expert of a chunk.
  template <typename Copy>
  void EachSegment(int64_t chunk, std::byte* travelling, std::byte* sorted,
                   const Copy& copy) const {
    for (int64_t rank = 0; rank < plan_.ring.ranks; ++rank) {
      std::byte* there = travelling + (plan_.exchange_first ? travel_.recv_at(chunk, rank)
                                                            : travel_.send_at(chunk, rank));
      for (int64_t expert = FirstExpert(chunk); expert < FirstExpert(chunk + 1); ++expert) {
        const int64_t bytes = rows_.Count(expert, rank) * row_bytes();
        copy(there, sorted + rows_.Here(expert, rank) * row_bytes(), bytes);
        there += bytes;
      }
    }
  }

  // The experts of a chunk on their rows of `x`.
  Status Multiply(const KernelArgs& args, int64_t chunk, const std::byte* x, std::byte* y) {
    for (int64_t expert = FirstExpert(chunk); expert < FirstExpert(chunk + 1); ++expert) {
      Kernel* product = products_[static_cast<size_t>(expert)].get();
      if (product == nullptr) continue;
      std::copy_n(args.in, in_.size(), in_.begin());
      in_[static_cast<size_t>(x_)] = x + rows_.Here(expert, 0) * x_row_;
      in_[static_cast<size_t>(w_)] = static_cast<const std::byte*>(args.in[w_]) + expert * w_bytes_;
      void* out[] = {y + rows_.Here(expert, 0) * y_row_};
      NPUMESH_RETURN_IF_ERROR(product->Run({in_.data(), out, Room(args)}));
    }
    return Status();
  }

  Status MultiplyShared(const KernelArgs& args) {
    return shared_ == nullptr ? Status() : shared_->Run({args.in, args.out + 1, Room(args)});
  }

  std::byte* Room(const KernelArgs& args) const {
    return static_cast<std::byte*>(args.scratch) + (gives_ ? 1 : 2) * all_bytes();
  }

  std::string node_;
  ExpertsPlan plan_;
  ExpertRows rows_;
  Communicator* group_;
  std::vector<std::unique_ptr<Kernel>> products_;
  std::unique_ptr<Kernel> shared_;
  int x_;
  int w_;
  int64_t x_row_;
  int64_t y_row_;
  int64_t w_bytes_;  // of an expert
  RowTravel travel_;
  bool gives_;
  uint64_t room_ = 0;  // of the largest product
  std::vector<const void*> in_;
};

Result<std::unique_ptr<Kernel>> MakeExperts(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(ExpertsPlan plan, PlanExperts(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op));
  const ExpertRows rows(plan);
  std::vector<std::unique_ptr<Kernel>> products(static_cast<size_t>(plan.experts));
  for (int64_t e = 0; e < plan.experts; ++e) {
    const int64_t m = rows.Here(e + 1, 0) - rows.Here(e, 0);
    NPUMESH_ASSIGN_OR_RETURN(products[static_cast<size_t>(e)],
                             MakeFactor(op, plan, plan.routed, m, plan.y_dtype));
  }
  std::unique_ptr<Kernel> shared;
  if (plan.shared_rows >= 0) {
    NPUMESH_ASSIGN_OR_RETURN(
        shared, MakeFactor(op, plan, plan.shared, plan.shared_rows, plan.shared_dtype));
  }
  return std::unique_ptr<Kernel>(std::make_unique<ExpertsKernel>(
      op, std::move(plan), group, std::move(products), std::move(shared)));
}

}  // namespace

void RegisterExpertMatmuls(OpRegistry& registry) {
  const auto add = [&](std::string_view type, bool first, bool scaled) {
    hcom::Add(registry, ExpertsSchema(type, first, scaled), {}, InferExperts, MakeExperts);
  };
  add("AlltoAllvGroupedMatMul", true, false);
  add("GroupedMatMulAlltoAllv", false, false);
  add("AlltoAllvQuantGroupedMatMul", true, true);
  add("QuantGroupedMatMulAlltoAllv", false, true);
}

}  // namespace npumesh::fused
