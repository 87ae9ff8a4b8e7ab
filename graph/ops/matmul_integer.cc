// Integer products: rare in these graphs, so the plain loops in an order that reads x2 by rows.
#include <algorithm>
#include <cstring>

#include "graph/ops/matmul.h"

namespace npumesh {
namespace {

// Number of the matrix of `operand` that belongs to number `index` of the batch.
int64_t MatrixOf(const Matmul::Operand& operand, const std::vector<int64_t>& batch, int64_t index) {
  int64_t matrix = 0;
  int64_t stride = 1;
  for (size_t i = batch.size(); i-- > 0;) {
    if (operand.batch[i] != 1) matrix += index % batch[i] * stride;
    stride *= operand.batch[i];
    index /= batch[i];
  }
  return matrix;
}

// A matrix of x1 or x2; the distance of its rows and of its columns in elements.
template <typename T>
struct MatrixView {
  const T* data = nullptr;
  int64_t row = 0;
  int64_t column = 0;

  uint32_t at(int64_t r, int64_t c) const {
    return static_cast<uint32_t>(static_cast<int32_t>(data[r * row + c * column]));
  }
};

template <typename T>
MatrixView<T> View(const Matmul::Operand& operand, const KernelArgs& args, int64_t matrix,
                   int64_t rows, int64_t columns) {
  const T* data = static_cast<const T*>(args.in[operand.slot]) + matrix * rows * columns;
  if (operand.transposed) return {data, 1, rows};
  return {data, columns, 1};
}

// y = a b + bias for one matrix of the batch; unsigned, because signed overflow must wrap.
template <typename T>
void Multiply(const Matmul& p, MatrixView<T> a, MatrixView<T> b, const uint32_t* bias,
              uint32_t* y) {
  const auto offset = static_cast<uint32_t>(p.offset);
  for (int64_t i = 0; i < p.m; ++i, y += p.n) {
    if (bias != nullptr) {
      std::copy(bias, bias + p.n, y);
    } else {
      std::fill(y, y + p.n, 0u);
    }
    for (int64_t l = 0; l < p.k; ++l) {
      const uint32_t factor = a.at(i, l) - offset;
      for (int64_t j = 0; j < p.n; ++j) y[j] += factor * b.at(l, j);
    }
  }
}

template <typename T>
void MultiplyAll(const Matmul& p, const KernelArgs& args) {
  int64_t matrices = 1;
  for (const int64_t dim : p.batch) matrices *= dim;
  for (int64_t i = 0; i < matrices; ++i) {
    const uint32_t* bias = nullptr;
    if (p.bias.slot >= 0) {
      bias =
          static_cast<const uint32_t*>(args.in[p.bias.slot]) + MatrixOf(p.bias, p.batch, i) * p.n;
    }
    Multiply(p, View<T>(p.x1, args, MatrixOf(p.x1, p.batch, i), p.m, p.k),
             View<T>(p.x2, args, MatrixOf(p.x2, p.batch, i), p.k, p.n), bias,
             static_cast<uint32_t*>(args.out[0]) + i * p.m * p.n);
  }
}

}  // namespace

std::unique_ptr<Kernel> MakeIntegerMatmul(const Matmul& matmul) {
  const bool narrow = matmul.x1.dtype == DataType::kInt8;
  return MakeKernel([matmul, narrow](const KernelArgs& args) {
    narrow ? MultiplyAll<int8_t>(matmul, args) : MultiplyAll<int32_t>(matmul, args);
    return Status();
  });
}

}  // namespace npumesh
