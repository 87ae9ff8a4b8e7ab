// DynamicQuant, DynamicQuantV2, AscendQuantV2, AscendQuant and Quantize. Ops reference 5.13.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "graph/ops/float_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/numbers.h"
#include "graph/ops/op_families.h"

namespace npumesh {
namespace {

Status ExpectRows(const OpContext& op, std::string_view port) {
  const TensorType& x = op.in(port);
  if (IsRowType(x.dtype) && x.shape.rank() > 0) return Status();
  return Error(
      Code::kInvalidArgument,
      "{}: \"{}\" is {}, expected float16, bfloat16 or float32 with at least one dimension",
      op.Who(), port, x.ToString());
}

// ---- DynamicQuant, DynamicQuantV2 ----

enum class Span : uint8_t { kToken, kTensor, kChannel };

Result<Span> SpanOf(const OpContext& op) {
  if (op.schema().type == "DynamicQuant") return Span::kToken;
  const std::string mode = op.attr_string("quant_mode");
  if (mode == "pertoken") return Span::kToken;
  if (mode == "pertensor") return Span::kTensor;
  if (mode == "perchannel" && op.in("x").shape.rank() >= 2) return Span::kChannel;
  return Error(Code::kInvalidArgument,
               "{}: quant_mode \"{}\" for x {}, expected pertoken, pertensor or perchannel",
               op.Who(), mode, op.in("x").ToString());
}

bool IsSymmetrical(const OpContext& op) {
  return op.schema().type == "DynamicQuant" || op.attr_bool("is_symmetrical");
}

Shape ScaleShape(const Shape& x, Span span) {
  if (span == Span::kTensor) return {1};
  Shape shape = x;
  std::vector<int64_t>& dims = shape.mutable_dims();
  dims.erase(dims.end() - (span == Span::kToken ? 1 : 2));
  return shape;
}

// smooth_scales are [H], or [G, H] with a group for each row.
Status CheckSmooth(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Factors smooth, Factors::Of(op, "smooth_scales"));
  const int groups = SlotIfFed(op, "group_index");
  NPUMESH_RETURN_IF_ERROR(ExpectIntegers(op, groups));
  if (!smooth.given()) return Status();
  const int64_t width = op.in("x").shape.dims().back();
  const int64_t count = groups < 0 ? 1 : op.in(groups).shape.elements();
  if (smooth.count() == width * count) return Status();
  return Error(Code::kInvalidArgument,
               "{}: smooth_scales is {}, expected {} x {} elements for x {}", op.Who(),
               op.in("smooth_scales").ToString(), count, width, op.in("x").ToString());
}

Status InferDynamic(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectRows(op, "x"));
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, QuantisedType(op, "dst_type"));
  NPUMESH_ASSIGN_OR_RETURN(const Span span, SpanOf(op));
  NPUMESH_RETURN_IF_ERROR(CheckSmooth(op));
  const Shape& x = op.in("x").shape;
  NPUMESH_RETURN_IF_ERROR(CheckPacking(op, dtype, x));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, dtype, x));
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 1, DataType::kFloat, ScaleShape(x, span)));
  if (op.schema().type == "DynamicQuant") return Status();
  return SetOutput(op, 2, DataType::kFloat, ScaleShape(x, span));
}

// Walks x in blocks that share their scales: a row, a matrix (scales for each column), everything.
class DynamicQuantKernel final : public Kernel {
 public:
  DynamicQuantKernel(const OpContext& op, Span span, Factors smooth)
      : span_(span),
        symmetrical_(IsSymmetrical(op)),
        offsets_(op.schema().type != "DynamicQuant"),
        smooth_(smooth),
        groups_(SlotIfFed(op, "group_index")),
        x_(op.slot("x")),
        from_(op.in("x").dtype),
        to_(op.out(0).dtype),
        width_(op.in("x").shape.dims().back()) {
    const Shape& x = op.in("x").shape;
    if (groups_ >= 0) {
      group_dtype_ = op.in(groups_).dtype;
      group_count_ = op.in(groups_).shape.elements();
    }
    const int64_t rows = ElementsBetween(x, 0, x.rank() - 1);
    block_rows_ = span == Span::kToken ? 1 : span == Span::kTensor ? rows : x[x.rank() - 2];
    blocks_ = block_rows_ == 0 ? 0 : rows / block_rows_;
  }

  // Rows for x, its smoothing, the extremes, scales and offsets.
  uint64_t scratch_bytes() const override {
    return 6 * static_cast<uint64_t>(width_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* room = static_cast<float*>(args.scratch);
    const Rows rows{room,
                    room + width_,
                    room + 2 * width_,
                    room + 3 * width_,
                    room + 4 * width_,
                    room + 5 * width_};
    loaded_ = -1;
    for (int64_t b = 0; b < blocks_; ++b) {
      FindRange(args, b, rows);
      SetScales(args, b, rows);
      for (int64_t r = 0; r < block_rows_; ++r) {
        LoadSmoothed(args, b * block_rows_ + r, rows);
        for (int64_t i = 0; i < width_; ++i) {
          const float scale = rows.scale[i];
          rows.x[i] = scale == 0 ? 0.0f : rows.x[i] / scale + rows.offset[i];
        }
        StoreIntegers(to_, Rounding::kNearest, rows.x, args.out[0], (b * block_rows_ + r) * width_,
                      width_);
      }
    }
    return Status();
  }

 private:
  struct Rows {
    float* x;
    float* smooth;
    float* least;
    float* most;
    float* scale;
    float* offset;
  };

  // The group of a row: the first whose prefix sum is above it.
  int64_t GroupOf(const KernelArgs& args, int64_t row) const {
    int64_t group = 0;
    while (group + 1 < group_count_ && row >= IntegerAt(group_dtype_, args.in[groups_], group)) {
      ++group;
    }
    return group;
  }

  void LoadSmoothed(const KernelArgs& args, int64_t row, const Rows& rows) {
    LoadNumbers(from_, args.in[x_], row * width_, width_, rows.x);
    if (!smooth_.given()) return;
    const int64_t group = groups_ < 0 ? 0 : GroupOf(args, row);
    if (group != loaded_) smooth_.Load(args, group * width_, width_, rows.smooth);
    loaded_ = group;
    for (int64_t i = 0; i < width_; ++i) rows.x[i] *= rows.smooth[i];
  }

  void FindRange(const KernelArgs& args, int64_t block, const Rows& rows) {
    std::fill_n(rows.least, width_, std::numeric_limits<float>::infinity());
    std::fill_n(rows.most, width_, -std::numeric_limits<float>::infinity());
    for (int64_t r = 0; r < block_rows_; ++r) {
      LoadSmoothed(args, block * block_rows_ + r, rows);
      for (int64_t i = 0; i < width_; ++i) {
        rows.least[i] = std::min(rows.least[i], rows.x[i]);
        rows.most[i] = std::max(rows.most[i], rows.x[i]);
      }
    }
    if (span_ == Span::kChannel || width_ == 0) return;
    std::fill_n(rows.least, width_, *std::min_element(rows.least, rows.least + width_));
    std::fill_n(rows.most, width_, *std::max_element(rows.most, rows.most + width_));
  }

  // A range of zero width has scale 0 and gives zeros.
  void SetScales(const KernelArgs& args, int64_t block, const Rows& rows) const {
    const float largest = LargestOf(to_);
    for (int64_t i = 0; i < width_; ++i) {
      const float least = rows.least[i];
      const float most = rows.most[i];
      if (symmetrical_) {
        rows.scale[i] = std::max(std::fabs(least), std::fabs(most)) / largest;
        rows.offset[i] = 0;
        continue;
      }
      rows.scale[i] = (most - least) / (2 * largest + 1);
      rows.offset[i] = rows.scale[i] == 0 ? 0.0f : largest - most / rows.scale[i];
    }
    const int64_t count = span_ == Span::kChannel ? width_ : std::min<int64_t>(width_, 1);
    std::copy_n(rows.scale, count, static_cast<float*>(args.out[1]) + block * count);
    if (offsets_) std::copy_n(rows.offset, count, static_cast<float*>(args.out[2]) + block * count);
  }

  Span span_;
  bool symmetrical_;
  bool offsets_;
  Factors smooth_;
  int groups_;
  DataType group_dtype_ = DataType::kInt32;
  int64_t group_count_ = 0;
  int x_;
  DataType from_;
  DataType to_;
  int64_t width_;
  int64_t block_rows_ = 1;
  int64_t blocks_ = 0;
  int64_t loaded_ = -1;  // group whose smoothing is in scratch
};

Result<std::unique_ptr<Kernel>> MakeDynamic(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const Span span, SpanOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const Factors smooth, Factors::Of(op, "smooth_scales"));
  if (op.out(0).shape.elements() > 0) {
    return std::unique_ptr<Kernel>(std::make_unique<DynamicQuantKernel>(op, span, smooth));
  }
  const int outputs = op.outputs();
  return MakeKernel([bytes = op.out(1).bytes(), outputs](const KernelArgs& args) {
    for (int i = 1; i < outputs && bytes > 0; ++i) {
      std::fill_n(static_cast<std::byte*>(args.out[i]), bytes, std::byte{0});
    }
    return Status();
  });
}

// ---- AscendQuantV2, AscendQuant, Quantize ----

// Factors that broadcast to x: one, one for each position of an axis, or of x's rank.
struct Grid {
  Factors factors;
  std::vector<int64_t> strides;  // for each dimension of x; empty: one factor

  // Element of the row of x with number `row`; its columns follow if `by_column()`.
  int64_t First(const Shape& x, int64_t row) const {
    int64_t index = 0;
    for (size_t i = strides.empty() ? 0 : strides.size() - 1; i-- > 0;) {
      const int64_t extent = x[static_cast<int>(i)];
      index += row % extent * strides[i];
      row /= extent;
    }
    return index;
  }
  bool by_column() const { return !strides.empty() && strides.back() != 0; }

  void Load(const KernelArgs& args, const Shape& x, int64_t row, int64_t width, float* to) const {
    const int64_t first = First(x, row);
    if (by_column()) {
      factors.Load(args, first, width, to);
    } else {
      std::fill_n(to, width, factors.At(args, first));
    }
  }
};

Result<Grid> GridOf(const OpContext& op, std::string_view port) {
  Grid grid;
  NPUMESH_ASSIGN_OR_RETURN(grid.factors, Factors::Of(op, port));
  if (!grid.factors.given() || grid.factors.count() == 1) return grid;
  const Shape& x = op.in("x").shape;
  const Shape& shape = op.in(port).shape;
  grid.strides.assign(x.dims().size(), 0);
  bool fits = true;
  if (shape.rank() == 1) {
    NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("axis"), x.rank(), "axis"));
    fits = shape[0] == x[axis];
    grid.strides[static_cast<size_t>(axis)] = 1;
  } else {
    fits = shape.rank() == x.rank();
    int64_t stride = 1;
    for (int i = x.rank() - 1; fits && i >= 0; --i) {
      fits = shape[i] == 1 || shape[i] == x[i];
      if (shape[i] != 1) grid.strides[static_cast<size_t>(i)] = stride;
      stride *= shape[i];
    }
  }
  if (fits) return grid;
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, which does not broadcast to x {}",
               op.Who(), port, op.in(port).ToString(), op.in("x").ToString());
}

struct StaticQuant {
  Grid scale;
  Grid offset;
  float scale_value = 1;  // where there is no input for it
  float offset_value = 0;
  bool squared = false;
  bool divides = false;
  Rounding rounding = Rounding::kNearest;
  DataType dtype = DataType::kInt8;
};

// The string of Quantize: "torch.qint8" ...
Result<DataType> TorchType(const OpContext& op) {
  const std::string name = op.attr_string("dtype");
  if (name == "torch.qint8" || name == "torch.int8") return DataType::kInt8;
  if (name == "torch.quint8" || name == "torch.uint8") return DataType::kUint8;
  if (name == "torch.qint32" || name == "torch.int32") return DataType::kInt32;
  return Error(Code::kUnsupported,
               "{}: dtype \"{}\", expected torch.qint8, torch.quint8 or torch.qint32", op.Who(),
               name);
}

Result<StaticQuant> PlanStatic(const OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectRows(op, "x"));
  StaticQuant plan;
  if (op.schema().type == "Quantize") {
    plan.divides = true;
    NPUMESH_ASSIGN_OR_RETURN(plan.dtype, TorchType(op));
    NPUMESH_ASSIGN_OR_RETURN(plan.scale, GridOf(op, "scales"));
    NPUMESH_ASSIGN_OR_RETURN(plan.offset, GridOf(op, "zero_points"));
    return plan;
  }
  plan.squared = op.attr_bool("sqrt_mode");
  NPUMESH_ASSIGN_OR_RETURN(plan.dtype, QuantisedType(op, "dst_type"));
  NPUMESH_ASSIGN_OR_RETURN(plan.rounding, RoundingOf(op, "round_mode"));
  NPUMESH_RETURN_IF_ERROR(CheckPacking(op, plan.dtype, op.in("x").shape));
  if (op.schema().type == "AscendQuant") {
    plan.scale_value = op.attr_float("scale");
    plan.offset_value = op.attr_float("offset");
    return plan;
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.scale, GridOf(op, "scale"));
  NPUMESH_ASSIGN_OR_RETURN(plan.offset, GridOf(op, "offset"));
  return plan;
}

Status InferStatic(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const StaticQuant plan, PlanStatic(op));
  return SetOutput(op, 0, plan.dtype, op.in("x").shape);
}

class StaticQuantKernel final : public Kernel {
 public:
  StaticQuantKernel(const OpContext& op, StaticQuant plan)
      : plan_(std::move(plan)),
        x_(op.slot("x")),
        from_(op.in("x").dtype),
        shape_(op.in("x").shape),
        width_(shape_.dims().back()),
        rows_(ElementsBetween(shape_, 0, shape_.rank() - 1)) {}

  // Rows for x, scales and offsets.
  uint64_t scratch_bytes() const override {
    return 3 * static_cast<uint64_t>(width_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    auto* x = static_cast<float*>(args.scratch);
    float* scale = x + width_;
    float* offset = x + 2 * width_;
    std::fill_n(scale, width_, plan_.scale_value);
    std::fill_n(offset, width_, plan_.offset_value);
    for (int64_t r = 0; r < rows_; ++r) {
      LoadNumbers(from_, args.in[x_], r * width_, width_, x);
      if (plan_.scale.factors.given()) plan_.scale.Load(args, shape_, r, width_, scale);
      if (plan_.offset.factors.given()) plan_.offset.Load(args, shape_, r, width_, offset);
      for (int64_t i = 0; i < width_; ++i) {
        const float scaled = plan_.divides ? x[i] / scale[i] : x[i] * scale[i];
        x[i] = (plan_.squared ? scaled * scale[i] : scaled) + offset[i];
      }
      StoreIntegers(plan_.dtype, plan_.rounding, x, args.out[0], r * width_, width_);
    }
    return Status();
  }

 private:
  StaticQuant plan_;
  int x_;
  DataType from_;
  Shape shape_;
  int64_t width_;
  int64_t rows_;
};

Result<std::unique_ptr<Kernel>> MakeStatic(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(StaticQuant plan, PlanStatic(op));
  return std::unique_ptr<Kernel>(std::make_unique<StaticQuantKernel>(op, std::move(plan)));
}

}  // namespace

void RegisterQuantOps(OpRegistry& registry) {
  RegisterQuantiseOps(registry);
  RegisterDequantiseOps(registry);
  RegisterDequantSwigluOps(registry);
  RegisterQuantMatmulOps(registry);
  RegisterGroupedMatmulOps(registry);
}

void RegisterQuantiseOps(OpRegistry& registry) {
  const PortSpec smooth = {"smooth_scales", PortKind::kOptional};
  const PortSpec groups = {"group_index", PortKind::kOptional};
  const AttrSpec dst = {"dst_type", AttrValue::Int(2)};
  const AttrSpec sqrt_mode = {"sqrt_mode", AttrValue::Bool(false)};
  registry.Add({.schema = {"DynamicQuant", {{"x"}, smooth, groups}, {{"y"}, {"scale"}}, {dst}},
                .infer = InferDynamic,
                .make_kernel = MakeDynamic});
  registry.Add({.schema = {"DynamicQuantV2",
                           {{"x"}, smooth, groups},
                           {{"y"}, {"scale"}, {"offset"}},
                           {dst,
                            {"is_symmetrical", AttrValue::Bool(false)},
                            {"quant_mode", AttrValue::String("pertoken")},
                            {"dst_type_max", AttrValue::Float(0.0f)}}},
                .infer = InferDynamic,
                .make_kernel = MakeDynamic});
  registry.Add({.schema = {"AscendQuantV2",
                           {{"x"}, {"scale"}, {"offset", PortKind::kOptional}},
                           {{"y"}},
                           {sqrt_mode,
                            {"round_mode", AttrValue::String("round")},
                            dst,
                            {"axis", AttrValue::Int(-1)}}},
                .infer = InferStatic,
                .make_kernel = MakeStatic});
  registry.Add({.schema = {"AscendQuant",
                           {{"x"}},
                           {{"y"}},
                           {{"scale", Required::kFloat},
                            {"offset", Required::kFloat},
                            sqrt_mode,
                            {"round_mode", AttrValue::String("Round")},
                            dst}},
                .infer = InferStatic,
                .make_kernel = MakeStatic});
  registry.Add({.schema = {"Quantize",
                           {{"x"}, {"scales"}, {"zero_points", PortKind::kOptional}},
                           {{"y"}},
                           {{"dtype", Required::kString}, {"axis", AttrValue::Int(1)}}},
                .infer = InferStatic,
                .make_kernel = MakeStatic});
}

}  // namespace npumesh
