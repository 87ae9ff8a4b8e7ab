// Hostile bytes: any input gives a model or one error, never a crash, in bounded memory.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "graph/io/model_file.h"
#include "graph/io/npy_header.h"
#include "tests/fuzz/mutator.h"
#include "tests/fuzz/targets.h"
#include "tests/unit/io/models.h"

namespace npumesh::fuzz {
namespace {

constexpr int kMutationsOfASeed = 1500;
constexpr int64_t kMostMegabytes = 1024;

// Both examples in every form that a reader takes.
std::vector<std::string> ModelSeeds() {
  std::vector<std::string> seeds;
  for (std::string_view text : {testing::kRawExample, testing::kAllReduceExample}) {
    const ge::proto::ModelDef def = testing::FromText(text);
    const Model model = testing::Load(text);
    seeds.push_back(def.SerializeAsString());
    seeds.push_back(ToGeProtoText(model));
    seeds.push_back(ToPbtxt(model));
    seeds.push_back(def.graph(0).Utf8DebugString());
  }
  return seeds;
}

std::vector<std::string> NpySeeds() {
  std::vector<std::string> seeds;
  for (const Shape& shape : {Shape(), Shape({3}), Shape({2, 3, 4})}) {
    for (DataType dtype : {DataType::kFloat, DataType::kBool, DataType::kComplex128}) {
      seeds.push_back(FormatNpyHeader({dtype, shape}).value());
    }
  }
  return seeds;
}

// Sanitizers keep freed memory and shadows, so only plain builds measure.
void ExpectBoundedMemory() {
#ifdef NPUMESH_SANITIZED
  return;
#endif
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss / 1024, kMostMegabytes);
}

TEST(FuzzReaders, SeedsLoad) {
  for (const std::string& seed : ModelSeeds()) {
    EXPECT_TRUE(ParseModel(seed, "seed").ok()) << ParseModel(seed, "seed").status().ToString();
    EXPECT_EQ(CheckModel(seed), "");
  }
  for (const std::string& seed : NpySeeds()) EXPECT_TRUE(ParseNpyHeader(seed).ok());
}

TEST(FuzzReaders, ModelsTruncatedAtEveryByte) {
  const std::vector<std::string> seeds = ModelSeeds();
  for (const std::string& seed : {seeds[0], seeds[4]}) {
    for (size_t length = 0; length < seed.size(); ++length) {
      EXPECT_EQ(CheckModel(std::string_view(seed).substr(0, length)), "") << length;
    }
  }
}

TEST(FuzzReaders, MutatedModels) {
  const std::vector<std::string> seeds = ModelSeeds();
  for (size_t s = 0; s < seeds.size(); ++s) {
    Mutator mutator(s + 1);
    for (int i = 0; i < kMutationsOfASeed; ++i) {
      const std::string bytes = mutator.Mutate(seeds[s], seeds);
      ASSERT_EQ(CheckModel(bytes), "") << "seed " << s << " mutation " << i;
    }
  }
  ExpectBoundedMemory();
}

TEST(FuzzReaders, RandomBytes) {
  Mutator mutator(7);
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = mutator.RandomBytes(128);
    ASSERT_EQ(CheckModel(bytes), "") << i;
    ASSERT_EQ(CheckNpy(bytes), "") << i;
  }
}

// A chain of `depth` messages, each field 10 of the one before, inside graph attribute "".
std::string Nested(int depth) {
  std::string inner;
  for (int i = 0; i < depth; ++i) {
    std::string length;
    for (size_t n = inner.size(); length.empty() || n > 0; n >>= 7) {
      length += static_cast<char>((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
    }
    inner = (i % 2 == 0 ? "\x12" : "\x52") + length + inner;
  }
  return inner;
}

TEST(FuzzReaders, DeepNesting) {
  for (int depth : {1, 50, 99, 101, 1000, 20000}) {
    EXPECT_EQ(CheckModel(Nested(depth)), "");
    EXPECT_EQ(CheckModel("graph {" + std::string(static_cast<size_t>(depth), '<')), "");
    std::string text = "op { name: 'n' type: 'N' attr { key: 'k' value { ";
    for (int i = 0; i < depth; ++i) text += "func { attr { value { ";
    for (int i = 0; i < depth; ++i) text += "} } } ";
    EXPECT_EQ(CheckModel(text + "} } }"), "") << depth;
  }
}

TEST(FuzzReaders, ClaimsOfTwoGibibytesCostNothing) {
  const std::string claims[] = {
      std::string("\x3a\xff\xff\xff\xff\x07", 6),          // a graph
      std::string("\x3a\x06\x0a\xff\xff\xff\xff\x07", 8),  // its name
      std::string("\x3a\x08\x32\x06\x0a\xff\xff\xff\xff\x07", 10),
      std::string("\x0a\xff\xff\xff\xff\x07", 6),
      std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f{", 13),
  };
  for (const std::string& claim : claims) {
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(CheckModel(claim), "");
      EXPECT_EQ(CheckNpy(claim), "");
    }
  }
  ExpectBoundedMemory();
}

TEST(FuzzReaders, MutatedNpyHeaders) {
  const std::vector<std::string> seeds = NpySeeds();
  Mutator mutator(11);
  for (int i = 0; i < 20000; ++i) {
    const std::string& seed = seeds[static_cast<size_t>(i) % seeds.size()];
    ASSERT_EQ(CheckNpy(mutator.Mutate(seed, seeds)), "") << i;
  }
  for (const std::string& seed : seeds) {
    for (size_t length = 0; length < seed.size(); ++length) {
      EXPECT_EQ(CheckNpy(std::string_view(seed).substr(0, length)), "");
    }
  }
}

}  // namespace
}  // namespace npumesh::fuzz
