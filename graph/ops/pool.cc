#include "graph/ops/pool.h"

#include <algorithm>
#include <array>

#include "graph/ops/image_layout.h"
#include "graph/ops/infer_checks.h"

namespace npumesh {
namespace {

using HeightAndWidth = std::array<int64_t, 2>;

int64_t CeilDiv(int64_t a, int64_t b) {
  return (a + b - 1) / b;
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

// Of an attribute of four numbers those at `height` and behind it; the others must be 1.
HeightAndWidth ImageNumbers(const OpContext& op, std::string_view attr, size_t height,
                            Check& check) {
  const std::vector<int64_t> list = op.attr_ints(attr);
  bool fits = list.size() == 4;
  for (size_t i = 0; fits && i < 4; ++i) {
    const bool of_image = i == height || i == height + 1;
    fits = of_image ? FitsImage(list[i], 1) : list[i] == 1;
  }
  check.That(fits, "\"{}\" is {}, expected four numbers, 1 and more for the image and 1 elsewhere",
             attr, Shape(list).ToString());
  return fits ? HeightAndWidth{list[height], list[height + 1]} : HeightAndWidth{1, 1};
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
  const bool fits = pads.size() == 4 && std::all_of(pads.begin(), pads.end(),
                                                    [](int64_t pad) { return FitsImage(pad, 0); });
  check.That(fits, "\"pads\" are {}, expected four numbers, none negative", Shape(pads).ToString());
  return pads;
}

// Fills in what padding SAME gives: as many windows as strides, the odd element behind.
void PadSame(PoolExtent& e) {
  const int64_t windows = CeilDiv(e.size, e.stride);
  const int64_t all = std::max<int64_t>((windows - 1) * e.stride + e.kernel - e.size, 0);
  e.before = all / 2;
  e.behind = all - e.before;
}

void PlanWindows(const OpContext& op, PoolForm form, bool channels_last, PoolPlan& plan,
                 Check& check) {
  const bool with_argmax = form == PoolForm::kArgmax;
  // MaxPoolWithArgmaxV1 is always written [1, h, w, 1], whatever the layout.
  const size_t height = channels_last || with_argmax ? 1 : 2;
  const HeightAndWidth size = {plan.height, plan.width};
  const HeightAndWidth kernel = ImageNumbers(op, "ksize", height, check);
  const HeightAndWidth stride = ImageNumbers(op, "strides", height, check);
  HeightAndWidth dilation = {1, 1};
  if (with_argmax) dilation = ImageNumbers(op, "dilation", height, check);
  const std::string padding = PaddingOf(op, form, check);
  std::vector<int64_t> pads(4, 0);
  if (padding == "CALCULATED") pads = PadsOf(op, form, check);
  if (!check.ok()) return;
  const bool ceil_mode = form != PoolForm::kShort && op.attr_bool("ceil_mode");
  for (const size_t d : {size_t{0}, size_t{1}}) {
    PoolExtent extent{size[d], kernel[d], stride[d], dilation[d], pads[2 * d], pads[2 * d + 1]};
    if (padding == "SAME") PadSame(extent);
    (d == 0 ? plan.rows : plan.columns) = check.Take(WindowsAlong(op, extent, ceil_mode));
  }
  plan.row_step = dilation[0];
  plan.column_step = dilation[1];
}

// Plans `cells` windows along height and width that cover the image.
void PlanCells(const OpContext& op, const std::vector<int64_t>& cells, PoolPlan& plan,
               Check& check) {
  check.That(cells.size() == 2 && cells[0] >= 0 && cells[1] >= 0,
             "\"output_size\" is {}, expected two numbers", Shape(cells).ToString());
  if (check.ok()) check.Keep(AskForLists(op, SumOfDims(Shape(cells)), sizeof(Window)));
  if (!check.ok()) return;
  plan.rows = AdaptiveWindows(plan.height, cells[0]);
  plan.columns = AdaptiveWindows(plan.width, cells[1]);
}

}  // namespace

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

void CheckTouched(const std::vector<Window>& windows, Check& check) {
  const bool touched = std::all_of(windows.begin(), windows.end(),
                                   [](const Window& window) { return window.begin < window.end; });
  check.That(touched, "a window lies on the padding alone; pads must be smaller than ksize");
}

void ReadDivisor(const OpContext& op, PoolPlan& plan) {
  plan.exclusive = op.attr_bool("exclusive");
  plan.divisor = op.attr_int("divisor_override");
}

PoolPlan PlanPool(const OpContext& op, PoolForm form, int slot, const Shape& x, Check& check) {
  const bool by_format = form == PoolForm::kShort || form == PoolForm::kLong;
  const bool adaptive = form == PoolForm::kAdaptive || form == PoolForm::kAdaptiveGrad;
  const std::string fallback = by_format ? op.attr_string("data_format") : "NCHW";
  const bool last = check.Take(ChannelsLast(op, slot, fallback));
  check.That(x.rank() == 4 || (x.rank() == 3 && adaptive), "x is {}, expected four dimensions",
             x.ToString());
  PoolPlan plan;
  if (!check.ok()) return plan;
  const int height = x.rank() - (last ? 3 : 2);
  plan.outer = ElementsBetween(x, 0, height);
  plan.height = x[height];
  plan.width = x[height + 1];
  plan.inner = last ? x[x.rank() - 1] : 1;
  const Shape& given = op.in(slot).shape;
  if (form == PoolForm::kAdaptive) {
    PlanCells(op, op.attr_ints("output_size"), plan, check);
  } else if (form == PoolForm::kAdaptiveGrad) {
    PlanCells(op, {given[height], given[height + 1]}, plan, check);
  } else if (form == PoolForm::kGlobal ||
             (form == PoolForm::kLong && op.attr_bool("global_pooling"))) {
    PlanCells(op, {1, 1}, plan, check);
  } else {
    PlanWindows(op, form, last, plan, check);
  }
  plan.y = x;
  plan.y[height] = static_cast<int64_t>(plan.rows.size());
  plan.y[height + 1] = static_cast<int64_t>(plan.columns.size());
  return plan;
}

}  // namespace npumesh
