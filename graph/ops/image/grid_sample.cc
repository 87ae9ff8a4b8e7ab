// GridSampler2D, GridSampler3D and GridSampler2DGrad: an image read at places that a grid names.
// Coordinates, paddings and the cubic (a = -0.75) are PyTorch's grid_sample.
//
// A grid holds coordinates in [-1, 1], the one of the last dimension of the image first. A
// coordinate that is no number reads nothing.
#include <algorithm>
#include <array>
#include <cmath>

#include "graph/ops/core/op_registry.h"
#include "graph/ops/toolbox/rows/double_kernel.h"

namespace npumesh {
namespace {

enum class Interpolation { kLinear, kNearest, kCubic };
enum class Border { kZeros, kEdge, kReflection };

struct Sampling {
  Interpolation interpolation = Interpolation::kLinear;
  Border border = Border::kZeros;
  bool align_corners = false;
};

// A position, and how it changes with the coordinate it was made of.
struct Place {
  double at = 0, slope = 0;
};

// The positions that are read along one dimension, and their weights.
struct Taps {
  int count = 0;
  std::array<int64_t, 4> at{};  // -1: outside, a zero
  std::array<double, 4> weight{};
  std::array<double, 4> slope{};  // of the weight by the coordinate
};

Place Clipped(Place place, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  if (place.at <= 0) return {0, 0};
  if (place.at >= last) return {last, 0};
  return place;
}

// Mirrored at the centres of the outer pixels, or at their outer edges.
Place Reflected(Place place, int64_t size, bool align_corners) {
  const double low = align_corners ? 0.0 : -0.5;
  const double span = static_cast<double>(align_corners ? size - 1 : size);
  if (span <= 0) return {0, 0};
  const double distance = std::abs(place.at - low);
  const double sign = place.at < low ? -1.0 : 1.0;
  const double rest = std::fmod(distance, span);
  const bool forwards = std::fmod(std::floor(distance / span), 2.0) == 0;
  const Place mirrored = forwards ? Place{low + rest, place.slope * sign}
                                  : Place{low + span - rest, -place.slope * sign};
  return Clipped(mirrored, size);
}

Place Bordered(Place place, int64_t size, const Sampling& how) {
  if (how.border == Border::kEdge) return Clipped(place, size);
  if (how.border == Border::kReflection) return Reflected(place, size, how.align_corners);
  return place;
}

int64_t Inside(double at, int64_t size) {
  return at >= 0 && at < static_cast<double>(size) ? static_cast<int64_t>(at) : -1;
}

void Add(Taps& taps, int64_t at, double weight, double slope) {
  const auto i = static_cast<size_t>(taps.count++);
  taps.at[i] = at;
  taps.weight[i] = weight;
  taps.slope[i] = slope;
}

// The cubic convolution kernel at distance d, and its slope.
Place Cubic(double distance) {
  constexpr double kA = -0.75;
  const double d = std::abs(distance), sign = distance < 0 ? -1.0 : 1.0;
  if (d <= 1) {
    return {((kA + 2) * d - (kA + 3)) * d * d + 1, sign * (3 * (kA + 2) * d - 2 * (kA + 3)) * d};
  }
  return {((d - 5) * d + 8) * d * kA - 4 * kA, sign * kA * ((3 * d - 10) * d + 8)};
}

Taps TapsOf(double coordinate, int64_t size, const Sampling& how) {
  Taps taps;
  const double scale = static_cast<double>(how.align_corners ? size - 1 : size) / 2;
  Place place = {(coordinate + 1) * scale - (how.align_corners ? 0.0 : 0.5), scale};
  // At the edge all places beyond it are alike.
  if (how.border == Border::kEdge) {
    place.at = std::clamp(place.at, -4.0, static_cast<double>(size + 4));
  }
  if (!std::isfinite(place.at)) return taps;
  if (how.interpolation == Interpolation::kCubic) {
    const double base = std::floor(place.at);
    for (int i = -1; i <= 2; ++i) {
      const Place weight = Cubic(place.at - (base + i));
      Add(taps, Inside(Bordered({base + i, 0}, size, how).at, size), weight.at,
          weight.slope * place.slope);
    }
    return taps;
  }
  place = Bordered(place, size, how);
  if (how.interpolation == Interpolation::kNearest) {
    Add(taps, Inside(std::nearbyint(place.at), size), 1, 0);
    return taps;
  }
  const double base = std::floor(place.at);
  Add(taps, Inside(base, size), base + 1 - place.at, -place.slope);
  Add(taps, Inside(base + 1, size), place.at - base, place.slope);
  return taps;
}

// ---- all dimensions together ----

struct GridPlan : Planned {
  Sampling how;
  int64_t batches = 0, channels = 0;
  std::vector<int64_t> image;  // extents
  int64_t pixels = 1;          // of the image
  int64_t places = 1;          // of the grid, for each batch
  bool last = false;           // the channels come last
};

// A pixel that is read, with its weight and the slopes of that by the coordinates of the grid.
struct Source {
  int64_t pixel = 0;
  double weight = 1;
  std::array<double, 3> slope{};
};

// Calls visit(source) for the pixels that the coordinates at `grid` name.
template <typename Visit>
void ForSources(const GridPlan& plan, const double* grid, Visit visit) {
  const size_t dims = plan.image.size();
  std::array<Taps, 3> taps;
  for (size_t d = 0; d < dims; ++d) {
    taps[d] = TapsOf(grid[dims - 1 - d], plan.image[d], plan.how);
    if (taps[d].count == 0) return;
  }
  const int all = taps[0].count * taps[1].count * (dims == 3 ? taps[2].count : 1);
  for (int number = 0; number < all; ++number) {
    Source source;
    source.slope.fill(1);
    bool inside = true;
    int64_t step = 1;
    int rest = number;
    for (size_t d = dims; d-- > 0;) {
      const auto i = static_cast<size_t>(rest % taps[d].count);
      rest /= taps[d].count;
      inside = inside && taps[d].at[i] >= 0;
      source.pixel += taps[d].at[i] * step;
      step *= plan.image[d];
      source.weight *= taps[d].weight[i];
      for (size_t by = 0; by < dims; ++by) {
        source.slope[by] *= by == dims - 1 - d ? taps[d].slope[i] : taps[d].weight[i];
      }
    }
    if (inside) visit(source);
  }
}

// Element of a tensor of `count` pixels for each batch and channel.
size_t ElementOf(const GridPlan& plan, int64_t count, int64_t batch, int64_t channel,
                 int64_t pixel) {
  return static_cast<size_t>(plan.last ? (batch * count + pixel) * plan.channels + channel
                                       : (batch * plan.channels + channel) * count + pixel);
}

Sampling SamplingOf(const OpContext& op, bool of_image, Check& check) {
  const std::string mode = op.attr_string("interpolation_mode");
  check.That(mode == "bilinear" || mode == "nearest" || (mode == "bicubic" && of_image),
             "interpolation_mode is \"{}\", expected bilinear, nearest or, for images, bicubic",
             mode);
  Sampling how;
  how.border = check.Meaning<Border>(
      "padding_mode",
      {{"zeros", Border::kZeros}, {"border", Border::kEdge}, {"reflection", Border::kReflection}});
  how.align_corners = op.attr_bool("align_corners");
  if (mode == "nearest") how.interpolation = Interpolation::kNearest;
  if (mode == "bicubic") how.interpolation = Interpolation::kCubic;
  return how;
}

// Plans the sampling of an image or a volume; output 0 is what it gives.
template <int kDims>
GridPlan PlanSampling(const OpContext& op, Check& check) {
  check.Keep(ExpectAllReal(op));
  GridPlan plan;
  plan.how = SamplingOf(op, kDims == 2, check);
  plan.last = kDims == 3 && op.attr_string("data_format") == "NDHWC";
  const Shape &x = op.in("x").shape, &grid = op.in("grid").shape;
  constexpr int kRank = kDims + 2;
  check.That(
      x.rank() == kRank && grid.rank() == kRank && grid[0] == x[0] && grid[kRank - 1] == kDims,
      "x is {} and grid {}; expected {} dimensions, the same batch, and {} coordinates", x, grid,
      kRank, kDims);
  if (!check.ok()) return plan;
  plan.batches = x[0];
  plan.channels = x[plan.last ? kRank - 1 : 1];
  Shape y = x;
  for (int d = 0; d < kDims; ++d) {
    const int dim = d + (plan.last ? 1 : 2);
    plan.image.push_back(x[dim]);
    plan.pixels *= x[dim];
    plan.places *= grid[d + 1];
    y[dim] = grid[d + 1];
  }
  plan.outputs = {{op.in("x").dtype, y}};
  return plan;
}

// Calls visit(batch, place) for every place of the grid.
template <typename Visit>
void ForPlaces(const GridPlan& plan, Visit visit) {
  for (int64_t n = 0; n < plan.batches; ++n) {
    for (int64_t q = 0; q < plan.places; ++q) visit(n, q);
  }
}

template <int kDims>
Status RunGrid(const GridPlan& plan, RealTensors& t) {
  ForPlaces(plan, [&](int64_t n, int64_t q) {
    const double* grid = t.in[1].data() + (n * plan.places + q) * kDims;
    ForSources(plan, grid, [&](const Source& source) {
      for (int64_t c = 0; c < plan.channels; ++c) {
        t.out[0][ElementOf(plan, plan.places, n, c, q)] +=
            source.weight * t.in[0][ElementOf(plan, plan.pixels, n, c, source.pixel)];
      }
    });
  });
  return Status();
}

GridPlan PlanGradient(const OpContext& op, Check& check) {
  GridPlan plan = PlanSampling<2>(op, check);
  if (!check.ok()) return {};
  const Shape& y = plan.outputs[0].shape;
  check.That(op.in("grad").shape == y, "\"grad\" is {}, but sampling gives {}", op.in("grad"), y);
  plan.outputs = {op.in("x"), op.in("grid")};
  return plan;
}

// Inputs grad, x, grid; outputs dx, dgrid.
Status RunGradient(const GridPlan& plan, RealTensors& t) {
  ForPlaces(plan, [&](int64_t n, int64_t q) {
    const auto first = static_cast<size_t>(n * plan.places + q) * 2;
    ForSources(plan, t.in[2].data() + first, [&](const Source& source) {
      for (int64_t c = 0; c < plan.channels; ++c) {
        const double g = t.in[0][ElementOf(plan, plan.places, n, c, q)];
        const size_t pixel = ElementOf(plan, plan.pixels, n, c, source.pixel);
        t.out[0][pixel] += g * source.weight;
        t.out[1][first] += g * t.in[1][pixel] * source.slope[0];
        t.out[1][first + 1] += g * t.in[1][pixel] * source.slope[1];
      }
    });
  });
  return Status();
}

}  // namespace

void RegisterGridSampleOps(OpRegistry& registry) {
  registry.Add(DefineReal<PlanSampling<2>, RunGrid<2>>(
      "GridSampler2D(x, grid; interpolation_mode=\"bilinear\", padding_mode=\"zeros\", "
      "align_corners=false) -> y"));
  registry.Add(DefineReal<PlanSampling<3>, RunGrid<3>>(
      "GridSampler3D(x, grid; interpolation_mode=\"bilinear\", padding_mode=\"zeros\", "
      "align_corners=false, data_format=\"NCDHW\") -> y"));
  registry.Add(DefineReal<PlanGradient, RunGradient>(
      "GridSampler2DGrad(grad, x, grid; interpolation_mode=\"bilinear\", padding_mode=\"zeros\", "
      "align_corners=false) -> dx, dgrid"));
}

}  // namespace npumesh
