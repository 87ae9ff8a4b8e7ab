#include "graph/ops/toolbox/product/matmul.h"

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

Result<std::unique_ptr<Kernel>> MakeMatmul(const Matmul& matmul) {
  KernelChoice choice = Choose(kMatmulKernels, matmul);
  if (choice.name == kFloatProducts) return MakeFloatMatmul(matmul);
  std::unique_ptr<Kernel> kernel = MakeIntegerMatmul(matmul);
  kernel->set_choice(std::move(choice));
  return kernel;
}

}  // namespace npumesh
