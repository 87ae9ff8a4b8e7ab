// Products by panels beside chains of multiply-adds that are written down here: the same bits,
// however the operands lie and however the work is cut.
#include "graph/ops/toolbox/product/panel_product.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <tuple>
#include <vector>

#include "graph/ops/toolbox/values/cast.h"
#include "graph/ops/toolbox/values/ceil_div.h"

namespace npumesh {
namespace {

using Elements = std::vector<float>;

// Whether the vector instructions that are used add products without rounding them.
bool FusesProducts() {
  const float a = 1.0f + 0x1p-12f;
  const Elements x = {a, a}, panel = [&] {
    Elements made(2 * static_cast<size_t>(ProcessorPanelKernels().columns), a);
    std::fill(made.begin() + ProcessorPanelKernels().columns, made.end(), -a);
    return made;
  }();
  Elements y(static_cast<size_t>(ProcessorPanelKernels().columns));
  const PanelKernels& kernels = ProcessorPanelKernels();
  const auto one_row = kernels.float32.rows[(kernels.columns - 1) / kernels.lanes][0];
  one_row({.x = x.data(), .panel = panel.data(), .panel_stride = kernels.columns, .k = 2}, false,
          y.data(), kernels.columns);
  return y[0] != 0.0f;
}

// The element that PanelProduct promises: chains over equal blocks, of an even number of places of
// k and at most 768, added in their order to `before`, if there is one, then the bias, then the
// residual.
float Wanted(const Elements& x, const Elements& w, const float* before, float bias,
             float residual) {
  static const bool fuses = FusesProducts();
  const auto k = static_cast<int64_t>(x.size());
  const int64_t depth = RoundedUp(CeilDiv(k, CeilDiv(k, 768)), 2);
  float sum = 0.0f;
  bool adds = before != nullptr;
  if (adds) sum = *before;
  for (int64_t begin = 0; begin < k; begin += depth, adds = true) {
    float chain = 0.0f;
    for (int64_t i = begin; i < std::min(begin + depth, k); ++i) {
      const auto at = static_cast<size_t>(i);
      const float product = x[at] * w[at];
      chain = fuses ? std::fmaf(x[at], w[at], chain) : product + chain;
    }
    sum = adds ? sum + chain : chain;
  }
  return (sum + bias) + residual;
}

Elements RandomElements(std::mt19937& random, int64_t count) {
  std::normal_distribution<float> normal;
  Elements made(static_cast<size_t>(count));
  for (float& value : made) value = normal(random);
  return made;
}

// [rows, columns] as [columns, rows].
Elements Turned(const Elements& from, int64_t rows, int64_t columns) {
  Elements to(from.size());
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      to[static_cast<size_t>(c * rows + r)] = from[static_cast<size_t>(r * columns + c)];
    }
  }
  return to;
}

int64_t Size(std::mt19937& random, int64_t most) {
  return std::uniform_int_distribution<int64_t>(1, most)(random);
}

bool SameBits(const Elements& a, const Elements& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

Tensor Weight(DataType dtype, const Shape& shape, const Elements& values) {
  Tensor made = Tensor::Allocate({dtype, shape});
  FindConvert(DataType::kFloat, dtype)(values.data(), made.mutable_data(), values.size());
  return made;
}

// Rounds to a type.
void RoundTo(DataType dtype, Elements& values) {
  const Tensor rounded = Weight(dtype, Shape({static_cast<int64_t>(values.size())}), values);
  FindConvert(dtype, DataType::kFloat)(rounded.data(), values.data(), values.size());
}

// A product of random numbers, and what it should be.
struct RandomProduct {
  RandomProduct(std::mt19937& random, int64_t m, int64_t n, int64_t k, bool biased, bool adds,
                bool joins = false)
      : m(m),
        n(n),
        k(k),
        adds(adds),
        x(RandomElements(random, m * k)),
        w(RandomElements(random, k * n)) {
    y = RandomElements(random, m * n);
    if (biased) bias = RandomElements(random, n);
    if (joins) residual = RandomElements(random, m * n);
    const Elements columns = Turned(w, k, n);
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        const auto at = static_cast<size_t>(r * n + c);
        wanted.push_back(Wanted(Elements(x.begin() + r * k, x.begin() + (r + 1) * k),
                                Elements(columns.begin() + c * k, columns.begin() + (c + 1) * k),
                                adds ? &y[at] : nullptr, biased ? bias[static_cast<size_t>(c)] : 0,
                                joins ? residual[at] : 0));
      }
    }
  }

  // The right operand: packed, or as it is stored.
  struct Right {
    const Panels* packed = nullptr;
    FloatMatrix stored;
  };

  // The bits of y as PanelProduct computes it.
  Elements Run(const FloatMatrix& left, const Right& right, int threads,
               bool bfloat16 = false) const {
    const PanelProduct product(m, n, k);
    Elements room(static_cast<size_t>(product.room_floats() * threads)), to = y;
    PanelProduct::Operands operands{.x = left,
                                    .bfloat16 = bfloat16,
                                    .packed = right.packed,
                                    .w = right.stored,
                                    .bias = bias.empty() ? nullptr : bias.data(),
                                    .y = to.data(),
                                    .y_stride = n,
                                    .residual = residual.empty() ? nullptr : residual.data(),
                                    .adds = adds};
    product.Run(operands, threads, room.data());
    return to;
  }

  // The right operand packed as it is stored and as it is stored transposed.
  std::array<std::shared_ptr<const Panels>, 2> Packed(DataType dtype) const {
    return {PackPanels(Weight(dtype, {k, n}, w), k, n, false, nullptr),
            PackPanels(Weight(dtype, {n, k}, Turned(w, k, n)), k, n, true, nullptr)};
  }

  // With x as it is stored and stored transposed, on one thread and on three.
  void ExpectBits(const Elements& bits, const Right& right, bool bfloat16 = false) const {
    const Elements turned = Turned(x, m, k);
    for (const int threads : {1, 3}) {
      EXPECT_TRUE(SameBits(Run({x.data(), k, false}, right, threads, bfloat16), bits));
      EXPECT_TRUE(SameBits(Run({turned.data(), m, true}, right, threads, bfloat16), bits));
    }
  }

  int64_t m, n, k;
  bool adds;
  Elements x, w, y, bias, residual, wanted;
};

TEST(PanelProduct, BitsHangNeitherOnTheLayoutNorOnTheThreads) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    const int64_t k = round % 6 == 0 ? 700 + Size(random, 1700) : Size(random, 90);
    const bool alone = round % 4 == 1;  // a single row goes other ways
    const int64_t m = alone ? 1 : Size(random, 40), n = Size(random, alone ? 300 : 100);
    const RandomProduct test(random, m, n, k, round % 2 == 0, round % 3 == 0, round % 5 < 2);
    SCOPED_TRACE(fmt::format("round {}: {} x {} x {}", round, m, k, n));
    const Elements turned = Turned(test.w, k, n);
    test.ExpectBits(test.wanted, {.stored = {test.w.data(), n, false}});
    test.ExpectBits(test.wanted, {.stored = {turned.data(), k, true}});
    for (const auto& panels : test.Packed(DataType::kFloat)) {
      test.ExpectBits(test.wanted, {.packed = panels.get()});
    }
  }
}

TEST(PanelProduct, RowsAndColumnsApartHaveTheSameBits) {
  std::mt19937 random(11);
  const int64_t m = 31, n = 83, k = 1000;
  const RandomProduct whole(random, m, n, k, false, false);
  for (const int64_t rows : {1, 2, 5, 13}) {
    for (const int64_t columns : {1, 7, 16, 40}) {
      Elements y(static_cast<size_t>(m * n));
      for (int64_t r = 0; r < m; r += rows) {
        for (int64_t c = 0; c < n; c += columns) {
          const PanelProduct part(std::min(rows, m - r), std::min(columns, n - c), k);
          Elements room(static_cast<size_t>(part.room_floats()));
          part.Run({.x = {whole.x.data() + r * k, k, false},
                    .w = {whole.w.data() + c, n, false},
                    .y = y.data() + r * n + c,
                    .y_stride = n},
                   1, room.data());
        }
      }
      EXPECT_TRUE(SameBits(y, whole.wanted)) << rows << " rows, " << columns << " columns";
    }
  }
}

// Threads share out rows when there are many, columns, or both.
TEST(PanelProduct, ManyRowsHaveTheSameBitsOnAnyThreads) {
  std::mt19937 random(29);
  for (const auto& [m, n, k] : {std::tuple(64, 50, 30), {131, 700, 90}, {257, 33, 800}}) {
    const RandomProduct test(random, m, n, k, true, true, true);
    const FloatMatrix left{test.x.data(), k, false};
    for (const DataType dtype : {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16}) {
      const auto packed = PackPanels(Weight(dtype, {k, n}, test.w), k, n, false, nullptr);
      const Elements alone = test.Run(left, {.packed = packed.get()}, 1);
      if (dtype == DataType::kFloat) {
        EXPECT_TRUE(SameBits(alone, test.wanted));
      }
      for (const int threads : {2, 4, 6, 8}) {
        EXPECT_TRUE(SameBits(test.Run(left, {.packed = packed.get()}, threads), alone))
            << Name(dtype) << ", " << m << " rows, " << threads << " threads";
      }
    }
  }
}

TEST(PanelProduct, HalvesAreWidenedToTheSameBits) {
  std::mt19937 random(13);
  for (const DataType dtype : {DataType::kFloat16, DataType::kBfloat16}) {
    for (const auto& [m, k] : {std::pair(19, 1), {19, 17}, {19, 1500}, {61, 17}, {61, 1500}}) {
      RandomProduct test(random, m, 150, k, true, false);
      const Tensor weight = Weight(dtype, {k, test.n}, test.w);
      RoundTo(dtype, test.w);
      const auto halves = PackPanels(weight, k, test.n, false, nullptr);
      const FloatMatrix left{test.x.data(), k, false};
      EXPECT_TRUE(SameBits(test.Run(left, {.packed = halves.get()}, 1),
                           test.Run(left, {.stored = {test.w.data(), test.n, false}}, 2)));
    }
  }
}

// The instructions for pairs of bfloat16, where there are any, and the widened elements.
TEST(PanelProduct, PairsOfBfloat16GiveTheSameBits) {
  std::mt19937 random(23);
  for (int round = 0; round < 60; ++round) {
    const int64_t k = round % 3 == 0 ? 700 + Size(random, 1700) : Size(random, 90);
    const int64_t m = round % 4 == 1 ? 1 : Size(random, 70), n = Size(random, 150);
    RandomProduct test(random, m, n, k, round % 2 == 0, round % 3 == 0, round % 5 < 2);
    SCOPED_TRACE(fmt::format("round {}: {} x {} x {}", round, m, k, n));
    RoundTo(DataType::kBfloat16, test.x);
    RoundTo(DataType::kBfloat16, test.w);
    const Elements wanted =
        test.Run({test.x.data(), k, false}, {.stored = {test.w.data(), n, false}}, 1);
    for (const auto& panels : test.Packed(DataType::kBfloat16)) {
      for (const bool bfloat16 : {false, true}) {
        test.ExpectBits(wanted, {.packed = panels.get()}, bfloat16);
      }
    }
  }
}

TEST(PanelProduct, BytesAreWidenedToTheSameBits) {
  std::mt19937 random(19);
  std::uniform_int_distribution<int> any(-128, 127);
  for (const int64_t m : {1, 6, 29}) {
    for (const int64_t k : {1, 17, 1500}) {
      RandomProduct test(random, m, 150, k, true, false);
      Tensor weight = Tensor::Allocate({DataType::kInt8, {k, test.n}});
      auto* bytes = reinterpret_cast<int8_t*>(weight.mutable_data());
      for (size_t i = 0; i < test.w.size(); ++i) {
        bytes[i] = static_cast<int8_t>(any(random));
        test.w[i] = static_cast<float>(bytes[i]);
      }
      const auto panels = PackPanels(weight, k, test.n, false, nullptr);
      const FloatMatrix left{test.x.data(), k, false};
      for (const int threads : {1, 3}) {
        EXPECT_TRUE(SameBits(test.Run(left, {.packed = panels.get()}, threads),
                             test.Run(left, {.stored = {test.w.data(), test.n, false}}, 2)));
      }
    }
  }
}

TEST(PanelProduct, NotANumberStaysInItsRowAndColumn) {
  const int64_t m = 3, n = 5, k = 4;
  std::mt19937 random(17);
  RandomProduct test(random, m, n, k, false, false);
  test.x[static_cast<size_t>(1 * k + 2)] = NAN;
  test.w[static_cast<size_t>(3 * n + 4)] = INFINITY;
  const Elements y = test.Run({test.x.data(), k, false}, {.stored = {test.w.data(), n, false}}, 1);
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t c = 0; c < n; ++c) {
      const float got = y[static_cast<size_t>(r * n + c)];
      EXPECT_EQ(std::isnan(got), r == 1) << r << ", " << c;
      EXPECT_EQ(std::isinf(got), r != 1 && c == 4) << r << ", " << c;
    }
  }
}

}  // namespace
}  // namespace npumesh
