// The text of the lanes compiles alone, without a warning, for each instruction set that a static
// kernel may be compiled for.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>

#include "graph/static_kernel/source/kernel_text.h"
#include "graph/static_kernel/store/instruction_set.h"
#include "graph/static_kernel/store/program_run.h"
#include "runtime/base/files/secure_file.h"

namespace npumesh {
namespace {

void ExpectCompiles(const std::string& compiler, const std::string& file) {
  if (access(compiler.c_str(), X_OK) != 0) return;
  for (const InstructionSet set : {InstructionSet::kBaseline, InstructionSet::kX86V2,
                                   InstructionSet::kX86V3, InstructionSet::kX86V4}) {
    std::vector<std::string> words = {compiler,
                                      "-std=c++20",
                                      "-fsyntax-only",
                                      "-Wall",
                                      "-Wextra",
                                      "-Werror",
                                      file,
                                      "-Wno-psabi",
                                      "-Wno-unused-function",
                                      "-Wno-unused-const-variable"};
    for (std::string& flag : CompilerFlags(set)) words.push_back(std::move(flag));
    const Result<ProgramEnd> end = RunProgram(words, "", std::chrono::minutes(20));
    ASSERT_TRUE(end.ok()) << end.status().ToString();
    EXPECT_EQ(end->code, 0) << compiler << " for " << NameOf(set) << ": " << end->said;
  }
}

TEST(LanesText, CompilesAlone) {
  const std::string file = fmt::format("{}npumesh_lanes_{}.cc", testing::TempDir(), getpid());
  ASSERT_TRUE(WriteFile(file, KernelBeginning(), FileKind::kDebug).ok());
  ExpectCompiles("/usr/bin/g++", file);
  ExpectCompiles("/usr/bin/clang++", file);
  unlink(file.c_str());
}

}  // namespace
}  // namespace npumesh
