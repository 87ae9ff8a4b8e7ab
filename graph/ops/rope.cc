// RotaryPositionEmbedding, RotaryMul, ApplyRotaryPosEmb and InterleaveRope. Ops reference 5.11.
#include "graph/ops/rope.h"

#include <string>

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

// The halves of one group: y1 = x1 cos1 - x2 sin1, y2 = x2 cos2 + x1 sin2. Elements of x are `step`
// apart, `next` is the distance of a pair.
void RotatePairs(const float* x, int64_t step, int64_t next, const float* cos, const float* sin,
                 int64_t half, float* y) {
  for (int64_t i = 0; i < half; ++i) {
    const float a = x[i * step];
    const float b = x[i * step + next];
    y[i] = a * cos[i] - b * sin[i];
    y[half + i] = b * cos[half + i] + a * sin[half + i];
  }
}

// A tensor of vectors and where the vector of cos and sin for each of them lies.
class Rotation {
 public:
  // REQUIRES: CheckRotation has agreed.
  Rotation(const OpContext& op, std::string_view x, std::string_view cos, std::string_view sin,
           RotaryMode mode, int output)
      : mode_(mode),
        x_slot_(op.slot(x)),
        cos_slot_(op.slot(cos)),
        sin_slot_(op.slot(sin)),
        output_(output),
        dtype_(op.in(x).dtype),
        table_dtype_(op.in(cos).dtype) {
    const Shape& shape = op.in(x).shape;
    const Shape& table = op.in(cos).shape;
    width_ = shape[shape.rank() - 1];
    extents_.assign(shape.dims().begin(), shape.dims().end() - 1);
    strides_.assign(extents_.size(), 0);
    int64_t stride = width_;
    for (int i = table.rank() - 2; i >= 0; --i) {
      const auto axis = static_cast<size_t>(i + shape.rank() - table.rank());
      if (table[i] != 1) strides_[axis] = stride;
      stride *= table[i];
    }
    for (const int64_t extent : extents_) rows_ *= extent;
  }

  // x, y, cos, sin.
  uint64_t scratch_bytes() const { return 4 * static_cast<uint64_t>(width_) * sizeof(float); }

  void Run(const KernelArgs& args) const {
    auto* x = static_cast<float*>(args.scratch);
    float* y = x + width_;
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t first = TableElement(row);
      LoadNumbers(dtype_, args.in[x_slot_], row * width_, width_, x);
      const float* cos = LoadRow(table_dtype_, args.in[cos_slot_], first, width_, x + 2 * width_);
      const float* sin = LoadRow(table_dtype_, args.in[sin_slot_], first, width_, x + 3 * width_);
      Rotate(mode_, x, cos, sin, width_, y);
      StoreRow(dtype_, y, args.out[output_], row * width_, width_);
    }
  }

 private:
  int64_t TableElement(int64_t row) const {
    int64_t element = 0;
    for (size_t i = extents_.size(); i-- > 0;) {
      element += row % extents_[i] * strides_[i];
      row /= extents_[i];
    }
    return element;
  }

  RotaryMode mode_;
  int x_slot_;
  int cos_slot_;
  int sin_slot_;
  int output_;
  DataType dtype_;
  DataType table_dtype_;
  int64_t width_ = 0;
  int64_t rows_ = 1;
  std::vector<int64_t> extents_;
  std::vector<int64_t> strides_;  // of the table along the leading dimensions of x
};

Status CheckRotation(const OpContext& op, std::string_view x_port, std::string_view cos_port,
                     std::string_view sin_port, RotaryMode mode) {
  const TensorType& x = op.in(x_port);
  const TensorType& cos = op.in(cos_port);
  const int rank = x.shape.rank();
  const bool typed = IsRowType(x.dtype) && IsRowType(cos.dtype);
  const Result<Shape> joined = Broadcast(x.shape, cos.shape);
  const bool fits = typed && rank > 0 && cos == op.in(sin_port) && joined.ok() &&
                    *joined == x.shape && cos.shape.rank() > 0 &&
                    cos.shape.dims().back() == x.shape.dims().back();
  if (!fits) {
    return Error(Code::kInvalidArgument,
                 "{}: \"{}\" is {}, \"{}\" {} and \"{}\" {}; expected floating types, and tables "
                 "that broadcast to the tensor with the same last dimension",
                 op.Who(), x_port, x.ToString(), cos_port, cos.ToString(), sin_port,
                 op.in(sin_port).ToString());
  }
  const int64_t parts = mode == RotaryMode::kQuarter ? 4 : 2;
  if (x.shape[rank - 1] % parts == 0) return Status();
  return Error(Code::kInvalidArgument,
               "{}: the last dimension of \"{}\" {} must be divisible by {}", op.Who(), x_port,
               x.ToString(), parts);
}

// ---- one tensor ----

struct OneTensor {
  std::string_view cos;
  std::string_view sin;
  RotaryMode mode;
};

Result<OneTensor> PortsOf(const OpContext& op) {
  if (op.schema().type == "RotaryMul") return OneTensor{"r1", "r2", RotaryMode::kHalf};
  if (op.schema().type == "InterleaveRope") {
    return OneTensor{"cos", "sin", RotaryMode::kInterleaveHalf};
  }
  const int64_t mode = op.attr_int("mode");
  if (mode >= 0 && mode <= 3) return OneTensor{"cos", "sin", static_cast<RotaryMode>(mode)};
  return Error(Code::kInvalidArgument, "{}: mode {}, expected 0 to 3", op.Who(), mode);
}

Status InferRotary(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const OneTensor ports, PortsOf(op));
  NPUMESH_RETURN_IF_ERROR(CheckRotation(op, "x", ports.cos, ports.sin, ports.mode));
  return SetOutput(op, 0, op.in("x").dtype, op.in("x").shape);
}

class RotaryKernel final : public Kernel {
 public:
  explicit RotaryKernel(std::vector<Rotation> rotations) : rotations_(std::move(rotations)) {}

  uint64_t scratch_bytes() const override {
    uint64_t bytes = 0;
    for (const Rotation& rotation : rotations_) bytes = std::max(bytes, rotation.scratch_bytes());
    return bytes;
  }

  Status Run(const KernelArgs& args) override {
    for (const Rotation& rotation : rotations_) rotation.Run(args);
    return Status();
  }

 private:
  std::vector<Rotation> rotations_;
};

Result<std::unique_ptr<Kernel>> MakeRotary(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const OneTensor ports, PortsOf(op));
  return std::unique_ptr<Kernel>(std::make_unique<RotaryKernel>(
      std::vector<Rotation>{{op, "x", ports.cos, ports.sin, ports.mode, 0}}));
}

// ---- query and key ----

Result<RotaryMode> NamedMode(const OpContext& op) {
  const std::string name = op.attr_string("rotary_mode");
  if (name == "half") return RotaryMode::kHalf;
  if (name == "interleave") return RotaryMode::kInterleave;
  if (name == "quarter") return RotaryMode::kQuarter;
  return Error(Code::kInvalidArgument,
               "{}: rotary_mode \"{}\", expected half, interleave or quarter", op.Who(), name);
}

// The tables have 1 where query and key have their heads, so they broadcast in every layout.
Status InferApplyRotary(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RotaryMode mode, NamedMode(op));
  const int64_t layout = op.attr_int("layout");
  if (layout < 1 || layout > 4 || op.in("query").shape.rank() != (layout == 4 ? 3 : 4)) {
    return Error(Code::kInvalidArgument,
                 "{}: layout {} with query {}; expected 1 BSND, 2 SBND, 3 BNSD or 4 TND", op.Who(),
                 layout, op.in("query").ToString());
  }
  int output = 0;
  for (const std::string_view port : {"query", "key"}) {
    NPUMESH_RETURN_IF_ERROR(CheckRotation(op, port, "cos", "sin", mode));
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, output++, op.in(port).dtype, op.in(port).shape));
  }
  return Status();
}

Result<std::unique_ptr<Kernel>> MakeApplyRotary(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const RotaryMode mode, NamedMode(op));
  return std::unique_ptr<Kernel>(std::make_unique<RotaryKernel>(std::vector<Rotation>{
      {op, "query", "cos", "sin", mode, 0}, {op, "key", "cos", "sin", mode, 1}}));
}

}  // namespace

void Rotate(RotaryMode mode, const float* x, const float* cos, const float* sin, int64_t width,
            float* y) {
  const int64_t half = width / 2;
  switch (mode) {
    case RotaryMode::kHalf:
      RotatePairs(x, 1, half, cos, sin, half, y);
      return;
    case RotaryMode::kQuarter:
      RotatePairs(x, 1, half / 2, cos, sin, half / 2, y);
      RotatePairs(x + half, 1, half / 2, cos + half, sin + half, half / 2, y + half);
      return;
    case RotaryMode::kInterleaveHalf:
      RotatePairs(x, 2, 1, cos, sin, half, y);
      return;
    case RotaryMode::kInterleave:
      for (int64_t i = 0; i < width; i += 2) RotatePairs(x + i, 1, 1, cos + i, sin + i, 1, y + i);
  }
}

void RegisterRopeOps(OpRegistry& registry) {
  registry.Add({.schema = {"RotaryPositionEmbedding",
                           {{"x"}, {"cos"}, {"sin"}, {"rotate", PortKind::kOptional}},
                           {{"y"}},
                           {{"mode", AttrValue::Int(0)}}},
                .infer = InferRotary,
                .make_kernel = MakeRotary});
  registry.Add({.schema = {"RotaryMul", {{"x"}, {"r1"}, {"r2"}}, {{"y"}}, {}},
                .infer = InferRotary,
                .make_kernel = MakeRotary});
  registry.Add({.schema = {"InterleaveRope", {{"x"}, {"cos"}, {"sin"}}, {{"y"}}, {}},
                .infer = InferRotary,
                .make_kernel = MakeRotary});
  registry.Add(
      {.schema = {"ApplyRotaryPosEmb",
                  {{"query"}, {"key"}, {"cos"}, {"sin"}},
                  {{"query"}, {"key"}},
                  {{"layout", AttrValue::Int(1)}, {"rotary_mode", AttrValue::String("half")}}},
       .infer = InferApplyRotary,
       .make_kernel = MakeApplyRotary,
       .in_place = {{0, 0}, {1, 1}}});
}

}  // namespace npumesh
