#include "graph/onnx/window.h"

#include <algorithm>

namespace npumesh {
namespace {

// Larger numbers are those of a damaged file.
constexpr int64_t kLargest = 1 << 24;

std::vector<int64_t> ListOr(Lowering& at, std::string_view name, size_t size, int64_t fallback) {
  std::vector<int64_t> list = at.IntList(name);
  if (list.empty()) list.assign(size, fallback);
  if (list.size() == size) return list;
  at.Fail(Code::kCorrupt, "\"{}\" has {} entries, expected {}", name, list.size(), size);
  return std::vector<int64_t>(size, fallback);
}

}  // namespace

void PadForSame(Lowering& at, Value x, SlidingWindow& window) {
  if (!window.same) return;
  for (size_t d = 0; d < window.size(); ++d) {
    const int64_t image = at.Dim(x, static_cast<int>(d) + 2), stride = window.strides[d];
    const int64_t outputs = (image + stride - 1) / stride;
    const int64_t missing = std::max<int64_t>((outputs - 1) * stride + window.extent(d) - image, 0);
    window.before[d] = window.lower ? missing - missing / 2 : missing / 2;
    window.behind[d] = missing - window.before[d];
  }
}

SlidingWindow WindowFrom(Lowering& at, Value x, std::vector<int64_t> kernel) {
  SlidingWindow window;
  window.kernel = at.has_attr("kernel_shape") ? at.IntList("kernel_shape") : std::move(kernel);
  const size_t dims = window.size();
  if (at.ok() && at.shape(x).has_rank() && at.shape(x).rank() != window.dims() + 2) {
    at.Fail(Code::kCorrupt, "a kernel of {} dimensions for an operand of {}; expected 2 less", dims,
            at.shape(x).rank());
  }
  window.strides = ListOr(at, "strides", dims, 1);
  window.dilations = ListOr(at, "dilations", dims, 1);
  const std::vector<int64_t> pads = ListOr(at, "pads", 2 * dims, 0);
  window.before.assign(pads.begin(), pads.begin() + static_cast<int64_t>(dims));
  window.behind.assign(pads.begin() + static_cast<int64_t>(dims), pads.end());
  for (size_t d = 0; d < dims; ++d) {
    const auto sane = [](int64_t number, int64_t least) {
      return number >= least && number <= kLargest;
    };
    if (sane(window.kernel[d], 1) && sane(window.strides[d], 1) && sane(window.dilations[d], 1) &&
        sane(window.before[d], -kLargest) && sane(window.behind[d], -kLargest)) {
      continue;
    }
    at.Fail(
        Code::kCorrupt,
        "kernel {}, stride {}, dilation {}, pads {} and {} along dimension {}; expected 1 to {}, "
        "pads of that size at most",
        window.kernel[d], window.strides[d], window.dilations[d], window.before[d],
        window.behind[d], d, kLargest);
    window.kernel.assign(dims, 1);
    return window;
  }
  const std::string mode = at.Text("auto_pad", "NOTSET");
  window.same = mode == "SAME_UPPER" || mode == "SAME_LOWER";
  window.lower = mode == "SAME_LOWER";
  if (mode == "VALID") {
    window.before.assign(dims, 0);
    window.behind.assign(dims, 0);
  }
  return window;
}

std::vector<int64_t> WithOnes(const std::vector<int64_t>& numbers) {
  std::vector<int64_t> all = {1, 1};
  all.insert(all.end(), numbers.begin(), numbers.end());
  return all;
}

std::vector<int64_t> PadPairs(const SlidingWindow& window) {
  std::vector<int64_t> pairs;
  for (size_t d = 0; d < window.size(); ++d) {
    pairs.push_back(window.before[d]);
    pairs.push_back(window.behind[d]);
  }
  return pairs;
}

}  // namespace npumesh
