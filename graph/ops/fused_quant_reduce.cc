// QuantAllReduce and QuantReduceScatter: the sum over the ranks of 8-bit tensors with scales. Ops
// reference 5.17 and 5.19.
//
// Rows travel as 8-bit numbers, each with its scales behind it, to the ranks that want their sum,
// and are widened and summed there in the order of the ranks, rounded once. Large tensors go in
// chunks of rows: one is packed, or summed, while others are on their way.
#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_matmul.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/row_travel.h"
#include "graph/ops/scaled_matmul.h"

namespace npumesh::fused {
namespace {

constexpr int64_t kGroup = 128;      // elements with one float32 scale
constexpr int64_t kSmallGroup = 32;  // elements with one power of two (FLOAT8 E8M0)

struct ReducePlan {
  Ring ring;
  bool scatters = false;
  int64_t rows = 0;
  int64_t width = 0;
  bool powers = false;  // scales are powers of two
  DataType x_dtype = DataType::kUndefined;
  DataType y_dtype = DataType::kUndefined;

  int64_t group() const { return powers ? kSmallGroup : kGroup; }
  // Bytes of a row's scales are the same in both forms.
  int64_t scale_bytes() const { return width / kSmallGroup; }
  int64_t record_bytes() const { return width + scale_bytes(); }
  int64_t block() const { return scatters ? rows / ring.ranks : rows; }  // rows of y
};

// [.., H/128] float32, or [.., H/64, 2] powers of two.
Shape ScalesOf(const Shape& x, bool powers) {
  Shape shape = x;
  shape.mutable_dims().back() /= powers ? 2 * kSmallGroup : kGroup;
  if (powers) shape.mutable_dims().push_back(2);
  return shape;
}

Result<ReducePlan> PlanReduce(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectSum(op));
  ReducePlan plan;
  plan.scatters = op.schema().type == "QuantReduceScatter";
  NPUMESH_ASSIGN_OR_RETURN(plan.ring, RingOf(op, "world_size"));
  NPUMESH_ASSIGN_OR_RETURN(plan.y_dtype, op.attr_dtype("output_dtype"));
  const TensorType& x = op.in("x");
  const TensorType& scales = op.in("scales");
  plan.x_dtype = x.dtype;
  plan.powers = scales.dtype == DataType::kFloat8E8M0;
  const bool float8 = x.dtype == DataType::kFloat8E4M3Fn || x.dtype == DataType::kFloat8E5M2;
  const bool typed = (x.dtype == DataType::kInt8 || IsEightBitFloat(x.dtype)) &&
                     (scales.dtype == DataType::kFloat || (plan.powers && float8));
  if (!typed || !IsRowType(plan.y_dtype)) {
    return Error(Code::kUnsupported,
                 "{}: x is {}, scales {} and output_dtype {}; expected int8 or an 8-bit float with "
                 "float32 scales, or float8 with float8_e8m0 ones, and a float type",
                 op.Who(), Name(x.dtype), Name(scales.dtype), Name(plan.y_dtype));
  }
  const int rank = x.shape.rank();
  if (rank >= 2 && rank <= 3 && x.shape[rank - 1] % kGroup == 0 &&
      scales.shape == ScalesOf(x.shape, plan.powers)) {
    plan.width = x.shape[rank - 1];
    plan.rows = ElementsBetween(x.shape, 0, rank - 1);
    if (!plan.scatters || plan.rows % plan.ring.ranks == 0) return plan;
  }
  return Error(
      Code::kInvalidArgument,
      "{}: x is {} and scales {} on {} ranks; expected [rows,H] or [b,s,H], H a multiple of "
      "{}, scales for {} elements each{}",
      op.Who(), x.ToString(), scales.ToString(), plan.ring.ranks, kGroup, plan.group(),
      plan.scatters ? ", and rows that the ranks can divide" : "");
}

Status InferReduce(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const ReducePlan plan, PlanReduce(op));
  const Shape y = plan.scatters ? Shape{plan.block(), plan.width} : op.in("x").shape;
  return SetOutput(op, 0, plan.y_dtype, y);
}

class QuantReduceKernel final : public Kernel {
 public:
  QuantReduceKernel(const OpContext& op, const ReducePlan& plan, int64_t chunks,
                    Communicator* group)
      : node_(op.node().name),
        plan_(plan),
        rows_(plan.block() / chunks),
        travel_(plan.ring.ranks, chunks, plan.record_bytes()),
        group_(group) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (int64_t r = 0; r < plan.ring.ranks; ++r) {
        travel_.SetRows(chunk, r, rows_, rows_);
        travel_.SetPlace(chunk, r, FirstRow(chunk, r), (chunk * plan.ring.ranks + r) * rows_);
      }
    }
  }

  // What is sent, what arrives, and rows for a sum and for one of its terms.
  uint64_t scratch_bytes() const override {
    return send_bytes() + recv_bytes() + FloatBytes(2 * plan_.width);
  }

  // Collective over the group.
  Status Run(const KernelArgs& args) override {
    auto* const send = static_cast<std::byte*>(args.scratch);
    std::byte* const recv = send + send_bytes();
    const auto pack = [&](int64_t chunk) { return Pack(args, chunk, send); };
    const auto sum = [&](int64_t chunk) { return Sum(args, chunk, recv); };
    return travel_.Run(*group_, node_, send, recv, pack, sum);
  }

 private:
  uint64_t send_bytes() const {
    return RoundedUp(static_cast<uint64_t>(plan_.rows * plan_.record_bytes()));
  }
  uint64_t recv_bytes() const {
    return RoundedUp(
        static_cast<uint64_t>(plan_.ring.ranks * plan_.block() * plan_.record_bytes()));
  }
  // First of the rows for a rank. All ranks get the same ones unless they are scattered.
  int64_t FirstRow(int64_t chunk, int64_t rank) const {
    return (plan_.scatters ? rank * plan_.block() : 0) + chunk * rows_;
  }

  Status Pack(const KernelArgs& args, int64_t chunk, std::byte* send) const {
    const auto* x = static_cast<const std::byte*>(args.in[0]);
    const auto* scales = static_cast<const std::byte*>(args.in[1]);
    for (int64_t r = 0; r < (plan_.scatters ? plan_.ring.ranks : 1); ++r) {
      const int64_t first = FirstRow(chunk, r);
      for (int64_t row = first; row < first + rows_; ++row) {
        std::byte* to = send + row * plan_.record_bytes();
        to = std::copy_n(x + row * plan_.width, plan_.width, to);
        std::copy_n(scales + row * plan_.scale_bytes(), plan_.scale_bytes(), to);
      }
    }
    return Status();
  }

  Status Sum(const KernelArgs& args, int64_t chunk, const std::byte* recv) const {
    auto* const room = static_cast<std::byte*>(args.scratch) + send_bytes() + recv_bytes();
    auto* const sum = reinterpret_cast<float*>(room);
    for (int64_t row = 0; row < rows_; ++row) {
      std::fill_n(sum, plan_.width, 0.0f);
      for (int64_t r = 0; r < plan_.ring.ranks; ++r) {
        Add(recv + travel_.recv_at(chunk, r) + row * plan_.record_bytes(), sum);
      }
      StoreRow(plan_.y_dtype, sum, args.out[0], (chunk * rows_ + row) * plan_.width, plan_.width);
    }
    return Status();
  }

  void Add(const std::byte* record, float* sum) const {
    float* const term = sum + plan_.width;
    LoadNumbers(plan_.x_dtype, record, 0, plan_.width, term);
    for (int64_t i = 0; i < plan_.width; i += plan_.group()) {
      const float scale = ScaleAt(record + plan_.width, i / plan_.group());
      for (int64_t j = i; j < i + plan_.group(); ++j) sum[j] += term[j] * scale;
    }
  }

  float ScaleAt(const std::byte* scales, int64_t index) const {
    if (!plan_.powers) return reinterpret_cast<const float*>(scales)[index];
    const int exponent = std::to_integer<int>(scales[index]);
    return exponent == 255 ? std::nanf("") : std::ldexp(1.0f, exponent - 127);
  }

  std::string node_;
  ReducePlan plan_;
  int64_t rows_;  // of each block in a chunk
  RowTravel travel_;
  Communicator* group_;
};

Result<std::unique_ptr<Kernel>> MakeReduce(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const ReducePlan plan, PlanReduce(op));
  NPUMESH_ASSIGN_OR_RETURN(Communicator* const group, hcom::GroupOf(op));
  const int64_t chunks =
      ChunksOf(plan.block(), static_cast<uint64_t>(plan.rows * plan.record_bytes()));
  return std::unique_ptr<Kernel>(std::make_unique<QuantReduceKernel>(op, plan, chunks, group));
}

}  // namespace

void RegisterQuantReductions(OpRegistry& registry) {
  const auto add = [&](std::string_view type, Required size, CollectiveTrait trait) {
    hcom::Add(registry,
              {type,
               {{"x"}, {"scales"}},
               {{"out_put"}},
               {{"group", Required::kString},
                {"reduce_op", AttrValue::String("sum")},
                {"output_dtype", AttrValue::Int(27)},
                {"world_size", size}}},
              std::move(trait), InferReduce, MakeReduce);
  };
  // The prototype of the second one says that its world_size is a string.
  add("QuantAllReduce", Required::kInt, {.leaves_equal = true, .reduction = "reduce_op"});
  add("QuantReduceScatter", Required::kAny,
      {.gives = Assembly::kConcatenate, .reduction = "reduce_op"});
}

}  // namespace npumesh::fused
