// Im2col, Col2im, UnfoldGrad: the windows that lie on an image as columns, and the sums of such
// columns back on the image.
//
// Window n of a dimension lies on the pixels n * stride - pad + w * dilation, w counts the window's
// positions. Im2col copies bytes and writes zeros for the padding; sums are computed in double, in
// the order of the columns, and rounded once.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"
#include "graph/ops/toolbox/rows/image_layout.h"
#include "graph/ops/toolbox/rows/plan_parts.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

// Windows along one dimension of the image.
struct PatchSide {
  int64_t size = 0;
  int64_t window = 1, stride = 1, dilation = 1;
  int64_t before = 0, after = 0;  // padding
  int64_t count = 0;              // of windows

  int64_t extent() const { return (window - 1) * dilation + 1; }
  int64_t At(int64_t n, int64_t w) const { return n * stride - before + w * dilation; }
  bool Inside(int64_t at) const { return at >= 0 && at < size; }
};

constexpr int64_t kMostSide = INT32_MAX;  // products of two of them fit

// An attribute with a number for both dimensions, or one for each.
std::array<int64_t, 2> BothSides(const OpContext& op, std::string_view name, int64_t least,
                                 Check& check) {
  const std::vector<int64_t> list = op.attr_ints(name);
  const auto fits = [&](int64_t n) { return n >= least && n <= kMostSide; };
  check.That((list.size() == 1 || list.size() == 2) && std::all_of(list.begin(), list.end(), fits),
             "attribute \"{}\" is {}, expected one or two numbers from {} on", name, Shape(list),
             least);
  if (!check.ok()) return {least, least};
  return {list.front(), list.back()};
}

// The padding of Im2col: top, bottom, left, right.
std::array<int64_t, 4> PadsOf(const OpContext& op, const std::array<PatchSide, 2>& sides,
                              Check& check) {
  enum class Mode : uint8_t { kCalculated, kSame, kValid };
  const Mode mode = check.Meaning<Mode>(
      "padding_mode",
      {{"CALCULATED", Mode::kCalculated}, {"SAME", Mode::kSame}, {"VALID", Mode::kValid}});
  if (!check.ok() || mode == Mode::kValid) return {};
  if (mode == Mode::kSame) {
    std::array<int64_t, 4> pads = {};
    for (size_t i = 0; i < 2; ++i) {
      const PatchSide& side = sides[i];
      const int64_t pad = SamePadding(side.size, side.stride, side.extent());
      pads[2 * i] = pad / 2;
      pads[2 * i + 1] = pad - pad / 2;
    }
    return pads;
  }
  const std::vector<int64_t> pads = op.attr_ints("pads");
  const auto fits = [](int64_t n) { return n >= 0 && n <= kMostSide; };
  if (pads.size() == 4 && std::all_of(pads.begin(), pads.end(), fits)) {
    return {pads[0], pads[1], pads[2], pads[3]};
  }
  const auto [rows, columns] = BothSides(op, "pads", 0, check);
  return {rows, rows, columns, columns};
}

// Counts the windows; objects unless there is one.
void CountWindows(PatchSide& side, std::string_view what, Check& check) {
  check.That(side.size >= 0 && side.size <= kMostSide, "{} pixels of {}", side.size, what);
  if (!check.ok()) return;
  const int64_t room = side.size + side.before + side.after - side.extent();
  check.That(room >= 0, "a window over {} pixels does not fit into {} {} with {} of padding",
             side.extent(), side.size, what, side.before + side.after);
  side.count = room < 0 ? 0 : room / side.stride + 1;
}

struct PatchPlan : Planned {
  bool channels_last = false;
  int64_t outer = 1;     // images, or channels of all images
  int64_t channels = 1;  // that lie together
  PatchSide rows, columns;
  size_t bytes = 0;  // of an element
  int threads = 1;
};

// ---- Im2col ----

PatchPlan PlanIm2col(const OpContext& op, Check& check) {
  const auto& [dtype, shape] = op.in(0);
  PatchPlan plan;
  plan.channels_last = check.Take(ChannelsLast(op, 0, "NCHW"));
  plan.bytes = check.Take(ElementBytes(op, dtype));
  check.That(shape.rank() == 4, "x {}: expected four dimensions", shape);
  const auto windows = BothSides(op, "ksizes", 1, check);
  const auto strides = BothSides(op, "strides", 1, check);
  const auto dilations = BothSides(op, "dilations", 1, check);
  if (!check.ok()) return {};
  const int row = plan.channels_last ? 1 : 2;
  std::array<PatchSide, 2> sides = {{{shape[row], windows[0], strides[0], dilations[0]},
                                     {shape[row + 1], windows[1], strides[1], dilations[1]}}};
  const std::array<int64_t, 4> pads = PadsOf(op, sides, check);
  for (size_t i = 0; i < 2; ++i) {
    sides[i].before = pads[2 * i];
    sides[i].after = pads[2 * i + 1];
  }
  CountWindows(sides[0], "rows", check);
  CountWindows(sides[1], "columns", check);
  if (!check.ok()) return {};
  plan.rows = sides[0];
  plan.columns = sides[1];
  plan.outer = ElementsBetween(shape, 0, row);
  plan.channels = plan.channels_last ? shape[3] : 1;
  npumesh::Shape y = shape;
  y[row] = plan.rows.count;
  y[row + 1] = plan.columns.count;
  const int channel = plan.channels_last ? 3 : 1;
  const __int128 depth = static_cast<__int128>(shape[channel]) * windows[0] * windows[1];
  check.That(depth <= INT64_MAX, "windows of {} x {} on {} channels", windows[0], windows[1],
             shape[channel]);
  y[channel] = static_cast<int64_t>(depth);
  check.Keep(y.Check().WithContext(op.Who()));
  if (!check.ok()) return {};
  plan.threads = WorthThreads(static_cast<double>(y.elements()), op.threads());
  plan.outputs = {{dtype, y}};
  return plan;
}

// One position of all windows of a row of windows: elements of the image, zeros beside it.
void CopyWindows(const PatchPlan& plan, const std::byte* row, int64_t w, std::byte* to) {
  const PatchSide& side = plan.columns;
  const size_t bytes = plan.bytes;
  for (int64_t n = 0; n < side.count; ++n, to += bytes) {
    const int64_t at = side.At(n, w);
    if (side.Inside(at)) {
      CopyElement(row + static_cast<size_t>(at) * bytes, bytes, to);
    } else {
      std::memset(to, 0, bytes);
    }
  }
}

// y[image and channel, row and column of the window, windows].
void ChannelsFirst(const PatchPlan& plan, const std::byte* x, std::byte* y, int64_t first,
                   int64_t end) {
  const PatchSide &rows = plan.rows, &columns = plan.columns;
  const size_t run = static_cast<size_t>(columns.count) * plan.bytes;
  const size_t line = static_cast<size_t>(columns.size) * plan.bytes;
  const int64_t window = rows.window * columns.window;
  for (int64_t i = first; i < end; ++i) {
    const int64_t image = i / window, place = i % window;
    std::byte* to = y + static_cast<size_t>(i * rows.count) * run;
    for (int64_t n = 0; n < rows.count; ++n, to += run) {
      const int64_t at = rows.At(n, place / columns.window);
      if (!rows.Inside(at)) {
        std::memset(to, 0, run);
        continue;
      }
      CopyWindows(plan, x + static_cast<size_t>(image * rows.size + at) * line,
                  place % columns.window, to);
    }
  }
}

// y[image, windows, row and column of the window, channel].
void LastChannels(const PatchPlan& plan, const std::byte* x, std::byte* y, int64_t first,
                  int64_t end) {
  const PatchSide &rows = plan.rows, &columns = plan.columns;
  const size_t run = static_cast<size_t>(plan.channels) * plan.bytes;
  std::byte* to =
      y + static_cast<size_t>(first * columns.count * rows.window * columns.window) * run;
  for (int64_t i = first; i < end; ++i) {
    const int64_t image = i / rows.count;
    for (int64_t n = 0; n < columns.count; ++n) {
      for (int64_t r = 0; r < rows.window; ++r) {
        for (int64_t c = 0; c < columns.window; ++c, to += run) {
          const int64_t row = rows.At(i % rows.count, r), column = columns.At(n, c);
          if (rows.Inside(row) && columns.Inside(column)) {
            const int64_t pixel = (image * rows.size + row) * columns.size + column;
            std::memcpy(to, x + static_cast<size_t>(pixel) * run, run);
          } else {
            std::memset(to, 0, run);
          }
        }
      }
    }
  }
}

Status RunIm2col(const PatchPlan& plan, const KernelArgs& args) {
  if (plan.outputs[0].shape.elements() == 0) return Status();
  const auto* x = static_cast<const std::byte*>(args.in[0]);
  auto* y = static_cast<std::byte*>(args.out[0]);
  const int64_t lines =
      plan.outer * (plan.channels_last ? plan.rows.count : plan.rows.window * plan.columns.window);
  RunRanges(plan.threads, lines, 1, [&](int, int64_t first, int64_t end) {
    (plan.channels_last ? LastChannels : ChannelsFirst)(plan, x, y, first, end);
  });
  return Status();
}

// ---- Col2im ----

PatchPlan PlanCol2im(const OpContext& op, Check& check) {
  check.Rank("x", kFloatsAndDouble, 4);
  const std::vector<int64_t> size = check.Take(op.Ints("output_size"));
  check.That(size.size() == 2 && size[0] >= 0 && size[1] >= 0,
             "output_size {}: expected two numbers from 0 on", Shape(size));
  const auto windows = BothSides(op, "kernel_size", 1, check);
  const auto strides = BothSides(op, "stride", 1, check);
  const auto dilations = BothSides(op, "dilation", 1, check);
  const auto pads = BothSides(op, "padding", 0, check);
  if (!check.ok()) return {};
  PatchPlan plan;
  plan.rows = {size[0], windows[0], strides[0], dilations[0], pads[0], pads[0]};
  plan.columns = {size[1], windows[1], strides[1], dilations[1], pads[1], pads[1]};
  CountWindows(plan.rows, "rows", check);
  CountWindows(plan.columns, "columns", check);
  if (!check.ok()) return {};
  const Shape& x = op.in(0).shape;
  check.That(x[2] == windows[0] * windows[1] && x[3] == plan.rows.count * plan.columns.count,
             "x {}: expected {} positions of {} windows", x, windows[0] * windows[1],
             plan.rows.count * plan.columns.count);
  const Shape y = {x[0], x[1], size[0], size[1]};
  check.Keep(y.Check().WithContext(op.Who()));
  if (!check.ok()) return {};
  plan.outer = ElementsBetween(x, 0, 2);
  plan.threads = WorthThreadsForRows(plan.outer, x.elements(), op.threads());
  plan.outputs = {{op.in(0).dtype, y}};
  return plan;
}

Status RunCol2im(const PatchPlan& plan, RealTensors& t) {
  const PatchSide &rows = plan.rows, &columns = plan.columns;
  const int64_t column = rows.window * columns.window * rows.count * columns.count;
  RunRanges(plan.threads, plan.outer, 1, [&](int, int64_t first, int64_t end) {
    const double* from = t.in[0].data() + first * column;
    for (int64_t image = first; image < end; ++image) {
      double* y = t.out[0].data() + image * rows.size * columns.size;
      for (int64_t r = 0; r < rows.window; ++r) {
        for (int64_t c = 0; c < columns.window; ++c) {
          for (int64_t i = 0; i < rows.count; ++i) {
            const int64_t row = rows.At(i, r);
            for (int64_t j = 0; j < columns.count; ++j, ++from) {
              const int64_t at = columns.At(j, c);
              if (rows.Inside(row) && columns.Inside(at)) y[row * columns.size + at] += *from;
            }
          }
        }
      }
    }
  });
  return Status();
}

// ---- UnfoldGrad ----

// The windows of one dimension, which unfold put last: [outer, windows, inner, window].
struct UnfoldPlan : Planned {
  int64_t outer = 1, inner = 1;
  PatchSide side;
};

UnfoldPlan PlanUnfoldGrad(const OpContext& op, Check& check) {
  check.RankAtLeast("grad_out", kFloatsAndDouble, 2);
  const Shape x = Shape(check.Take(op.Ints("input_sizes")));
  check.Keep(x.Check().WithContext(op.Who()));
  const int axis = check.Axis("dim", x.rank());
  const int64_t size = check.Between("size", 1, kMostSide);
  const int64_t step = check.Between("step", 1, kMostSide);
  if (!check.ok()) return {};
  UnfoldPlan plan;
  plan.side = {.size = x[axis], .window = size, .stride = step};
  CountWindows(plan.side, "elements", check);
  if (!check.ok()) return {};
  Shape unfolded = x;
  unfolded[axis] = plan.side.count;
  unfolded.mutable_dims().push_back(size);
  check.Shape("grad_out", unfolded);
  plan.outer = ElementsBetween(x, 0, axis);
  plan.inner = ElementsBetween(x, axis + 1, x.rank());
  plan.outputs = {{op.in(0).dtype, x}};
  return plan;
}

Status RunUnfoldGrad(const UnfoldPlan& plan, RealTensors& t) {
  const double* from = t.in[0].data();
  double* to = t.out[0].data();
  for (int64_t outer = 0; outer < plan.outer; ++outer) {
    for (int64_t n = 0; n < plan.side.count; ++n) {
      for (int64_t inner = 0; inner < plan.inner; ++inner) {
        for (int64_t w = 0; w < plan.side.window; ++w) {
          to[(outer * plan.side.size + plan.side.At(n, w)) * plan.inner + inner] += *from++;
        }
      }
    }
  }
  return Status();
}

}  // namespace

void RegisterPatchOps(OpRegistry& registry) {
  registry.Add(Define<PlanIm2col, RunIm2col>(
      "Im2col(x; ksizes:ints, strides=[1], dilations=[1], padding_mode=\"CALCULATED\", "
      "pads=[0]) -> y"));
  registry.Add(DefineReal<PlanCol2im, RunCol2im>(
      "Col2im(x, output_size; kernel_size:ints, dilation:ints, padding:ints, stride:ints) -> y",
      {.value_inputs = {"output_size"}}));
  registry.Add(DefineReal<PlanUnfoldGrad, RunUnfoldGrad>(
      "UnfoldGrad(grad_out, input_sizes; dim=0, size=0, step=0) -> grad_in",
      {.value_inputs = {"input_sizes"}}));
}

}  // namespace npumesh
