#include "graph/ops/image/pool.h"

#include <algorithm>
#include <array>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/toolbox/rows/image_layout.h"
#include "graph/ops/toolbox/values/ceil_div.h"
#include "runtime/base/float16.h"

namespace npumesh {
namespace {

// Numbers of depth, height and width.
using Numbers = std::array<int64_t, 3>;

// What an operator says of one dimension of the image.
struct PoolExtent {
  int64_t size = 0, kernel = 1, stride = 1, dilation = 1;
  int64_t before = 0, behind = 0;  // padding
};

// All are in [least, 2^31): what sizes, strides and pads may be.
bool FitImage(const std::vector<int64_t>& numbers, int64_t least) {
  return std::all_of(numbers.begin(), numbers.end(),
                     [=](int64_t n) { return n >= least && n < (INT64_C(1) << 31); });
}

int64_t WindowCount(const PoolExtent& e, bool ceil_mode) {
  const int64_t reach = e.dilation * (e.kernel - 1) + 1;
  const int64_t room = e.size + e.before + e.behind - reach;
  if (room < 0) return 0;
  int64_t count = (ceil_mode ? CeilDiv(room, e.stride) : room / e.stride) + 1;
  if (ceil_mode && (count - 1) * e.stride >= e.size + e.before) --count;
  return count;
}

// Cell i of `cells` averages [floor(i n / cells), ceil((i + 1) n / cells)).
std::vector<Window> AdaptiveWindows(int64_t size, int64_t cells) {
  std::vector<Window> windows;
  for (int64_t i = 0; i < cells; ++i) {
    const int64_t begin = i * size / cells, end = CeilDiv((i + 1) * size, cells);
    windows.push_back({begin, end, end - begin});
  }
  return windows;
}

// Three numbers, or one for all of depth, height and width.
Numbers VolumeNumbers(const OpContext& op, std::string_view attr, int64_t least, Check& check) {
  std::vector<int64_t> list = op.attr_ints(attr);
  const std::string seen = Shape(list).ToString();
  if (list.size() == 1) list.resize(3, list[0]);
  const bool fits = list.size() == 3 && FitImage(list, least);
  check.That(fits, "\"{}\" is {}, expected three numbers, {} or more", attr, seen, least);
  return fits ? Numbers{list[0], list[1], list[2]} : Numbers{};
}

// Of an attribute of four numbers those at `height` and after it; the others must be 1.
Numbers ImageNumbers(const OpContext& op, std::string_view attr, size_t height, Check& check) {
  const std::vector<int64_t> list = op.attr_ints(attr);
  const size_t channels = height == 1 ? 3 : 1;
  const bool fits = list.size() == 4 && FitImage(list, 1) && list[0] == 1 && list[channels] == 1;
  check.That(fits, "\"{}\" is {}, expected four numbers, 1 and more for the image and 1 elsewhere",
             attr, Shape(list));
  return fits ? Numbers{1, list[height], list[height + 1]} : Numbers{};
}

// "VALID", "SAME", or "CALCULATED": as "pads" says.
std::string PaddingOf(const OpContext& op, PoolForm form, Check& check) {
  if (form == PoolForm::kArgmax) return "CALCULATED";
  if (form == PoolForm::kShort) {
    check.OneOf("padding", {"VALID", "SAME"});
    return op.attr_string("padding");
  }
  check.OneOf("padding_mode", {"VALID", "SAME", "CALCULATED"});
  return op.attr_string("padding_mode");
}

// [top, bottom, left, right]; of MaxPoolWithArgmaxV1 [1, vertical, horizontal, 1].
std::vector<int64_t> PadsOf(const OpContext& op, PoolForm form, Check& check) {
  std::vector<int64_t> pads = op.attr_ints("pads");
  if (pads.size() == 4 && form == PoolForm::kArgmax) {
    pads = {pads[1], pads[1], pads[2], pads[2]};
  }
  check.That(pads.size() == 4 && FitImage(pads, 0),
             "\"pads\" are {}, expected four numbers, none negative", Shape(pads));
  return pads;
}

// Fills in what padding SAME gives, the odd element at the end.
void PadSame(PoolExtent& e) {
  const int64_t all = SamePadding(e.size, e.stride, e.kernel);
  e.before = all / 2;
  e.behind = all - e.before;
}

// The windows along one dimension. A last window that starts on the padding at the end does not
// count.
Result<std::vector<Window>> WindowsAlong(const OpContext& op, const PoolExtent& e, bool ceil_mode) {
  std::vector<Window> windows;
  const int64_t count = WindowCount(e, ceil_mode);
  NPUMESH_RETURN_IF_ERROR(AskForLists(op, count, sizeof(Window)));
  const int64_t reach = e.dilation * (e.kernel - 1) + 1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t start = i * e.stride - e.before;
    const int64_t stop = std::min(start + reach, e.size + e.behind);
    Window window;
    window.begin = start >= 0 ? start : start + CeilDiv(-start, e.dilation) * e.dilation;
    window.end = std::min(start + reach, e.size);
    window.span = CeilDiv(std::max<int64_t>(stop - start, 0), e.dilation);
    windows.push_back(window);
  }
  return windows;
}

double RoundToFloat(double x) {
  return static_cast<float>(x);
}

// float32 has more than twice the bits of float16, so rounding to it first changes no sum.
double RoundToHalf(double x) {
  return static_cast<float>(Float16(static_cast<float>(x)));
}

void PlanVolume(const OpContext& op, PoolPlan& plan, Check& check) {
  const Numbers kernel = VolumeNumbers(op, "ksize", 1, check);
  const Numbers strides = VolumeNumbers(op, "strides", 1, check);
  const Numbers pads = VolumeNumbers(op, "pads", 0, check);
  plan.step = VolumeNumbers(op, "dilation", 1, check);
  for (size_t d = 0; check.ok() && d < 3; ++d) {
    const PoolExtent extent{plan.size[d], kernel[d], strides[d], plan.step[d], pads[d], pads[d]};
    plan.windows[d] = check.Take(WindowsAlong(op, extent, op.attr_bool("ceil_mode")));
  }
}

void PlanImage(const OpContext& op, PoolForm form, bool channels_last, PoolPlan& plan,
               Check& check) {
  const bool with_argmax = form == PoolForm::kArgmax;
  // MaxPoolWithArgmaxV1 is always written [1, h, w, 1], whatever the layout.
  const size_t height = channels_last || with_argmax ? 1 : 2;
  const Numbers kernel = ImageNumbers(op, "ksize", height, check);
  const Numbers strides = ImageNumbers(op, "strides", height, check);
  if (with_argmax) plan.step = ImageNumbers(op, "dilation", height, check);
  const std::string padding = PaddingOf(op, form, check);
  std::vector<int64_t> pads(4, 0);
  if (padding == "CALCULATED") pads = PadsOf(op, form, check);
  const bool ceil_mode = form != PoolForm::kShort && op.attr_bool("ceil_mode");
  for (size_t d = 1; check.ok() && d < 3; ++d) {
    PoolExtent extent{plan.size[d], kernel[d],       strides[d],
                      plan.step[d], pads[2 * d - 2], pads[2 * d - 1]};
    if (padding == "SAME") PadSame(extent);
    plan.windows[d] = check.Take(WindowsAlong(op, extent, ceil_mode));
  }
}

// Plans `cells` windows along height and width that cover the image.
void PlanCells(const OpContext& op, const std::vector<int64_t>& cells, PoolPlan& plan,
               Check& check) {
  check.That(cells.size() == 2 && cells[0] >= 0 && cells[1] >= 0,
             "\"output_size\" is {}, expected two numbers", Shape(cells));
  if (check.ok()) check.Keep(AskForLists(op, SumOfDims(Shape(cells)), sizeof(Window)));
  for (size_t d = 1; check.ok() && d < 3; ++d) {
    plan.windows[d] = AdaptiveWindows(plan.size[d], cells[d - 1]);
  }
}

}  // namespace

void CheckTouched(const PoolPlan& plan, Check& check) {
  for (const std::vector<Window>& windows : plan.windows) {
    const bool touched = std::all_of(windows.begin(), windows.end(), [](const Window& window) {
      return window.begin < window.end;
    });
    check.That(touched, "a window lies on the padding alone; pads must be smaller than ksize");
  }
}

void ChooseSums(const OpContext& op, DataType dtype, PoolPlan& plan) {
  const std::string mode = op.node().StringAttr(kImplMode, "");
  if (mode.empty() || !kFloats.Contains(dtype)) return;
  const std::string why = fmt::format("op_select_implmode={}", mode);
  const bool precise = mode != "high_performance";
  plan.choice.Decide("sums in double", precise ? "" : why);
  if (precise) return;
  const bool half = dtype == DataType::kFloat16;
  plan.choice.Decide(half ? "sums in float16" : "sums in float32", "");
  plan.round = half ? RoundToHalf : RoundToFloat;
}

void ReadDivisor(const OpContext& op, PoolPlan& plan) {
  plan.exclusive = op.attr_bool("exclusive");
  plan.divisor = op.attr_int("divisor_override");
}

PoolPlan PlanPool(const OpContext& op, PoolForm form, int slot, const Shape& x, Check& check) {
  const bool volume = form == PoolForm::kVolume;
  const bool by_format = form == PoolForm::kShort || form == PoolForm::kLong || volume;
  const bool adaptive = form == PoolForm::kAdaptive || form == PoolForm::kAdaptiveGrad;
  const std::string fallback = by_format ? op.attr_string("data_format") : "NCHW";
  const bool last = check.Take(ChannelsLast(op, slot, fallback));
  check.That(x.rank() == (volume ? 5 : 4) || (x.rank() == 3 && adaptive),
             "x is {}, expected {} dimensions", x, volume ? "five" : "four");
  PoolPlan plan;
  if (!check.ok()) return plan;
  const int height = x.rank() - (last ? 3 : 2);
  const int first = volume ? height - 1 : height;
  plan.outer = ElementsBetween(x, 0, first);
  plan.inner = last ? x.dims().back() : 1;
  plan.size = {volume ? x[first] : 1, x[height], x[height + 1]};
  const Shape& given = op.in(slot).shape;
  if (volume) {
    PlanVolume(op, plan, check);
  } else if (form == PoolForm::kAdaptive) {
    PlanCells(op, op.attr_ints("output_size"), plan, check);
  } else if (form == PoolForm::kAdaptiveGrad) {
    PlanCells(op, {given[height], given[height + 1]}, plan, check);
  } else if (form == PoolForm::kGlobal ||
             (form == PoolForm::kLong && op.attr_bool("global_pooling"))) {
    PlanCells(op, {1, 1}, plan, check);
  } else {
    PlanImage(op, form, last, plan, check);
  }
  plan.y = x;
  for (int dim = first; dim < height + 2; ++dim) {
    plan.y[dim] = static_cast<int64_t>(plan.windows[static_cast<size_t>(dim - height + 1)].size());
  }
  return plan;
}

}  // namespace npumesh
