// Sums of a depthwise convolution of bytes: each channel has one filter.
//
// A row of the image becomes words of two int16, once for all rows of y that it is in: the byte at
// a column and the one that the next tap takes, both less the zero of x. A word of the filter holds
// two taps, so that one multiply-add takes both. What lies outside of the image is 0.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_BYTE_DEPTHWISE_H_
#define NPUMESH_GRAPH_OPS_IMAGE_BYTE_DEPTHWISE_H_

#include <cstdint>
#include <vector>

#include "runtime/base/data_type.h"

namespace npumesh {

// Images have their channels last.
struct DepthwiseShape {
  DataType dtype = DataType::kUndefined;         // of x: int8 or uint8
  int64_t channels = 0, width = 0, columns = 0;  // width: of x; columns: of y
  int64_t kernel_height = 0, kernel_width = 0;
  int64_t left = 0;         // the column of x where the first window begins
  int64_t stride = 1;       // from column to column of y
  int64_t column_step = 1;  // dilation
};

// The rows [begin, end) of a filter that meet rows of the image: words[r] are those that row r
// meets.
struct DepthwiseRows {
  const int32_t* const* words;
  int64_t begin, end;
};

class ByteDepthwise {
 public:
  // `filter`: [kernel height, kernel width, channels], less its zeros, so within [-255, 255].
  ByteDepthwise(const DepthwiseShape& shape, const std::vector<int32_t>& filter);

  // Words of a row of the image.
  int64_t row_words() const { return positions_ * shape_.channels; }
  void LoadRow(const void* row, int32_t zero, int32_t* words) const;

  // Writes sums[columns, channels].
  void Sum(const DepthwiseRows& rows, int32_t* sums) const;

  // For the kernels.
  const DepthwiseShape& shape() const { return shape_; }
  int64_t pairs() const { return pairs_; }          // of taps, in a row of the filter
  int64_t positions() const { return positions_; }  // of words, in a row of the image
  int64_t apart() const { return apart_; }          // columns of the image between two of them
  const int32_t* words(int64_t row, int64_t pair) const {
    return filter_.data() + (row * pairs_ + pair) * shape_.channels;
  }

 private:
  const DepthwiseShape shape_;
  int64_t pairs_, apart_, positions_;
  std::vector<int32_t> filter_;  // [kernel height, pairs, channels]
};

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_BYTE_DEPTHWISE_H_
