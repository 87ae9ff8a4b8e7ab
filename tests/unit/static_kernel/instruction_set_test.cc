#include "graph/static_kernel/store/instruction_set.h"

#include <gmock/gmock.h>

namespace npumesh {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kV2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3";
constexpr const char* kV3 = "xsave avx avx2 bmi1 bmi2 f16c fma abm movbe";
constexpr const char* kV4 = "avx512f avx512bw avx512cd avx512dq avx512vl";

std::string Processor(const std::string& flags) {
  return "processor\t: 0\nmodel name\t: test\nflags\t\t: fpu " + flags + "\nbugs\t\t: \n\n";
}

std::string UpTo(int level) {
  std::string flags;
  for (int k = 0; k < level; ++k) flags += std::string(k == 0 ? kV2 : k == 1 ? kV3 : kV4) + " ";
  return Processor(flags);
}

TEST(InstructionSet, HasNamesAndFlags) {
  for (const auto set : {InstructionSet::kBaseline, InstructionSet::kX86V2, InstructionSet::kX86V3,
                         InstructionSet::kX86V4}) {
    EXPECT_EQ(InstructionSetNamed(NameOf(set)), set);
  }
  EXPECT_EQ(NameOf(InstructionSet::kX86V3), "x86-64-v3");
  EXPECT_EQ(NameOf(InstructionSet::kBaseline), "baseline");
  EXPECT_EQ(InstructionSetNamed("x86-64-v5"), std::nullopt);
  EXPECT_EQ(InstructionSetNamed(""), std::nullopt);
  EXPECT_THAT(CompilerFlags(InstructionSet::kX86V4), ElementsAre("-march=x86-64-v4"));
  EXPECT_THAT(CompilerFlags(InstructionSet::kBaseline), IsEmpty());
}

TEST(InstructionSet, IsTheBestThatAllFlagsAreThereFor) {
  EXPECT_EQ(InstructionsOf(UpTo(0)), InstructionSet::kBaseline);
  EXPECT_EQ(InstructionsOf(UpTo(1)), InstructionSet::kX86V2);
  EXPECT_EQ(InstructionsOf(UpTo(2)), InstructionSet::kX86V3);
  EXPECT_EQ(InstructionsOf(UpTo(3)), InstructionSet::kX86V4);
  EXPECT_EQ(InstructionsOf(Processor(std::string(kV2) + " " + kV4)), InstructionSet::kX86V2)
      << "AVX-512 without AVX2";
  EXPECT_EQ(InstructionsOf(""), InstructionSet::kBaseline);
  EXPECT_EQ(InstructionsOf("Features\t: fp asimd\n"), InstructionSet::kBaseline);
}

TEST(InstructionSet, MissingIsNamed) {
  EXPECT_EQ(MissingFor(InstructionSet::kX86V4, UpTo(2)), kV4);
  EXPECT_EQ(MissingFor(InstructionSet::kX86V3, UpTo(2)), "");
  EXPECT_EQ(MissingFor(InstructionSet::kBaseline, ""), "");
  EXPECT_EQ(MissingFor(InstructionSet::kX86V2, ""), kV2);
  EXPECT_EQ(MissingFor(InstructionSet::kX86V3, Processor(std::string(kV2) + " xsave avx2")),
            "avx bmi1 bmi2 f16c fma abm movbe");
  EXPECT_EQ(MissingFor(InstructionsHere()), "");
}

}  // namespace
}  // namespace npumesh
