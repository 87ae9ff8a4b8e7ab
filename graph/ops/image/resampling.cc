#include "graph/ops/image/resampling.h"

#include "graph/ops/toolbox/lanes/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "graph/ops/image/resampling.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace npumesh {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class Tag>
HWY_INLINE void AddUpAt(Tag tag, const double* const* rows, const double* weights, size_t count,
                        size_t at, double* sum) {
  auto total = hn::LoadU(tag, sum + at);
  for (size_t k = 0; k < count; ++k) {
    total = hn::Add(total, hn::Mul(hn::Set(tag, weights[k]), hn::LoadU(tag, rows[k] + at)));
  }
  hn::StoreU(total, tag, sum + at);
}

// sum += weights[0] * rows[0] + weights[1] * rows[1] + ..., in this order.
void AddUp(const double* const* rows, const double* weights, size_t count, size_t elements,
           double* sum) {
  const hn::ScalableTag<double> tag;
  size_t at = 0;
  for (; at + hn::Lanes(tag) <= elements; at += hn::Lanes(tag)) {
    AddUpAt(tag, rows, weights, count, at, sum);
  }
  for (; at < elements; ++at) {
    AddUpAt(hn::CappedTag<double, 1>(), rows, weights, count, at, sum);
  }
}

template <class Tag>
HWY_INLINE void GatherUpAt(Tag tag, const double* row, const double* weights, const int64_t* pixels,
                           size_t count, size_t columns, double* sum) {
  auto total = hn::Zero(tag);
  for (size_t k = 0; k < count; ++k, weights += columns, pixels += columns) {
    const auto weight = hn::LoadU(tag, weights);
    const auto pixel = hn::GatherIndex(tag, row, hn::LoadU(hn::RebindToSigned<Tag>(), pixels));
    total =
        hn::Add(total, hn::IfThenElseZero(hn::Ne(weight, hn::Zero(tag)), hn::Mul(weight, pixel)));
  }
  hn::StoreU(total, tag, sum);
}

// sum[i] = weights[i] * row[pixels[i]] + weights[i + columns] * row[pixels[i + columns]] + ...
void GatherUp(const double* row, const double* weights, const int64_t* pixels, size_t count,
              size_t columns, double* sum) {
  const hn::ScalableTag<double> tag;
  size_t at = 0;
  for (; at + hn::Lanes(tag) <= columns; at += hn::Lanes(tag)) {
    GatherUpAt(tag, row, weights + at, pixels + at, count, columns, sum + at);
  }
  for (; at < columns; ++at) {
    GatherUpAt(hn::CappedTag<double, 1>(), row, weights + at, pixels + at, count, columns,
               sum + at);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace npumesh
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <algorithm>
#include <array>

#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/thread_parts.h"

namespace npumesh {
namespace {

HWY_EXPORT(AddUp);
HWY_EXPORT(GatherUp);

// Rows that are added up in one walk.
constexpr size_t kMostRows = 16;

// One thread.
class Resampler {
 public:
  Resampler(const ResamplingPlan& plan, const KernelArgs& args, int part)
      : plan_(plan),
        in_(static_cast<const std::byte*>(args.in[0])),
        out_(static_cast<std::byte*>(args.out[0])),
        load_(FindConvert(plan.from, DataType::kDouble)),
        store_(FindConvert(DataType::kDouble, plan.to)),
        source_(plan.source(args) + part * in_row()),
        kept_(plan.kept(args) + part * plan.kept_rows * out_row()),
        sum_(plan.sum(args) + part * out_row()),
        held_(plan.held(args) + part * plan.kept_rows) {
    std::fill_n(held_, plan.kept_rows, -1);
  }

  // Row `line` of the output, counted through all images.
  void Run(int64_t line) {
    const auto rows = static_cast<int64_t>(plan_.rows.size());
    const PixelRun& run = plan_.rows[static_cast<size_t>(line % rows)];
    const int64_t first = line / rows * plan_.height + run.first;
    const auto elements = static_cast<size_t>(out_row());
    AddRows(run, elements, sum_,
            [&](size_t k) { return Resampled(first + static_cast<int64_t>(k)); });
    store_(sum_, out_ + static_cast<size_t>(line) * elements * WidthOf(plan_.to), elements);
  }

 private:
  int64_t in_row() const { return plan_.width * plan_.inner; }
  int64_t out_row() const { return static_cast<int64_t>(plan_.columns.size()) * plan_.inner; }

  // A row of the input, counted through all images, with its columns resampled.
  const double* Resampled(int64_t row) {
    const int64_t slot = row % plan_.kept_rows;
    double* const to = kept_ + slot * out_row();
    if (held_[slot] == row) return to;
    held_[slot] = row;
    const auto elements = static_cast<size_t>(in_row());
    load_(in_ + static_cast<size_t>(row) * elements * WidthOf(plan_.from), source_, elements);
    plan_.inner == 1 ? ResampleColumns(to) : ResamplePixels(to);
    return to;
  }

  void ResampleColumns(double* to) const {
    const size_t columns = plan_.columns.size(), count = plan_.weights.size() / columns;
    HWY_DYNAMIC_DISPATCH(GatherUp)
    (source_, plan_.weights.data(), plan_.pixels.data(), count, columns, to);
  }

  void ResamplePixels(double* to) const {
    for (const PixelRun& run : plan_.columns) {
      const double* const from = source_ + run.first * plan_.inner;
      AddRows(run, static_cast<size_t>(plan_.inner), to,
              [&](size_t k) { return from + static_cast<int64_t>(k) * plan_.inner; });
      to += plan_.inner;
    }
  }

  // sum = the weighted sum of rows of `elements`, which row(k) gives.
  template <typename Row>
  static void AddRows(const PixelRun& run, size_t elements, double* sum, const Row& row) {
    std::array<const double*, kMostRows> rows{};
    std::array<double, kMostRows> weights{};
    size_t count = 0;
    std::fill_n(sum, elements, 0.0);
    const auto add = [&] {
      HWY_DYNAMIC_DISPATCH(AddUp)(rows.data(), weights.data(), count, elements, sum);
      count = 0;
    };
    for (size_t k = 0; k < run.weights.size(); ++k) {
      if (run.weights[k] == 0) continue;
      rows[count] = row(k);
      weights[count++] = run.weights[k];
      if (count == kMostRows) add();
    }
    add();
  }

  const ResamplingPlan& plan_;
  const std::byte* const in_;
  std::byte* const out_;
  const ConvertFn load_, store_;
  double* const source_;
  double* const kept_;
  double* const sum_;
  int64_t* const held_;
};

// `columns` as lists. Places without a pixel have weight 0.
void ListColumns(ResamplingPlan& plan) {
  size_t most = 0;
  for (const PixelRun& run : plan.columns) most = std::max(most, run.weights.size());
  for (size_t k = 0; k < most; ++k) {
    for (const PixelRun& run : plan.columns) {
      const bool given = k < run.weights.size();
      plan.weights.push_back(given ? run.weights[k] : 0);
      plan.pixels.push_back(run.first + static_cast<int64_t>(given ? k : 0));
    }
  }
}

}  // namespace

void Finish(ResamplingPlan& plan, int threads) {
  if (plan.inner == 1) ListColumns(plan);
  const int64_t out_row = static_cast<int64_t>(plan.columns.size()) * plan.inner;
  plan.threads = WorthThreadsForRows(plan.lines(), plan.lines() * out_row, threads);
  for (const PixelRun& run : plan.rows) {
    plan.kept_rows = std::max(plan.kept_rows, static_cast<int64_t>(run.weights.size()));
  }
  const int64_t parts = plan.threads;
  plan.source = plan.scratch.Take<double>(parts * plan.width * plan.inner);
  plan.kept = plan.scratch.Take<double>(parts * plan.kept_rows * out_row);
  plan.sum = plan.scratch.Take<double>(parts * out_row);
  plan.held = plan.scratch.Take<int64_t>(parts * plan.kept_rows);
}

Status RunResampling(const ResamplingPlan& plan, const KernelArgs& args) {
  RunRanges(plan.threads, plan.lines(), 1, [&](int part, int64_t first, int64_t end) {
    Resampler resampler(plan, args, part);
    for (int64_t line = first; line < end; ++line) resampler.Run(line);
  });
  return Status();
}

}  // namespace npumesh

#endif  // HWY_ONCE
