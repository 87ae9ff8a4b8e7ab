// Makes the calls of the problem lists below this folder (problem_list.h), each line a test case:
//
//   ops_lists_test --gtest_filter='shape_*'           the lists of a folder
//   ops_lists_test --gtest_filter='shape_concat.*'    a list
//   ops_lists_test --gtest_list_tests
//   ops_lists_test FOLDER                             the lists of another folder
//
// The lists are read when it starts, so that a new line needs no compiler. A failure names the file
// and the line. Everything that RunOp looks at holds for each call.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph/ops/toolbox/values/cast.h"
#include "tests/operators/call_text.h"
#include "tests/operators/problem_list.h"
#include "tests/operators/tensor_text.h"
#include "tests/unit/float64_calls.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;

bool IsReal(DataType dtype) {
  return IsFloating(dtype) || dtype == DataType::kComplex64 || dtype == DataType::kComplex128;
}

// The numbers of a tensor of floats, of integers or of bools.
std::vector<double> NumbersOf(const Tensor& tensor) {
  DataType dtype = tensor.dtype();
  if (dtype == DataType::kComplex64) dtype = DataType::kFloat;
  if (dtype == DataType::kComplex128) dtype = DataType::kDouble;
  const uint64_t width = static_cast<uint64_t>(BitsOf(dtype)) / 8;
  std::vector<double> numbers(tensor.bytes() / width);
  FindConvert(dtype, DataType::kDouble)(tensor.data(), numbers.data(),
                                        static_cast<int64_t>(numbers.size()));
  return numbers;
}

// The same bits, or both NaN; with `within` so near.
void ExpectEqual(const Tensor& actual, const Tensor& expected, double within,
                 const std::string& what) {
  ASSERT_EQ(actual.type().ToString(), expected.type().ToString()) << what;
  if (SameBytes(actual, expected)) return;
  if (!IsReal(actual.dtype()) && within == 0 && BitsOf(actual.dtype()) < 16) {
    for (uint64_t i = 0; i < actual.bytes(); ++i) {
      ASSERT_EQ(static_cast<int>(actual.data()[i]), static_cast<int>(expected.data()[i]))
          << what << ", byte " << i;
    }
  }
  const std::vector<double> seen = NumbersOf(actual), wanted = NumbersOf(expected);
  const uint64_t width = actual.bytes() / seen.size();
  for (size_t i = 0; i < seen.size(); ++i) {
    if (std::isnan(seen[i]) && std::isnan(wanted[i])) continue;
    if (within > 0 && std::isfinite(wanted[i])) {
      ASSERT_NEAR(seen[i], wanted[i], within * std::max(1.0, std::fabs(wanted[i])))
          << what << ", element " << i;
      op_test::NoteNear(wanted[i], within * std::max(1.0, std::fabs(wanted[i])));
    } else {
      if (std::memcmp(actual.data() + i * width, expected.data() + i * width, width) == 0) continue;
      FAIL() << what << ", element " << i << " is " << seen[i] << ", expected " << wanted[i];
    }
  }
}

void ExpectOutputs(const Problem& problem, const std::vector<Tensor>& outputs) {
  std::vector<std::string> words = problem.expected;
  double within = 0;
  if (words.size() > 2 && words[words.size() - 2] == "within") {
    within = std::strtod(words.back().c_str(), nullptr);
    ASSERT_GT(within, 0) << words.back();
    words.resize(words.size() - 2);
  }
  ASSERT_EQ(outputs.size(), words.size()) << "outputs";
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string what = fmt::format("output {}", i);
    if (words[i] == "_") continue;
    const bool type_only = words[i].ends_with('?');
    if (type_only) words[i].pop_back();
    const Result<Tensor> expected = ReadTensor(words[i]);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    if (type_only) {
      EXPECT_EQ(outputs[i].type().ToString(), expected->type().ToString()) << what;
    } else {
      ExpectEqual(outputs[i], *expected, within, what);
    }
  }
}

void ExpectSameAs(const Problem& problem, const std::vector<Tensor>& outputs) {
  std::vector<std::string> words = problem.expected;
  std::string type = problem.type;
  if (words[0].find('=') == std::string::npos && !words[0].starts_with('-')) {
    type = words[0];
    words.erase(words.begin());
  } else {
    words = Changed(problem.call, words);
  }
  const Result<OpCall> other = ReadCall(type, words);
  ASSERT_TRUE(other.ok()) << other.status().ToString();
  const Result<std::vector<Tensor>> others = RunOp(*other);
  ASSERT_TRUE(others.ok()) << "the other call: " << others.status().ToString();
  ASSERT_EQ(outputs.size(), others->size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    ExpectEqual(outputs[i], (*others)[i], 0, fmt::format("output {}", i));
  }
}

void ExpectRefusal(const Problem& problem, const OpCall& call) {
  const std::optional<Code> code = CodeOf(problem.expected[0]);
  ASSERT_TRUE(code) << "there is no code \"" << problem.expected[0] << "\"";
  std::vector<std::string> words;
  for (size_t i = 1; i < problem.expected.size(); ++i) {
    Result<std::string> word = Unquoted(problem.expected[i]);
    ASSERT_TRUE(word.ok()) << word.status().ToString();
    words.push_back(*std::move(word));
  }
  ExpectFails(call, *code, words);
}

void Check(const Problem& problem) {
  const Result<OpCall> call = ReadCall(problem.type, problem.call);
  ASSERT_TRUE(call.ok()) << call.status().ToString();
  if (problem.relation == "!") return ExpectRefusal(problem, *call);
  const int64_t before = op_test::Float64Comparisons();
  const Result<std::vector<Tensor>> outputs = RunOp(*call);
  ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
  if (problem.relation == "==") return ExpectSameAs(problem, *outputs);
  if (problem.expected == std::vector<std::string>{"float64"}) {
    EXPECT_GT(op_test::Float64Comparisons(), before) << "float64 does not know this call";
  } else {
    ExpectOutputs(problem, *outputs);
  }
}

// A line of a list as a test case.
class Line : public testing::Test {
 public:
  Line(std::string file, Problem problem) : file_(std::move(file)), problem_(std::move(problem)) {}

  void TestBody() override {
    const Result<std::vector<Problem>> all = Combinations(problem_);
    ASSERT_TRUE(all.ok()) << all.status().ToString();
    for (const Problem& one : *all) {
      const testing::ScopedTrace trace(file_.c_str(), problem_.line, TextOf(one));
      Check(one);
    }
  }

 private:
  const std::string file_;
  const Problem problem_;
};

// A list that could not be read.
class Unreadable : public testing::Test {
 public:
  explicit Unreadable(std::string why) : why_(std::move(why)) {}
  void TestBody() override { FAIL() << why_; }

 private:
  const std::string why_;
};

// shape/concat.txt: the cases shape_concat.ConcatV2_12 and so on, with the number of the line.
void Register(const fs::path& path) {
  const std::string file = path.string();
  const std::string suite = path.parent_path().filename().string() + "_" + path.stem().string();
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const Result<std::vector<Problem>> problems = ReadProblems(text.str());
  const auto add = [&](const std::string& name, int line, auto make) {
    testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, file.c_str(), line, make);
  };
  if (!problems.ok()) {
    const std::string why = file + ": " + problems.status().ToString();
    add("Reading", 1, [why]() -> testing::Test* { return new Unreadable(why); });
    return;
  }
  for (const Problem& problem : *problems) {
    add(fmt::format("{}_{}", problem.type, problem.line), problem.line,
        [file, problem]() -> testing::Test* { return new Line(file, problem); });
  }
}

void RegisterLists(const fs::path& folder) {
  std::vector<fs::path> lists;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".txt" && entry.path().filename() != "CMakeLists.txt") {
      lists.push_back(entry.path());
    }
  }
  std::sort(lists.begin(), lists.end());
  for (const fs::path& list : lists) Register(list);
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  npumesh::RegisterLists(argc > 1 ? argv[1] : NPUMESH_LISTS);
  return RUN_ALL_TESTS();
}
