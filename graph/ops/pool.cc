#include "graph/ops/pool.h"

#include <algorithm>

#include "graph/ops/image_layout.h"
#include "graph/ops/infer_checks.h"

namespace npumesh {
namespace {

// The operator whose windows these are.
std::string_view ForwardType(const OpContext& op) {
  const std::string_view type = op.schema().type;
  if (type == "AvgPoolV2Grad") return "AvgPoolV2";
  if (type == "AdaptiveAvgPool2dGrad") return "AdaptiveAvgPool2d";
  if (type == "MaxPoolGradWithArgmaxV1") return "MaxPoolWithArgmaxV1";
  return type;
}

enum class Padding { kValid, kSame, kGiven };

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

Result<Padding> PaddingOf(const OpContext& op) {
  const std::string_view type = ForwardType(op);
  if (type == "MaxPoolWithArgmaxV1") return Padding::kGiven;
  const bool short_form = type == "MaxPool" || type == "AvgPool";
  const std::string mode = op.attr_string(short_form ? "padding" : "padding_mode");
  if (mode == "VALID") return Padding::kValid;
  if (mode == "SAME") return Padding::kSame;
  if (mode == "CALCULATED" && !short_form) return Padding::kGiven;
  return Error(Code::kInvalidArgument, "{}: padding \"{}\" is not known", op.Who(), mode);
}

// Attributes of four numbers, of which those at `height` and `width` belong to the image.
struct FourNumbers {
  std::vector<int64_t> kernel, stride, dilation;
  size_t height = 0;
  size_t width = 0;
};

Result<FourNumbers> NumbersOf(const OpContext& op, bool channels_last) {
  const bool with_argmax = ForwardType(op) == "MaxPoolWithArgmaxV1";
  FourNumbers numbers;
  numbers.kernel = op.attr_ints("ksize");
  numbers.stride = op.attr_ints("strides");
  numbers.dilation = with_argmax ? op.attr_ints("dilation") : std::vector<int64_t>(4, 1);
  // MaxPoolWithArgmaxV1 is always written [1, h, w, 1], whatever the layout.
  numbers.height = channels_last || with_argmax ? 1 : 2;
  numbers.width = numbers.height + 1;
  for (const std::vector<int64_t>* list : {&numbers.kernel, &numbers.stride, &numbers.dilation}) {
    bool fits = list->size() == 4;
    for (size_t i = 0; fits && i < 4; ++i) {
      const bool of_image = i == numbers.height || i == numbers.width;
      fits = of_image ? (*list)[i] >= 1 && (*list)[i] < (INT64_C(1) << 31) : (*list)[i] == 1;
    }
    if (!fits) {
      return Error(Code::kInvalidArgument,
                   "{}: ksize, strides or dilation {} must be four numbers, 1 and more for the "
                   "image and 1 elsewhere",
                   op.Who(), Shape(*list).ToString());
    }
  }
  return numbers;
}

// [top, bottom, left, right]; of MaxPoolWithArgmaxV1 [1, vertical, horizontal, 1].
Result<std::vector<int64_t>> PadsOf(const OpContext& op) {
  std::vector<int64_t> pads = op.attr_ints("pads");
  if (pads.size() == 4 && ForwardType(op) == "MaxPoolWithArgmaxV1") {
    pads = {pads[1], pads[1], pads[2], pads[2]};
  }
  const bool fits = pads.size() == 4 && std::all_of(pads.begin(), pads.end(), [](int64_t pad) {
                      return pad >= 0 && pad < (INT64_C(1) << 31);
                    });
  if (fits) return pads;
  return Error(Code::kInvalidArgument, "{}: \"pads\" are {}, expected four numbers, none negative",
               op.Who(), Shape(pads).ToString());
}

// Fills in what padding SAME gives: as many windows as strides, the odd element behind.
void PadSame(PoolExtent& e) {
  const int64_t windows = CeilDiv(e.size, e.stride);
  const int64_t all = std::max<int64_t>((windows - 1) * e.stride + e.kernel - e.size, 0);
  e.before = all / 2;
  e.behind = all - e.before;
}

Status PlanWindows(const OpContext& op, bool channels_last, PoolPlan& plan) {
  NPUMESH_ASSIGN_OR_RETURN(const FourNumbers numbers, NumbersOf(op, channels_last));
  NPUMESH_ASSIGN_OR_RETURN(const Padding padding, PaddingOf(op));
  std::vector<int64_t> pads(4, 0);
  if (padding == Padding::kGiven) {
    NPUMESH_ASSIGN_OR_RETURN(pads, PadsOf(op));
  }
  const std::string_view type = ForwardType(op);
  const bool ceil_mode = type != "MaxPool" && type != "AvgPool" && op.attr_bool("ceil_mode");
  PoolExtent rows{plan.height,
                  numbers.kernel[numbers.height],
                  numbers.stride[numbers.height],
                  numbers.dilation[numbers.height],
                  pads[0],
                  pads[1]};
  PoolExtent columns{plan.width,
                     numbers.kernel[numbers.width],
                     numbers.stride[numbers.width],
                     numbers.dilation[numbers.width],
                     pads[2],
                     pads[3]};
  if (padding == Padding::kSame) {
    PadSame(rows);
    PadSame(columns);
  }
  NPUMESH_ASSIGN_OR_RETURN(plan.rows, WindowsAlong(op, rows, ceil_mode));
  NPUMESH_ASSIGN_OR_RETURN(plan.columns, WindowsAlong(op, columns, ceil_mode));
  plan.row_step = rows.dilation;
  plan.column_step = columns.dilation;
  return Status();
}

// Cells of AdaptiveAvgPool2d along height and width: of the gradient those of the tensor in slot 0,
// whose height is dimension `height`.
Result<std::vector<int64_t>> CellsOf(const OpContext& op, int height) {
  if (op.schema().type == "AdaptiveAvgPool2dGrad") {
    const Shape& grad = op.in(0).shape;
    return std::vector<int64_t>{grad[height], grad[height + 1]};
  }
  std::vector<int64_t> cells = op.attr_ints("output_size");
  if (cells.size() == 2 && cells[0] >= 0 && cells[1] >= 0) return cells;
  return Error(Code::kInvalidArgument, "{}: \"output_size\" is {}, expected two numbers", op.Who(),
               Shape(cells).ToString());
}

bool PoolsGlobally(const OpContext& op) {
  const std::string_view type = ForwardType(op);
  if (type == "GlobalAveragePool") return true;
  return (type == "MaxPoolV3" || type == "AvgPoolV2") && op.attr_bool("global_pooling");
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

Status CheckTouched(const OpContext& op, const std::vector<Window>& windows) {
  for (const Window& window : windows) {
    if (window.begin >= window.end) {
      return Error(Code::kInvalidArgument,
                   "{}: a window lies on the padding alone; pads must be smaller than ksize",
                   op.Who());
    }
  }
  return Status();
}

AverageRule AverageRuleOf(const OpContext& op) {
  if (ForwardType(op) != "AvgPoolV2") return {};
  return {op.attr_bool("exclusive"), op.attr_int("divisor_override")};
}

Result<PoolPlan> PlanPool(const OpContext& op, const Shape& x, int slot) {
  const std::string_view type = ForwardType(op);
  const bool by_format =
      type == "MaxPool" || type == "AvgPool" || type == "MaxPoolV3" || type == "AvgPoolV2";
  const std::string fallback = by_format ? op.attr_string("data_format") : "NCHW";
  NPUMESH_ASSIGN_OR_RETURN(const bool last, ChannelsLast(op, slot, fallback));
  const bool no_batch = x.rank() == 3 && type == "AdaptiveAvgPool2d";
  if (x.rank() != 4 && !no_batch) {
    return Error(Code::kInvalidArgument, "{}: x is {}, expected four dimensions", op.Who(),
                 x.ToString());
  }
  const int height = x.rank() - (last ? 3 : 2);
  PoolPlan plan;
  plan.outer = ElementsBetween(x, 0, height);
  plan.height = x[height];
  plan.width = x[height + 1];
  plan.inner = last ? x[x.rank() - 1] : 1;
  if (type == "AdaptiveAvgPool2d") {
    NPUMESH_ASSIGN_OR_RETURN(const std::vector<int64_t> cells, CellsOf(op, height));
    NPUMESH_RETURN_IF_ERROR(AskForLists(op, SumOfDims(Shape(cells)), sizeof(Window)));
    plan.rows = AdaptiveWindows(plan.height, cells[0]);
    plan.columns = AdaptiveWindows(plan.width, cells[1]);
  } else if (PoolsGlobally(op)) {
    plan.rows = AdaptiveWindows(plan.height, 1);
    plan.columns = AdaptiveWindows(plan.width, 1);
  } else {
    NPUMESH_RETURN_IF_ERROR(PlanWindows(op, last, plan));
  }
  plan.y = x;
  plan.y[height] = static_cast<int64_t>(plan.rows.size());
  plan.y[height + 1] = static_cast<int64_t>(plan.columns.size());
  return plan;
}

}  // namespace npumesh
