// MaxPool3DWithArgmaxV2: the maximum of boxes of [N, C, D, H, W] and where it lies. A NaN in a box
// is its maximum.
#include <algorithm>
#include <array>

#include "graph/ops/image_layout.h"
#include "graph/ops/infer_checks.h"
#include "graph/ops/pool.h"
#include "graph/ops/real_kernel.h"
#include "graph/ops/train_families.h"

namespace npumesh {
namespace {

// A volume as [outer, depth, height, width, inner]: inner are the channels when they come last.
struct VolumePlan : Planned {
  int64_t outer = 1;
  int64_t inner = 1;
  std::array<PoolExtent, 3> extents;           // depth, height, width
  std::array<std::vector<Window>, 3> windows;  // of each
};

// Three numbers, or one for all of depth, height and width.
std::vector<int64_t> NumbersOf(const OpContext& op, std::string_view attr, int64_t least,
                               Check& check) {
  std::vector<int64_t> numbers = op.attr_ints(attr);
  const std::string seen = Shape(numbers).ToString();
  if (numbers.size() == 1) numbers.resize(3, numbers[0]);
  const bool fits = numbers.size() == 3 &&
                    std::all_of(numbers.begin(), numbers.end(),
                                [least](int64_t number) { return FitsImage(number, least); });
  check.That(fits, "\"{}\" is {}, expected three numbers, {} or more", attr, seen, least);
  return numbers;
}

Result<VolumePlan> PlanVolume(const OpContext& op) {
  Check check(op);
  const TensorType& x = op.in("x");
  check.Keep(ExpectReal(op, "x"));
  const bool last = check.Take(ChannelsLast(op, 0, op.attr_string("data_format")));
  check.That(x.shape.rank() == 5, "x is {}, expected five dimensions", x.ToString());
  const std::vector<int64_t> kernel = NumbersOf(op, "ksize", 1, check);
  const std::vector<int64_t> strides = NumbersOf(op, "strides", 1, check);
  const std::vector<int64_t> pads = NumbersOf(op, "pads", 0, check);
  const std::vector<int64_t> dilation = NumbersOf(op, "dilation", 1, check);
  const DataType index = check.Take(op.attr_dtype("dtype"));
  if (check.ok() && !kIndices.Contains(index)) {
    return Error(Code::kUnsupported, "{}: attribute \"dtype\" asks for {}, expected {}", op.Who(),
                 Name(index), kIndices.ToString());
  }
  if (!check.ok()) return check.status();
  const int first = last ? 1 : 2;
  VolumePlan plan;
  plan.outer = ElementsBetween(x.shape, 0, first);
  plan.inner = last ? x.shape[4] : 1;
  Shape y = x.shape;
  for (size_t i = 0; i < 3; ++i) {
    const int dim = first + static_cast<int>(i);
    plan.extents[i] = {x.shape[dim], kernel[i], strides[i], dilation[i], pads[i], pads[i]};
    plan.windows[i] = check.Take(WindowsAlong(op, plan.extents[i], op.attr_bool("ceil_mode")));
    CheckTouched(plan.windows[i], check);
    y[dim] = static_cast<int64_t>(plan.windows[i].size());
  }
  plan.outputs = {{x.dtype, y}, {index, y}};
  return check.Done(std::move(plan));
}

// Maximum and its place in depth * height * width.
struct Peak {
  double value = 0;
  int64_t place = -1;
};

Peak PeakOf(const VolumePlan& plan, const std::vector<double>& x, int64_t outer, int64_t inner,
            const Window& depth, const Window& rows, const Window& columns) {
  const std::array<PoolExtent, 3>& e = plan.extents;
  const int64_t volume = e[0].size * e[1].size * e[2].size;
  Peak peak;
  for (int64_t d = depth.begin; d < depth.end; d += e[0].dilation) {
    for (int64_t r = rows.begin; r < rows.end; r += e[1].dilation) {
      for (int64_t c = columns.begin; c < columns.end; c += e[2].dilation) {
        const int64_t place = (d * e[1].size + r) * e[2].size + c;
        const double value = x[static_cast<size_t>((outer * volume + place) * plan.inner + inner)];
        if (peak.place < 0 || Exceeds(value, peak.value)) peak = {value, place};
      }
    }
  }
  return peak;
}

Status RunVolume(const VolumePlan& plan, RealTensors& t) {
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
}

}  // namespace

void RegisterVolumePoolOps(OpRegistry& registry) {
  registry.Add(DefineReal<PlanVolume, RunVolume>(
      "MaxPool3DWithArgmaxV2(x; ksize:ints, strides:ints, pads:ints, dilation=[1,1,1], "
      "ceil_mode=false, data_format=\"NCDHW\", dtype=3) -> y, argmax"));
}

}  // namespace npumesh
