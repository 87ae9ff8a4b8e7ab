// Products of int8 beside a plain loop, for every instruction set of this machine: equal modulo
// 2^32, however the weights lie and however the work is cut.
#include "graph/ops/toolbox/product/int8_product.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "graph/ops/toolbox/product/int8_kernels.h"
#include "graph/ops/toolbox/product/packed_weights.h"
#include "hwy/targets.h"

namespace npumesh {
namespace {

using Bytes = std::vector<int8_t>;
using Sums = std::vector<int32_t>;

// Lets Highway believe that the machine has only `targets`; 0: what it really has.
void UseTargets(int64_t targets) {
  hwy::SetSupportedTargetsForTest(targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

Bytes RandomBytes(std::mt19937& random, int64_t count) {
  std::uniform_int_distribution<int> any(-128, 127);
  Bytes made(static_cast<size_t>(count));
  for (int8_t& value : made) value = static_cast<int8_t>(any(random));
  return made;
}

struct Int8Case {
  Int8Case(std::mt19937& random, int64_t m, int64_t n, int64_t k, bool x_unsigned = false)
      : Int8Case(m, n, k, RandomBytes(random, m * k), RandomBytes(random, k * n), x_unsigned) {}
  Int8Case(int64_t m, int64_t n, int64_t k, Bytes left, const Bytes& right, bool x_unsigned = false)
      : m(m),
        n(n),
        k(k),
        x_unsigned(x_unsigned),
        x(std::move(left)),
        w(Tensor::Allocate({DataType::kInt8, {k, n}})),
        turned(Tensor::Allocate({DataType::kInt8, {n, k}})) {
    std::copy(right.begin(), right.end(), reinterpret_cast<int8_t*>(w.mutable_data()));
    auto* columns = reinterpret_cast<int8_t*>(turned.mutable_data());
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t i = 0; i < k; ++i) columns[c * k + i] = right[static_cast<size_t>(i * n + c)];
    }
    for (int64_t r = 0; r < m; ++r) {
      for (int64_t c = 0; c < n; ++c) {
        int64_t sum = 0;
        for (int64_t i = 0; i < k; ++i) {
          const int8_t byte = x[static_cast<size_t>(r * k + i)];
          sum += int64_t{x_unsigned ? static_cast<uint8_t>(byte) : byte} * columns[c * k + i];
        }
        wanted.push_back(static_cast<int32_t>(static_cast<uint32_t>(sum)));
      }
    }
  }

  Int8Form Form(bool transposed, int threads) const {
    return {.who = "the test",
            .m = m,
            .n = n,
            .k = k,
            .weight = transposed ? &turned : &w,
            .transposed = transposed,
            .x_unsigned = x_unsigned,
            .threads = threads};
  }

  Sums Run(Int8Product& product) const {
    Sums y(static_cast<size_t>(m * n), 77), room(product.scratch_bytes() / sizeof(int32_t), 99);
    const Status status = product.Run(x.data(), room.data(), [&](int64_t row, const int32_t* sums) {
      std::copy_n(sums, n, y.begin() + row * n);
    });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return y;
  }

  void ExpectByPanels() const {
    for (const bool transposed : {false, true}) {
      for (const int threads : {1, 3}) {
        EXPECT_EQ(Run(*MakeInt8Panels(Form(transposed, threads))), wanted)
            << m << " x " << k << " x " << n << (transposed ? " transposed, " : ", ") << threads
            << " threads";
      }
    }
  }

  void ExpectByChoice() const {
    for (const bool transposed : {false, true}) {
      const auto made = Int8Product::Make(Form(transposed, 2));
      ASSERT_TRUE(made.ok()) << made.status().ToString();
      EXPECT_EQ(Run(*made->product), wanted) << made->choice.ToString();
    }
  }

  int64_t m, n, k;
  bool x_unsigned;
  Bytes x;
  Tensor w, turned;
  Sums wanted;
};

class Int8ProductTest : public testing::Test {
 protected:
  ~Int8ProductTest() override { UseTargets(0); }

  // Calls `body` for each instruction set that Highway has kernels for on this machine.
  template <typename Body>
  static void ForEachTarget(const Body& body) {
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      SCOPED_TRACE(hwy::TargetName(target));
      UseTargets(target);
      body();
      UseTargets(0);
    }
  }
  static void ExpectByPanels(const std::vector<Int8Case>& cases) {
    ForEachTarget([&] {
      for (const Int8Case& one : cases) one.ExpectByPanels();
    });
  }
};

TEST_F(Int8ProductTest, EveryKernelAddsPairsToTheirColumn) {
  ForEachTarget([] {
    const Int8Kernels& kernels = ProcessorInt8Kernels();
    const int64_t columns = kernels.columns;
    for (int64_t rows = 1; rows <= kernels.most_rows; ++rows) {
      std::vector<int32_t> x(static_cast<size_t>(rows));
      Bytes panel(static_cast<size_t>(2 * columns));
      for (int64_t r = 0; r < rows; ++r)
        x[static_cast<size_t>(r)] = static_cast<int32_t>(r << 16 | 100);
      for (size_t i = 0; i < panel.size(); ++i) panel[i] = static_cast<int8_t>(i - 128);
      Sums y(static_cast<size_t>(rows * (columns + 1)), 5);
      for (const bool adds : {false, true}) {
        kernels.multiply[rows - 1]({x.data(), panel.data(), 1}, adds, y.data(), columns + 1);
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            const auto at = static_cast<size_t>(2 * c);
            const int64_t sum = 100 * panel[at] + r * panel[at + 1];
            EXPECT_EQ(y[static_cast<size_t>(r * (columns + 1) + c)], adds ? 2 * sum : sum);
          }
          EXPECT_EQ(y[static_cast<size_t>(r * (columns + 1) + columns)], 5) << "behind row " << r;
        }
      }
    }
  });
}

TEST_F(Int8ProductTest, RandomShapesAreExact) {
  std::mt19937 random(7);
  const auto size = [&](int64_t most) {
    return std::uniform_int_distribution<int64_t>(1, most)(random);
  };
  std::vector<Int8Case> cases;
  for (int round = 0; round < 40; ++round) {
    const int64_t k = round % 8 == 0 ? 1900 + size(2500) : size(90);
    cases.emplace_back(random, size(40), size(100), k);
  }
  ExpectByPanels(cases);
}

TEST_F(Int8ProductTest, EdgesOfTilesPanelsAndBlocksAreExact) {
  std::mt19937 random(9);
  std::vector<Int8Case> cases;
  for (const int64_t m : {1, 13}) {
    for (const int64_t n : {1, 32, 33}) {
      for (const int64_t k : {1, 2, 3, 2047, 2048, 2049}) cases.emplace_back(random, m, n, k);
    }
  }
  ExpectByPanels(cases);
}

TEST_F(Int8ProductTest, RowsAreHandedOutInBlocks) {
  std::mt19937 random(11);
  std::vector<Int8Case> cases;
  cases.emplace_back(random, 700, 41, 35);
  cases.emplace_back(random, 30, 5, 40001);  // few rows fit into a cache
  ExpectByPanels(cases);
}

TEST_F(Int8ProductTest, SumsOfExtremesWrap) {
  const int64_t k = (1 << 17) + 5;  // 2^14 each: sums of 2^31 and more
  std::vector<Int8Case> cases;
  for (const int8_t left : {-128, 127}) {
    cases.emplace_back(2, 3, k, Bytes(static_cast<size_t>(2 * k), left),
                       Bytes(static_cast<size_t>(3 * k), -128));
  }
  EXPECT_LT(cases[0].wanted[0], 0);
  ExpectByPanels(cases);
}

TEST_F(Int8ProductTest, WeightsOfSeveralPiecesArePacked) {
  std::mt19937 random(13);
  Int8Case(random, 2, 3000, 3001).ExpectByPanels();  // more than 8 MiB
}

TEST_F(Int8ProductTest, BytesWithoutASignAreExact) {
  std::mt19937 random(15);
  std::vector<Int8Case> cases;
  for (const int64_t k : {1, 2, 63, 2049}) cases.emplace_back(random, 13, 33, k, true);
  ExpectByPanels(cases);
}

TEST_F(Int8ProductTest, WhateverIsChosenIsExact) {
  std::mt19937 random(17);
  for (const int64_t m : {1, 19, 300}) {
    for (const bool x_unsigned : {false, true}) {
      Int8Case(random, m, 83, 517, x_unsigned).ExpectByChoice();
    }
  }
}

// Sums of 2^26 and odd ones beside them: float32 has no room for them.
TEST_F(Int8ProductTest, WhateverIsChosenAddsMoreThan24Bits) {
  const int64_t k = 4097;
  for (const bool x_unsigned : {false, true}) {
    for (const int8_t left : {-128, -127, 127}) {
      Int8Case(3, 17, k, Bytes(static_cast<size_t>(3 * k), left),
               Bytes(static_cast<size_t>(17 * k), -127), x_unsigned)
          .ExpectByChoice();
    }
  }
}

}  // namespace
}  // namespace npumesh
