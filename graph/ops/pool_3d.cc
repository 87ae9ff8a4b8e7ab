// MaxPool3DWithArgmaxV2: the maximum of boxes of [N, C, D, H, W] and where it lies. Ops reference
// 5.19. A NaN in a box is its maximum.
#include <algorithm>

#include "graph/ops/image_layout.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/pool.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

// A volume as [outer, depth, height, width, inner]: inner are the channels when they come last.
struct VolumePlan {
  int64_t outer = 1;
  int64_t inner = 1;
  std::vector<PoolExtent> extents;           // depth, height, width
  std::vector<std::vector<Window>> windows;  // of each
  Shape y;
};

// Three numbers, or one for all of depth, height and width.
Result<std::vector<int64_t>> NumbersOf(const OpContext& op, std::string_view attr, int64_t least) {
  std::vector<int64_t> numbers = op.attr_ints(attr);
  if (numbers.size() == 1) numbers.resize(3, numbers[0]);
  const bool fits =
      numbers.size() == 3 && std::all_of(numbers.begin(), numbers.end(), [least](int64_t number) {
        return number >= least && number < (INT64_C(1) << 31);
      });
  if (fits) return numbers;
  return Error(Code::kInvalidArgument, "{}: \"{}\" is {}, expected three numbers, {} or more",
               op.Who(), attr, Shape(op.attr_ints(attr)).ToString(), least);
}

Result<VolumePlan> PlanVolume(const OpContext& op) {
  const Shape& x = op.in("x").shape;
  NPUMESH_RETURN_IF_ERROR(ExpectReal(op, "x"));
  NPUMESH_ASSIGN_OR_RETURN(const bool last, ChannelsLast(op, 0, op.attr_string("data_format")));
  if (x.rank() != 5) {
    return Error(Code::kInvalidArgument, "{}: x is {}, expected five dimensions", op.Who(),
                 x.ToString());
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> kernel, NumbersOf(op, "ksize", 1));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, NumbersOf(op, "strides", 1));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, NumbersOf(op, "pads", 0));
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> dilation, NumbersOf(op, "dilation", 1));
  const int first = last ? 1 : 2;
  VolumePlan plan;
  plan.outer = ElementsBetween(x, 0, first);
  plan.inner = last ? x[4] : 1;
  plan.y = x;
  for (size_t i = 0; i < 3; ++i) {
    const int dim = first + static_cast<int>(i);
    plan.extents.push_back({x[dim], kernel[i], strides[i], dilation[i], pads[i], pads[i]});
    NPUMESH_ASSIGN_OR_RETURN(plan.windows.emplace_back(),
                             WindowsAlong(op, plan.extents[i], op.attr_bool("ceil_mode")));
    NPUMESH_RETURN_IF_ERROR(CheckTouched(op, plan.windows[i]));
    plan.y[dim] = static_cast<int64_t>(plan.windows[i].size());
  }
  return plan;
}

// Maximum and its place in depth * height * width.
struct Peak {
  double value = 0;
  int64_t place = -1;
};

Peak PeakOf(const VolumePlan& plan, const std::vector<double>& x, int64_t outer, int64_t inner,
            const Window& depth, const Window& rows, const Window& columns) {
  const std::vector<PoolExtent>& e = plan.extents;
  const int64_t volume = e[0].size * e[1].size * e[2].size;
  Peak peak;
  for (int64_t d = depth.begin; d < depth.end; d += e[0].dilation) {
    for (int64_t r = rows.begin; r < rows.end; r += e[1].dilation) {
      for (int64_t c = columns.begin; c < columns.end; c += e[2].dilation) {
        const int64_t place = (d * e[1].size + r) * e[2].size + c;
        const double value = x[static_cast<size_t>((outer * volume + place) * plan.inner + inner)];
        const bool first_nan = value != value && peak.value == peak.value;
        if (peak.place < 0 || value > peak.value || first_nan) peak = {value, place};
      }
    }
  }
  return peak;
}

Status InferVolume(OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(const VolumePlan plan, PlanVolume(op));
  NPUMESH_ASSIGN_OR_RETURN(const DataType index, op.attr_dtype("dtype"));
  if (index != DataType::kInt32 && index != DataType::kInt64) {
    return Error(Code::kUnsupported, "{}: attribute \"dtype\" asks for {}, expected int32 or int64",
                 op.Who(), Name(index));
  }
  NPUMESH_RETURN_IF_ERROR(SetOutput(op, 0, op.in("x").dtype, plan.y));
  return SetOutput(op, 1, index, plan.y);
}

Result<std::unique_ptr<Kernel>> MakeVolume(const OpContext& op) {
  NPUMESH_ASSIGN_OR_RETURN(VolumePlan plan, PlanVolume(op));
  return MakeRealKernel(op, [plan = std::move(plan)](RealTensors& t) {
    size_t next = 0;
    for (int64_t outer = 0; outer < plan.outer; ++outer) {
      for (const Window& depth : plan.windows[0]) {
        for (const Window& rows : plan.windows[1]) {
          for (const Window& columns : plan.windows[2]) {
            for (int64_t inner = 0; inner < plan.inner; ++inner) {
              const Peak peak = PeakOf(plan, t.in[0], outer, inner, depth, rows, columns);
              t.out[0][next] = peak.value;
              t.out[1][next++] = static_cast<double>(peak.place);
            }
          }
        }
      }
    }
    return Status();
  });
}

}  // namespace

void RegisterVolumePoolOps(OpRegistry& registry) {
  registry.Add({.schema = {"MaxPool3DWithArgmaxV2",
                           {{"x"}},
                           {{"y"}, {"argmax"}},
                           {{"ksize", Required::kInts},
                            {"strides", Required::kInts},
                            {"pads", Required::kInts},
                            {"dilation", AttrValue::Ints({1, 1, 1})},
                            {"ceil_mode", AttrValue::Bool(false)},
                            {"data_format", AttrValue::String("NCDHW")},
                            {"dtype", AttrValue::Int(3)}}},
                .infer = InferVolume,
                .make_kernel = MakeVolume});
}

}  // namespace npumesh
