// UpsampleBicubic2d, UpsampleBicubic2dAA, UpsampleBilinear2dAA: images of other sizes, as PyTorch's
// interpolate makes them.
//
// A position of the output reads a run of positions of the input along each dimension. Bicubic
// reads four, by the cubic convolution of a = -0.75; pixels beyond the border are those of the
// border. Antialiased forms (AA) stretch the filter over what a position of a smaller image stands
// for, with a = -0.5 when it is cubic, and read inside of the image alone.
#include <algorithm>
#include <cmath>

#include "graph/ops/core/infer_checks.h"
#include "graph/ops/core/op_registry.h"
#include "graph/ops/image/resampling.h"

namespace npumesh {
namespace {

enum class Filter : uint8_t { kCubic, kCubicAntialiased, kLinearAntialiased };

// The cubic convolution of R. Keys, "Cubic convolution interpolation for digital image processing"
// (1981).
double Cubic(double x, double a) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * a * x - 4 * a : 0;
}

double WeightOf(Filter filter, double x) {
  if (filter == Filter::kCubicAntialiased) return Cubic(x, -0.5);
  return std::max(1 - std::fabs(x), 0.0);
}

// Positions of the input for each of the output.
double Step(int64_t in, int64_t out, bool corners, float scale) {
  if (corners) {
    return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  }
  return scale > 0 ? 1 / static_cast<double>(scale)
                   : static_cast<double>(in) / static_cast<double>(out);
}

PixelRun CubicRun(int64_t at, int64_t in, double step, bool corners) {
  const auto place = static_cast<double>(at);
  const double source = corners ? place * step : (place + 0.5) * step - 0.5;
  const double low = std::floor(source);
  const auto first = static_cast<int64_t>(std::clamp(low, -4.0, static_cast<double>(in) + 4)) - 1;
  PixelRun run;
  run.first = std::clamp<int64_t>(first, 0, in - 1);
  run.weights.assign(static_cast<size_t>(std::clamp<int64_t>(first + 3, 0, in - 1) - run.first + 1),
                     0);
  for (int64_t tap = 0; tap < 4; ++tap) {
    const int64_t pixel = std::clamp<int64_t>(first + tap, 0, in - 1);
    run.weights[static_cast<size_t>(pixel - run.first)] +=
        Cubic(source - low + 1 - static_cast<double>(tap), -0.75);
  }
  return run;
}

PixelRun AntialiasedRun(Filter filter, int64_t at, int64_t in, double step) {
  const double half = filter == Filter::kCubicAntialiased ? 2 : 1, wide = std::max(step, 1.0);
  const double centre = step * (static_cast<double>(at) + 0.5), reach = half * wide;
  PixelRun run;
  const auto inside = [&](double place) {
    return static_cast<int64_t>(std::clamp(place, 0.0, static_cast<double>(in)));
  };
  run.first = std::min(inside(centre - reach + 0.5), in - 1);
  const int64_t end = inside(centre + reach + 0.5);
  double total = 0;
  for (int64_t i = run.first; i < end; ++i) {
    run.weights.push_back(WeightOf(filter, (static_cast<double>(i) - centre + 0.5) / wide));
    total += run.weights.back();
  }
  for (double& weight : run.weights) weight /= total == 0 ? 1 : total;
  return run;
}

std::vector<PixelRun> RunsAlong(Filter filter, int64_t in, int64_t out, bool corners, float scale) {
  const double step = Step(in, out, corners, scale);
  std::vector<PixelRun> runs;
  for (int64_t at = 0; at < out; ++at) {
    runs.push_back(filter == Filter::kCubic ? CubicRun(at, in, step, corners)
                                            : AntialiasedRun(filter, at, in, step));
  }
  return runs;
}

// Entries of the lists along one dimension.
double EntriesAlong(Filter filter, int64_t in, int64_t out, bool corners, float scale) {
  const double step = Step(in, out, corners, scale);
  const double most =
      filter == Filter::kCubic ? 4 : std::min(4 * std::max(step, 1.0) + 2, static_cast<double>(in));
  return static_cast<double>(out) * (most + 4);
}

template <Filter kFilter>
ResamplingPlan PlanResample(const OpContext& op, Check& check) {
  check.Rank(op.schema().inputs[0].name, kFloatsAndDouble, 4);
  const std::vector<int64_t> size = op.attr_ints("output_size");
  check.That(size.size() == 2 && size[0] >= 1 && size[1] >= 1,
             "attribute \"output_size\" is {}, expected two numbers above 0", Shape(size));
  if (!check.ok()) return {};
  const auto& [dtype, x] = op.in(0);
  check.That(x[2] > 0 && x[3] > 0, "{} has no pixels", x);
  const Shape y = {x[0], x[1], size[0], size[1]};
  check.Keep(y.Check().WithContext(op.Who()));
  const bool corners = op.attr_bool("align_corners");
  const float high = op.attr_float("scales_h"), wide = op.attr_float("scales_w");
  if (!check.ok()) return {};
  const double entries = EntriesAlong(kFilter, x[2], size[0], corners, high) +
                         EntriesAlong(kFilter, x[3], size[1], corners, wide);
  check.Keep(AskForLists(op, entries < 9e18 ? static_cast<int64_t>(entries) : INT64_MAX));
  if (!check.ok()) return {};
  ResamplingPlan plan;
  plan.images = x[0] * x[1];
  plan.height = x[2];
  plan.width = x[3];
  plan.rows = RunsAlong(kFilter, x[2], size[0], corners, high);
  plan.columns = RunsAlong(kFilter, x[3], size[1], corners, wide);
  plan.from = plan.to = dtype;
  plan.outputs = {{dtype, y}};
  Finish(plan, op.threads());
  return plan;
}

}  // namespace

void RegisterResampleOps(OpRegistry& registry) {
  registry.Add(Define<PlanResample<Filter::kCubic>, RunResampling>(
      "UpsampleBicubic2d(input; output_size:ints, align_corners=false, scales_h=0.0, "
      "scales_w=0.0) -> output"));
  registry.Add(Define<PlanResample<Filter::kCubicAntialiased>, RunResampling>(
      "UpsampleBicubic2dAA(x; output_size:ints, align_corners=false, scales_h=0.0, "
      "scales_w=0.0) -> y"));
  registry.Add(Define<PlanResample<Filter::kLinearAntialiased>, RunResampling>(
      "UpsampleBilinear2dAA(input; output_size:ints, align_corners=false, scales_h=0.0, "
      "scales_w=0.0) -> output"));
}

}  // namespace npumesh
