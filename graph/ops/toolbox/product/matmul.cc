#include "graph/ops/toolbox/product/matmul.h"

#include <algorithm>

namespace npumesh {
namespace {

int64_t Product(const std::vector<int64_t>& dims) {
  int64_t product = 1;
  for (const int64_t dim : dims) product *= dim;
  return product;
}

constexpr std::string_view kFloatProducts = "oneDNN";

std::string WhyNotFloats(const Matmul& matmul) {
  if (matmul.y_dtype != DataType::kInt32) return "";
  return fmt::format("sums of {} are int32", Name(matmul.x1.dtype));
}

constexpr Candidate<const Matmul> kMatmulKernels[] = {{kFloatProducts, WhyNotFloats},
                                                      {"integer loops"}};

// ---- integer products: rare, so plain loops in an order that reads x2 by rows ----

// The matrix of an operand for number `index` of the batch. Elements are unsigned, because signed
// overflow must wrap.
template <typename T>
struct Matrix {
  const T* data;
  int64_t by_row, by_column;  // elements to the next

  Matrix(const Matmul& p, const Matmul::Operand& from, const KernelArgs& args, int64_t index,
         int64_t rows, int64_t columns)
      : data(static_cast<const T*>(args.in[from.slot]) +
             MatrixOf(from.batch, p.batch, index) * rows * columns),
        by_row(from.transposed ? 1 : columns),
        by_column(from.transposed ? rows : 1) {}

  uint32_t at(int64_t r, int64_t c) const {
    return static_cast<uint32_t>(static_cast<int32_t>(data[r * by_row + c * by_column]));
  }
};

template <typename T>
void MultiplyAll(const Matmul& p, const KernelArgs& args) {
  const auto offset = static_cast<uint32_t>(p.offset);
  auto* y = static_cast<uint32_t*>(args.out[0]);
  const int64_t matrices = Product(p.batch);
  for (int64_t i = 0; i < matrices; ++i) {
    const Matrix<T> a(p, p.x1, args, i, p.m, p.k), b(p, p.x2, args, i, p.k, p.n);
    for (int64_t r = 0; r < p.m; ++r, y += p.n) {
      if (p.bias.slot < 0) {
        std::fill_n(y, p.n, 0u);
      } else {
        const auto* bias = static_cast<const uint32_t*>(args.in[p.bias.slot]);
        std::copy_n(bias + MatrixOf(p.bias.batch, p.batch, i) * p.n, p.n, y);
      }
      for (int64_t l = 0; l < p.k; ++l) {
        const uint32_t factor = a.at(r, l) - offset;
        for (int64_t j = 0; j < p.n; ++j) y[j] += factor * b.at(l, j);
      }
    }
  }
}

}  // namespace

bool Matmul::Operand::batch_is_one() const {
  return Product(batch) == 1;
}

void Matmul::Simplify() {
  const bool plain_bias = bias.slot < 0 || bias.batch_is_one();
  if (!plain_bias) return;
  if (x2.batch_is_one() && !x1.transposed) {
    m *= Product(batch);
    batch.clear();
  } else if (x1.batch == x2.batch) {
    batch = {Product(batch)};
  } else {
    return;
  }
  x1.batch = batch;
  x2.batch = batch;
  bias.batch.assign(batch.size(), 1);
}

int64_t MatrixOf(const std::vector<int64_t>& own, const std::vector<int64_t>& batch,
                 int64_t index) {
  int64_t matrix = 0;
  int64_t stride = 1;
  for (size_t i = 1; i <= own.size(); ++i) {  // from the last dimension on
    const int64_t extent = own[own.size() - i], all = batch[batch.size() - i];
    if (extent != 1) matrix += index % all * stride;
    stride *= extent;
    index /= all;
  }
  return matrix;
}

Result<std::unique_ptr<Kernel>> MakeMatmul(const Matmul& matmul) {
  KernelChoice choice = Choose(kMatmulKernels, matmul);
  if (choice.name == kFloatProducts) return MakeFloatMatmul(matmul);
  const bool narrow = matmul.x1.dtype == DataType::kInt8;
  std::unique_ptr<Kernel> kernel = MakeKernel([matmul, narrow](const KernelArgs& args) {
    narrow ? MultiplyAll<int8_t>(matmul, args) : MultiplyAll<int32_t>(matmul, args);
    return Status();
  });
  kernel->set_choice(std::move(choice));
  return kernel;
}

}  // namespace npumesh
