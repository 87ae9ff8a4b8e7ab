// AlltoAllMatmul and MatmulAlltoAll: rows for columns between the ranks, in front of a product or
// behind it. Ops reference 5.17.
//
// In front: a rank keeps one block of rows and gets these rows' columns of all ranks. Behind: it
// keeps one block of columns and gets all rows of it. Large tensors go in chunks of rows, which
// travel while others are multiplied.
#include <algorithm>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_chunks.h"
#include "graph/ops/fused_matmul.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/row_travel.h"

namespace npumesh::fused {
namespace {

struct AllToAllPlan {
  Local local;  // the product of this rank; m is that of x1
  Ring ring;
  DataType y_dtype = DataType::kUndefined;

  int64_t element_bytes() const { return BitsOf(local.dtype) / 8; }
};

// `axes`: what all2all_axes must say unless it is empty. `joined` as in LocalForm, from the ranks.
Result<AllToAllPlan> PlanAllToAll(const OpContext& op, const std::vector<int64_t>& axes,
                                  bool joins) {
  NPUMESH_RETURN_IF_ERROR(
      RefuseInputs(op, {"x1_scale", "x2_scale", "comm_scale", "x1_offset", "x2_offset"}));
  NPUMESH_RETURN_IF_ERROR(RefuseModes(op, {"x1_quant_mode", "x2_quant_mode", "comm_quant_mode"}));
  NPUMESH_RETURN_IF_ERROR(ExpectFloats(op));
  AllToAllPlan plan;
  NPUMESH_ASSIGN_OR_RETURN(plan.ring, RingOf(op, "world_size"));
  const LocalForm form = {"transpose_x1", "transpose_x2", joins ? plan.ring.ranks : 1};
  NPUMESH_ASSIGN_OR_RETURN(plan.local, PlanLocal(op, form));
  const std::vector<int64_t> told = op.attr_ints("all2all_axes");
  if (plan.local.transposed1 || (!told.empty() && told != axes)) {
    return Error(Code::kUnsupported, "{}: transpose_x1 {} and all2all_axes {}; expected no and {}",
                 op.Who(), plan.local.transposed1 ? "yes" : "no", Shape(told).ToString(),
                 Shape(axes).ToString());
  }
  plan.y_dtype = plan.local.dtype;
  if (op.attr_int("y_dtype") != static_cast<int64_t>(DataType::kUndefined)) {
    NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("y_dtype"));
  }
  const bool typed = plan.y_dtype == plan.local.dtype || plan.y_dtype == DataType::kFloat;
  const int64_t split = joins ? plan.local.m : plan.local.n;
  if (typed && op.in("x1").shape.rank() == 2 && split % plan.ring.ranks == 0) return plan;
  return Error(Code::kInvalidArgument,
               "{}: y_dtype {}, x1 {}, x2 {}; expected the type of x1 or float32, a matrix, and {} "
               "{} that the {} ranks can divide",
               op.Who(), Name(plan.y_dtype), op.in("x1").ToString(), op.in("x2").ToString(), split,
               joins ? "rows" : "columns", plan.ring.ranks);
}

// ---- AlltoAllMatmul ----

Result<AllToAllPlan> PlanExchangeMatmul(const OpContext& op) {
  return PlanAllToAll(op, {-2, -1}, true);
}

Status InferExchangeMatmul(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const AllToAllPlan plan, PlanExchangeMatmul(op));
  const int64_t rows = plan.local.m / plan.ring.ranks;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, plan.y_dtype, {rows, plan.local.n}));
  const bool gives = op.attr_bool("alltoall_out_flag");
  return SetOutput(op, 1, plan.local.dtype, gives ? Shape{rows, plan.local.k} : Shape{0});
}

// x1 travels from where it is; a chunk is some rows of every block.
class ExchangeMatmulKernel final : public Kernel {
 public:
  // `product` multiplies the rows of one chunk; null: the result has no elements.
  ExchangeMatmulKernel(const OpContext& op, const AllToAllPlan& plan, int64_t chunks,
                       Communicator* group, std::unique_ptr<Kernel> product)
      : node_(op.node().name),
        plan_(plan),
        rows_(plan.local.m / plan.ring.ranks / chunks),
        slice_(plan.local.k / plan.ring.ranks * plan.element_bytes()),
        travel_(plan.ring.ranks, chunks, slice_),
        group_(group),
        product_(std::move(product)),
        x1_(op.slot("x1")),
        gives_(op.attr_bool("alltoall_out_flag")),
        in_(static_cast<size_t>(op.slots())) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (int64_t r = 0; r < plan.ring.ranks; ++r) {
        travel_.SetRows(chunk, r, rows_, rows_);
        travel_.SetPlace(chunk, r, (r * chunks + chunk) * rows_,
                         (chunk * plan.ring.ranks + r) * rows_);
      }
    }
  }

  // What arrives, the joined rows where they are no output, then the product's.
  uint64_t scratch_bytes() const override {
    return (gives_ ? 1 : 2) * all_bytes() + (product_ == nullptr ? 0 : product_->scratch_bytes());
  }
  bool reads(int slot) const override {
    return slot == x1_ || product_ == nullptr || product_->reads(slot);
  }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    auto* const arrived = static_cast<std::byte*>(args.scratch);
    auto* const joined = gives_ ? static_cast<std::byte*>(args.out[1]) : arrived + all_bytes();
    const auto ready = [](int64_t) { return Status(); };
    const auto multiply = [&](int64_t chunk) -> Status {
      Join(chunk, arrived, joined);
      return product_ == nullptr ? Status() : Multiply(args, chunk, joined);
    };
    return travel_.Run(*group_, node_, static_cast<const std::byte*>(args.in[x1_]), arrived, ready,
                       multiply);
  }

 private:
  uint64_t all_bytes() const {
    return RoundedUp(static_cast<uint64_t>(plan_.local.m * plan_.local.k / plan_.ring.ranks *
                                           plan_.element_bytes()));
  }

  // Row after row, the slices of all ranks.
  void Join(int64_t chunk, const std::byte* arrived, std::byte* joined) const {
    std::byte* to = joined + chunk * rows_ * plan_.ring.ranks * slice_;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t r = 0; r < plan_.ring.ranks; ++r, to += slice_) {
        std::copy_n(arrived + travel_.recv_at(chunk, r) + row * slice_, slice_, to);
      }
    }
  }

  Status Multiply(const KernelArgs& args, int64_t chunk, const std::byte* joined) {
    std::copy_n(args.in, in_.size(), in_.begin());
    in_[static_cast<size_t>(x1_)] = joined + chunk * rows_ * plan_.ring.ranks * slice_;
    const int64_t y_row = plan_.local.n * BitsOf(plan_.y_dtype) / 8;
    void* out[] = {static_cast<std::byte*>(args.out[0]) + chunk * rows_ * y_row};
    return product_->Run(
        {in_.data(), out, static_cast<std::byte*>(args.scratch) + (gives_ ? 1 : 2) * all_bytes()});
  }

  std::string node_;
  AllToAllPlan plan_;
  int64_t rows_;   // of each block in a chunk
  int64_t slice_;  // bytes of a row of x1
  RowTravel travel_;
  Communicator* group_;
  std::unique_ptr<Kernel> product_;
  int x1_;
  bool gives_;
  std::vector<const void*> in_;
};

Result<std::unique_ptr<Kernel>> MakeExchangeMatmul(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const AllToAllPlan plan, PlanExchangeMatmul(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op));
  const int64_t block = plan.local.m / plan.ring.ranks;
  const int64_t chunks = ChunksOf(block, op.in("x1").bytes());
  std::unique_ptr<Kernel> product;
  if (op.out(0).shape.elements() > 0) {
    NPUMESH_ASSIGN_OR_RETURN(product, MakeProduct(op, plan.local, block / chunks, plan.y_dtype));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<ExchangeMatmulKernel>(op, plan, chunks, group, std::move(product)));
}

// ---- MatmulAlltoAll ----

Result<AllToAllPlan> PlanMatmulExchange(const OpContext& op) {
  return PlanAllToAll(op, {-1, -2}, false);
}

Status InferMatmulExchange(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const AllToAllPlan plan, PlanMatmulExchange(op));
  return SetOutput(op, 0, plan.y_dtype,
                   {plan.local.m * plan.ring.ranks, plan.local.n / plan.ring.ranks});
}

// Rows of the product are cut into the ranks' columns, and arrive where they belong.
class MatmulExchangeKernel final : public Kernel {
 public:
  // `product` multiplies the rows of one chunk; null: the result has no elements.
  MatmulExchangeKernel(const OpContext& op, const AllToAllPlan& plan, int64_t chunks,
                       Communicator* group, std::unique_ptr<Kernel> product)
      : node_(op.node().name),
        plan_(plan),
        rows_(plan.local.m / chunks),
        slice_(plan.local.n / plan.ring.ranks * BitsOf(plan.y_dtype) / 8),
        travel_(plan.ring.ranks, chunks, slice_),
        group_(group),
        product_(std::move(product)),
        x1_(op.slot("x1")),
        in_(static_cast<size_t>(op.slots())) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (int64_t r = 0; r < plan.ring.ranks; ++r) {
        travel_.SetRows(chunk, r, rows_, rows_);
        travel_.SetPlace(chunk, r, (chunk * plan.ring.ranks + r) * rows_,
                         (r * chunks + chunk) * rows_);
      }
    }
  }

  // What is sent, the product of a chunk, then the product's own.
  uint64_t scratch_bytes() const override {
    return send_bytes() + chunk_bytes() + (product_ == nullptr ? 0 : product_->scratch_bytes());
  }
  bool reads(int slot) const override { return product_ == nullptr || product_->reads(slot); }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    auto* const send = static_cast<std::byte*>(args.scratch);
    const auto multiply = [&](int64_t chunk) -> Status {
      if (product_ == nullptr) return Status();
      NPUMESH_RETURN_IF_ERROR(Multiply(args, chunk));
      Cut(chunk, send);
      return Status();
    };
    const auto arrived = [](int64_t) { return Status(); };
    return travel_.Run(*group_, node_, send, static_cast<std::byte*>(args.out[0]), multiply,
                       arrived);
  }

 private:
  uint64_t send_bytes() const {
    return RoundedUp(static_cast<uint64_t>(plan_.local.m * plan_.ring.ranks * slice_));
  }
  uint64_t chunk_bytes() const {
    return RoundedUp(static_cast<uint64_t>(rows_ * plan_.ring.ranks * slice_));
  }

  Status Multiply(const KernelArgs& args, int64_t chunk) {
    std::copy_n(args.in, in_.size(), in_.begin());
    const void*& x1 = in_[static_cast<size_t>(x1_)];
    x1 = static_cast<const std::byte*>(x1) + chunk * rows_ * plan_.local.k * plan_.element_bytes();
    std::byte* const room = static_cast<std::byte*>(args.scratch) + send_bytes();
    void* out[] = {room};
    return product_->Run({in_.data(), out, room + chunk_bytes()});
  }

  void Cut(int64_t chunk, std::byte* send) const {
    const std::byte* from = send + send_bytes();
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t r = 0; r < plan_.ring.ranks; ++r, from += slice_) {
        std::copy_n(from, slice_, send + travel_.send_at(chunk, r) + row * slice_);
      }
    }
  }

  std::string node_;
  AllToAllPlan plan_;
  int64_t rows_;   // of a chunk
  int64_t slice_;  // bytes of a row of y
  RowTravel travel_;
  Communicator* group_;
  std::unique_ptr<Kernel> product_;
  int x1_;
  std::vector<const void*> in_;
};

Result<std::unique_ptr<Kernel>> MakeMatmulExchange(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const AllToAllPlan plan, PlanMatmulExchange(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op));
  const int64_t chunks = ChunksOf(plan.local.m, op.out(0).bytes());
  std::unique_ptr<Kernel> product;
  if (op.out(0).shape.elements() > 0) {
    NPUMESH_ASSIGN_OR_RETURN(product,
                             MakeProduct(op, plan.local, plan.local.m / chunks, plan.y_dtype));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<MatmulExchangeKernel>(op, plan, chunks, group, std::move(product)));
}

}  // namespace

void RegisterAllToAllMatmuls(OpRegistry& registry) {
  const auto integer = [](std::string_view name, int64_t value) {
    return AttrSpec{name, AttrValue::Int(value)};
  };
  OpSchema after = {"MatmulAlltoAll",
                    {{"x1"}, {"x2"}},
                    {{"y"}},
                    {{"group", Required::kString},
                     {"world_size", Required::kInt},
                     {"all2all_axes", AttrValue::Ints({-1, -2})},
                     integer("y_dtype", 28),
                     integer("x1_quant_mode", 0),
                     integer("x2_quant_mode", 0),
                     integer("comm_quant_mode", 0),
                     integer("comm_quant_dtype", 28),
                     {"transpose_x1", AttrValue::Bool(false)},
                     {"transpose_x2", AttrValue::Bool(false)},
                     integer("group_size", 0),
                     {"comm_mode", AttrValue::String("")}}};
  for (const std::string_view port :
       {"bias", "x1_scale", "x2_scale", "comm_scale", "x1_offset", "x2_offset"}) {
    after.inputs.push_back({port, PortKind::kOptional});
  }
  OpSchema before = after;
  before.type = "AlltoAllMatmul";
  before.outputs.push_back({"all2all_out"});
  before.attrs[2] = {"all2all_axes", AttrValue::Ints({-2, -1})};
  before.attrs.push_back(integer("x1_quant_dtype", 28));
  before.attrs.push_back({"alltoall_out_flag", AttrValue::Bool(true)});
  hcom::Add(registry, std::move(before), {}, InferExchangeMatmul, MakeExchangeMatmul);
  hcom::Add(registry, std::move(after), {}, InferMatmulExchange, MakeMatmulExchange);
}

}  // namespace npumesh::fused
