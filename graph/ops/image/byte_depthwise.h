// Sums of a depthwise convolution of bytes: each channel has one filter.
//
// Thread-safety: pure functions.
#ifndef NPUMESH_GRAPH_OPS_IMAGE_BYTE_DEPTHWISE_H_
#define NPUMESH_GRAPH_OPS_IMAGE_BYTE_DEPTHWISE_H_

#include <cstdint>

#include "runtime/base/data_type.h"

namespace npumesh {

// A row of y: the images have their channels last.
struct DepthwiseRow {
  DataType dtype = DataType::kUndefined;  // int8 or uint8
  const void* image = nullptr;            // [height, width, channels]
  const int32_t* filter = nullptr;        // [kernel height, kernel width, channels], less its zero
  int32_t zero = 0;                       // of x, which the padding holds as well
  int64_t channels = 0, height = 0, width = 0, columns = 0;  // columns: of y
  int64_t kernel_height = 0, kernel_width = 0;
  int64_t top = 0, left = 0;              // of the window of column 0
  int64_t stride = 1;                     // from column to column
  int64_t row_step = 1, column_step = 1;  // dilations
};

// sums[columns, channels] = the sum over the window of (x - zero) * filter, modulo 2^32.
void DepthwiseSums(const DepthwiseRow& row, int32_t* sums);

}  // namespace npumesh

#endif  // NPUMESH_GRAPH_OPS_IMAGE_BYTE_DEPTHWISE_H_
