// MX quantisation of tensors: DynamicMxQuant, DynamicMxQuantWithDualAxis, DynamicBlockMxQuant,
// GroupedDynamicMxQuant and AntiMxQuant. Ops reference 5.19.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph/ops/float_rows.h"
#include "graph/ops/fused_families.h"
#include "graph/ops/group_rows.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/mx_block.h"
#include "graph/ops/small_float.h"

namespace npumesh {
namespace {

Status ExpectFloats(const OpContext& op, int least, int most) {
  const TensorType& x = op.in("x");
  if (IsRowType(x.dtype) && x.shape.rank() >= least && x.shape.rank() <= most) return Status();
  return Error(Code::kInvalidArgument,
               "{}: \"x\" is {}, expected float16, bfloat16 or float32 with {} to {} dimensions",
               op.Who(), x.ToString(), least, most);
}

Result<MxFormat> FormatOf(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const MxFormat format, MxFormatOf(op));
  NPUMESH_RETURN_IF_ERROR(CheckMxPacking(op, format.dtype, op.in("x").shape));
  return format;
}

// ---- DynamicMxQuant, DynamicMxQuantWithDualAxis ----

bool HasTwoAxes(const OpContext& op) {
  return op.schema().type == "DynamicMxQuantWithDualAxis";
}

// The axes of results 0, 1.
Result<std::vector<int>> AxesOf(const OpContext& op) {
  const int rank = op.in("x").shape.rank();
  if (HasTwoAxes(op)) return std::vector<int>{rank - 1, rank - 2};
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("axis"), rank, "axis"));
  return std::vector<int>{axis};
}

Result<int64_t> BlockOf(const OpContext& op) {
  if (HasTwoAxes(op)) return kMxBlock;
  const int64_t block = op.attr_int("blocksize");
  if (block > 0 && block % kMxBlock == 0 && block <= 1024) return block;
  return Error(Code::kUnsupported, "{}: blocksize is {}, expected a multiple of 32 up to 1024",
               op.Who(), block);
}

Status InferMx(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectFloats(op, HasTwoAxes(op) ? 2 : 1, 7));
  NPUMESH_ASSIGN_OR_RETURN(const MxFormat format, FormatOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t block, BlockOf(op));
  const Shape& x = op.in("x").shape;
  for (int i = 0; i < static_cast<int>(axes.size()); ++i) {
    const Shape scales = MxScaleShape(x, axes[static_cast<size_t>(i)], block);
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2 * i, format.dtype, x));
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, 2 * i + 1, DataType::kFloat8E8M0, scales));
  }
  return Status();
}

class MxKernel final : public Kernel {
 public:
  MxKernel(const OpContext& op, const MxFormat& format, const std::vector<int>& axes, int64_t block)
      : format_(format), x_(op.in("x").dtype) {
    for (const int axis : axes) axes_.push_back(MxAxisOf(op.in("x").shape, axis, block));
  }

  // A block of the longest inner extent.
  uint64_t scratch_bytes() const override {
    int64_t floats = 0;
    for (const MxAxis& axis : axes_) floats = std::max(floats, axis.block * axis.inner);
    return static_cast<uint64_t>(floats) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    for (size_t i = 0; i < axes_.size(); ++i) {
      RunAxis(args, axes_[i], args.out[2 * i], static_cast<uint8_t*>(args.out[2 * i + 1]));
    }
    return Status();
  }

 private:
  void RunAxis(const KernelArgs& args, const MxAxis& axis, void* y, uint8_t* scales) const {
    auto* room = static_cast<float*>(args.scratch);
    std::memset(scales, 0, static_cast<size_t>(axis.outer * axis.pairs() * axis.inner * 2));
    for (int64_t o = 0; o < axis.outer; ++o) {
      for (int64_t b = 0; b < axis.blocks(); ++b) {
        const int64_t begin = b * axis.block;
        const int64_t count = std::min(axis.block, axis.length - begin) * axis.inner;
        LoadNumbers(x_, args.in[0], (o * axis.length + begin) * axis.inner, count, room);
        QuantiseMxBlock(format_, axis, o, b, room, y, scales);
      }
    }
  }

  MxFormat format_;
  DataType x_;
  std::vector<MxAxis> axes_;
};

Result<std::unique_ptr<Kernel>> MakeMx(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const MxFormat format, FormatOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int> axes, AxesOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t block, BlockOf(op));
  return std::unique_ptr<Kernel>(std::make_unique<MxKernel>(op, format, axes, block));
}

// ---- DynamicBlockMxQuant ----

Status InferTiles(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectFloats(op, 2, 3));
  NPUMESH_ASSIGN_OR_RETURN(const MxFormat format, FormatOf(op));
  const Shape& x = op.in("x").shape;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, format.dtype, x));
  for (const int port : {1, 2}) {
    const Shape scales = MxScaleShape(x, x.rank() - port, kMxBlock);
    NPUMESH_RETURN_IF_ERROR(SetOutput(op, port, DataType::kFloat8E8M0, scales));
  }
  return Status();
}

// Tiles of 32 x 32 with one scale each, which both outputs of scales repeat.
class TileKernel final : public Kernel {
 public:
  TileKernel(const OpContext& op, const MxFormat& format)
      : format_(format),
        x_(op.in("x").dtype),
        along_(MxAxisOf(op.in("x").shape, op.in("x").shape.rank() - 1, kMxBlock)),
        down_(MxAxisOf(op.in("x").shape, op.in("x").shape.rank() - 2, kMxBlock)) {}

  uint64_t scratch_bytes() const override { return kMxBlock * kMxBlock * sizeof(float); }

  Status Run(const KernelArgs& args) override {
    std::memset(args.out[1], 0, static_cast<size_t>(along_.outer * along_.pairs() * 2));
    std::memset(args.out[2], 0, static_cast<size_t>(down_.outer * down_.pairs() * down_.inner * 2));
    for (int64_t m = 0; m < down_.outer; ++m) {
      for (int64_t r = 0; r < down_.blocks(); ++r) {
        for (int64_t c = 0; c < along_.blocks(); ++c) RunTile(args, m, r, c);
      }
    }
    return Status();
  }

 private:
  void RunTile(const KernelArgs& args, int64_t m, int64_t r, int64_t c) const {
    auto* tile = static_cast<float*>(args.scratch);
    const int64_t width = along_.length, height = down_.length;
    const int64_t top = r * kMxBlock, left = c * kMxBlock;
    const int64_t rows = std::min(kMxBlock, height - top);
    const int64_t columns = std::min(kMxBlock, width - left);
    for (int64_t i = 0; i < rows; ++i) {
      LoadNumbers(x_, args.in[0], (m * height + top + i) * width + left, columns,
                  tile + i * columns);
    }
    const uint8_t scale = MxScaleByte(format_, MxMagnitude(tile, rows * columns, 1));
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = m * height + top + i;
      StoreMx(format_, scale, tile + i * columns, columns, args.out[0], row * width + left);
      static_cast<uint8_t*>(args.out[1])[along_.ScaleAt(row, c, 0)] = scale;
    }
    for (int64_t i = 0; i < columns; ++i) {
      static_cast<uint8_t*>(args.out[2])[down_.ScaleAt(m, r, left + i)] = scale;
    }
  }

  MxFormat format_;
  DataType x_;
  MxAxis along_;
  MxAxis down_;
};

Result<std::unique_ptr<Kernel>> MakeTiles(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const MxFormat format, FormatOf(op));
  return std::unique_ptr<Kernel>(std::make_unique<TileKernel>(op, format));
}

// ---- GroupedDynamicMxQuant ----

Result<GroupRows> GroupsOf(const OpContext& op) {
  if (op.attr_int("blocksize") != kMxBlock) {
    return Error(Code::kUnsupported, "{}: blocksize is {}, expected 32", op.Who(),
                 op.attr_int("blocksize"));
  }
  return GroupRows::Of(op, "group_index", false, op.in("x").shape[0]);
}

Status InferGrouped(OpContext& op) {
  NPUMESH_RETURN_IF_ERROR(ExpectFloats(op, 2, 2));
  NPUMESH_ASSIGN_OR_RETURN(const MxFormat format, FormatOf(op));
  NPUMESH_ASSIGN_OR_RETURN(const GroupRows groups, GroupsOf(op));
  const Shape& x = op.in("x").shape;
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, format.dtype, x));
  return SetOutput(op, 1, DataType::kFloat8E8M0,
                   {x[0] / (2 * kMxBlock) + groups.groups(), x[1], 2});
}

// The pairs of group g begin at begin / 64 + g; rows behind the last group are zeros.
class GroupedMxKernel final : public Kernel {
 public:
  GroupedMxKernel(const OpContext& op, const MxFormat& format, GroupRows groups)
      : format_(format),
        groups_(std::move(groups)),
        x_(op.in("x").dtype),
        width_(op.in("x").shape[1]),
        row_bits_(width_ * BitsOf(op.out(0).dtype)),
        y_bytes_(op.out(0).bytes()),
        scale_bytes_(op.out(1).bytes()) {}

  uint64_t scratch_bytes() const override {
    return static_cast<uint64_t>(kMxBlock * width_) * sizeof(float);
  }

  Status Run(const KernelArgs& args) override {
    std::memset(args.out[0], 0, y_bytes_);
    std::memset(args.out[1], 0, scale_bytes_);
    return groups_.ForEach(args, [&](int64_t group, int64_t begin, int64_t end) {
      RunGroup(args, group, begin, end);
      return Status();
    });
  }

 private:
  void RunGroup(const KernelArgs& args, int64_t group, int64_t begin, int64_t end) const {
    auto* room = static_cast<float*>(args.scratch);
    const MxAxis axis = {1, end - begin, width_, kMxBlock};
    const int64_t pair = begin / (2 * kMxBlock) + group;
    auto* y = static_cast<std::byte*>(args.out[0]) + begin * row_bits_ / 8;
    auto* scales = static_cast<uint8_t*>(args.out[1]) + pair * width_ * 2;
    for (int64_t b = 0; b < axis.blocks(); ++b) {
      const int64_t first = begin + b * kMxBlock, rows = std::min(kMxBlock, end - first);
      LoadNumbers(x_, args.in[0], first * width_, rows * width_, room);
      QuantiseMxBlock(format_, axis, 0, b, room, y, scales);
    }
  }

  MxFormat format_;
  GroupRows groups_;
  DataType x_;
  int64_t width_;
  int64_t row_bits_;
  uint64_t y_bytes_;
  uint64_t scale_bytes_;
};

Result<std::unique_ptr<Kernel>> MakeGrouped(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const MxFormat format, FormatOf(op));
  NPUMESH_ASSIGN_OR_RETURN(GroupRows groups, GroupsOf(op));
  return std::unique_ptr<Kernel>(std::make_unique<GroupedMxKernel>(op, format, std::move(groups)));
}

// ---- AntiMxQuant ----

Result<int> AntiAxis(const OpContext& op) {
  const TensorType &x = op.in("x"), &scale = op.in("mxscale");
  NPUMESH_ASSIGN_OR_RETURN(const int axis, AxisOf(op, op.attr_int("axis"), x.shape.rank(), "axis"));
  const bool typed =
      IsSmallFloat(x.dtype) && x.dtype != DataType::kFloat8E8M0 && x.dtype != DataType::kHifloat8;
  const Shape wanted = MxScaleShape(x.shape, axis, kMxBlock);
  if (typed && scale == TensorType{DataType::kFloat8E8M0, wanted}) return axis;
  return Error(Code::kInvalidArgument,
               "{}: \"x\" is {} and \"mxscale\" {}, expected an 8-bit or 4-bit float and "
               "float8_e8m0{}",
               op.Who(), x.ToString(), scale.ToString(), wanted.ToString());
}

Status InferAnti(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const DataType dtype, op.attr_dtype("dst_type"));
  NPUMESH_RETURN_IF_ERROR(AntiAxis(op).status());
  NPUMESH_RETURN_IF_ERROR(CheckMxPacking(op, op.in("x").dtype, op.in("x").shape));
  if (IsRowType(dtype)) return SetOutput(op, 0, dtype, op.in("x").shape);
  return Error(Code::kUnsupported, "{}: dst_type is {}, expected float16, bfloat16 or float32",
               op.Who(), Name(dtype));
}

Result<std::unique_ptr<Kernel>> MakeAnti(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const int along, AntiAxis(op));
  const MxAxis axis = MxAxisOf(op.in("x").shape, along, kMxBlock);
  const DataType from = op.in("x").dtype, to = op.out(0).dtype;
  return MakeKernel([=](const KernelArgs& args) {
    constexpr int64_t kChunk = 512;
    float row[kChunk];
    const auto* scales = static_cast<const uint8_t*>(args.in[1]);
    for (int64_t line = 0; line < axis.outer * axis.length; ++line) {
      const int64_t o = line / axis.length, b = line % axis.length / axis.block;
      for (int64_t i = 0; i < axis.inner; i += kChunk) {
        const int64_t count = std::min(kChunk, axis.inner - i);
        LoadNumbers(from, args.in[0], line * axis.inner + i, count, row);
        for (int64_t j = 0; j < count; ++j) {
          row[j] *= ToFloat(Float8E8m0{scales[axis.ScaleAt(o, b, i + j)]});
        }
        StoreRow(to, row, args.out[0], line * axis.inner + i, count);
      }
    }
    return Status();
  });
}

}  // namespace

void RegisterMxQuantOps(OpRegistry& registry) {
  const AttrSpec round = {"round_mode", AttrValue::String("rint")};
  const AttrSpec dst = {"dst_type", AttrValue::Int(40)};
  const AttrSpec block = {"blocksize", AttrValue::Int(32)};
  const AttrSpec algorithm = {"scale_alg", AttrValue::Int(0)};
  const AttrSpec largest = {"dst_type_max", AttrValue::Float(0.0f)};
  const AttrSpec axis = {"axis", AttrValue::Int(-1)};
  registry.Add({.schema = {"DynamicMxQuant",
                           {{"x"}},
                           {{"y"}, {"mxscale"}},
                           {axis,
                            round,
                            dst,
                            block,
                            algorithm,
                            largest,
                            {"max_low_bound", AttrValue::Float(0.0f)}}},
                .infer = InferMx,
                .make_kernel = MakeMx});
  registry.Add({.schema = {"DynamicMxQuantWithDualAxis",
                           {{"x"}},
                           {{"y1"}, {"mxscale1"}, {"y2"}, {"mxscale2"}},
                           {round, dst, algorithm, largest}},
                .infer = InferMx,
                .make_kernel = MakeMx});
  registry.Add({.schema = {"DynamicBlockMxQuant",
                           {{"x"}},
                           {{"y"}, {"scale1"}, {"scale2"}},
                           {round, dst, algorithm, largest}},
                .infer = InferTiles,
                .make_kernel = MakeTiles});
  registry.Add({.schema = {"GroupedDynamicMxQuant",
                           {{"x"}, {"group_index"}},
                           {{"y"}, {"mxscale"}},
                           {round, {"dst_type", AttrValue::Int(35)}, block, algorithm, largest}},
                .infer = InferGrouped,
                .make_kernel = MakeGrouped});
  registry.Add({.schema = {"AntiMxQuant",
                           {{"x"}, {"mxscale"}},
                           {{"y"}},
                           {axis, {"dst_type", AttrValue::Int(27)}}},
                .infer = InferAnti,
                .make_kernel = MakeAnti});
}

}  // namespace npumesh
