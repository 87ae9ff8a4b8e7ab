// Writes pages for the tests that open them: make_page profile <file> <ranks> <spans> of a made-up
// run, make_page compare <file> <operators> of a made-up comparison, make_page graph <file>
// <layers> of a made-up model, make_page record <file> <ranks> <calls> of made-up flight records.
#include <cstdio>
#include <optional>

#include "graph/ir/graph_builder.h"
#include "graph/ops/builtin_ops.h"
#include "launch/dump/compare_page.h"
#include "launch/profile/profile_page.h"
#include "launch/record/record_page.h"
#include "launch/view/graph_page.h"
#include "launch/view/value_types.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/parse.h"
#include "tests/unit/launch/layered_model.h"
#include "tests/unit/profile_view/profiles.h"
#include "tests/unit/record/records.h"

namespace npumesh::testing {
namespace {

Status MakeProfilePage(const std::string& path, std::string_view ranks, std::string_view spans) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t rank_count, ParseInt(ranks, 1, 64, "ranks"));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t span_count, ParseInt(spans, 1, 10'000'000, "spans"));
  std::vector<RankProfile> profiles =
      LikelyRun(static_cast<int>(rank_count), static_cast<size_t>(span_count));
  profiles.back().ended = false;  // so that the page has a warning
  const CommonClock clock(profiles);
  const ProfileFacts facts = FactsOf(profiles, CollectiveCalls(profiles), clock);
  return WriteFile(path,
                   ProfilePage(profiles, clock, facts, MachineLimits{100, 10},
                               {"npumesh profile prof/", "npumesh 0", "today"})
                       .html,
                   FileKind::kData);
}

// Half of its rows differ, by one more in each column.
Tensor Wrong(const TensorType& type) {
  std::vector<float> values(static_cast<size_t>(type.shape.elements()), 1.0f);
  for (size_t i = values.size() / 2; i < values.size(); ++i) values[i] += static_cast<float>(i);
  return Tensor::FromVector<float>(type, values);
}

// A chain of additions over a skip from its beginning. Rank 1 is wrong from its middle on.
Status MakeComparePage(const std::string& path, std::string_view operators) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t count, ParseInt(operators, 4, 100'000, "operators"));
  const TensorType type{DataType::kFloat, {40, 50}};
  const Tensor right = Tensor::FromVector<float>(type, std::vector<float>(2000, 1.0f));
  const Tensor wrong = Wrong(type);
  GraphBuilder g("made up");
  const Value begin = g.Data("x", type);
  Value value = begin;
  std::vector<MemorySource> mine(2, MemorySource("mine")), golden(2, MemorySource("golden"));
  for (int64_t i = 0; i < count; ++i) {
    const std::string name = fmt::format("layer{}/</script>/add", i);
    value = g.Op("Add", {{"x1", value}, {"x2", i % 10 == 9 ? begin : value}}, {}, name);
    for (size_t rank = 0; rank < 2; ++rank) {
      mine[rank].Add(name, "Add", Side::kOutput, 0, rank == 1 && i >= count / 2 ? wrong : right);
      golden[rank].Add(name, "Add", Side::kOutput, 0, right);
    }
  }
  g.Output({value});
  NPUMESH_ASSIGN_OR_RETURN(const Model model, g.Build());
  NPUMESH_ASSIGN_OR_RETURN(const OperatorOrder order,
                           OperatorOrder::FromGraph(model.graph, BuiltinOps()));
  CompareOptions options;
  options.detailed = kDetailedOperators;
  std::vector<RankComparison> comparisons(2);
  for (size_t rank = 0; rank < 2; ++rank) {
    comparisons[rank].rank = static_cast<int>(rank);
    NPUMESH_ASSIGN_OR_RETURN(comparisons[rank].comparison,
                             CompareSources(mine[rank], golden[rank], &order, options));
  }
  NPUMESH_ASSIGN_OR_RETURN(const std::string page,
                           ComparePage(comparisons, 1, &model.graph, BuiltinOps(),
                                       {"npumesh dump compare mine golden", "npumesh 0", "today"}));
  return WriteFile(path, page, FileKind::kData);
}

Status MakeGraphPage(const std::string& path, std::string_view layers) {
  NPUMESH_ASSIGN_OR_RETURN(const int64_t count, ParseInt(layers, 1, 10'000, "layers"));
  Model model = LayeredModel(static_cast<int>(count));
  NPUMESH_RETURN_IF_ERROR(model.graph.Rename(model.graph.Find("head"), "<b>head</b></script>"));
  InferTypes(BuiltinOps(), nullptr, model);
  NPUMESH_ASSIGN_OR_RETURN(
      const std::string page,
      GraphPage(model, BuiltinOps(), {"npumesh graph layered.air", "npumesh 0", "today"}));
  return WriteFile(path, page, FileKind::kData);
}

// A rank that did not come, rank 2, in the last of so many calls.
Status MakeRecordPage(const std::string& path, std::string_view ranks, std::string_view calls) {
  constexpr int kAbsent = 2;
  NPUMESH_ASSIGN_OR_RETURN(const int64_t count, ParseInt(ranks, 3, 1024, "ranks"));
  NPUMESH_ASSIGN_OR_RETURN(const int64_t all, ParseInt(calls, 2, 10'000, "calls"));
  std::vector<RankRecord> records;
  for (int rank = 0; rank < count; ++rank) {
    RankRecord& record = records.emplace_back(RecordOf(rank, static_cast<int>(count)));
    AddGroup(record, kTp, "tp", fmt::format("0-{}", count - 1));
    for (int64_t call = 1; call <= (rank == kAbsent ? all - 1 : all); ++call) {
      AddCall(record, kTp, static_cast<uint64_t>(call), call * 10'000 + rank * 100).place =
          "model.py:42 (step)";
    }
    if (rank != kAbsent) CutAt(record, flight::Stage::kEntered);
  }
  NPUMESH_ASSIGN_OR_RETURN(const Joined joined, Join(records));
  return WriteFile(path,
                   RecordPage(records, joined, {"npumesh record records/", "npumesh 0", "today"}),
                   FileKind::kData);
}

Status MakePage(const std::vector<std::string>& arguments) {
  if (arguments.size() == 4 && arguments[0] == "profile") {
    return MakeProfilePage(arguments[1], arguments[2], arguments[3]);
  }
  if (arguments.size() == 3 && arguments[0] == "compare") {
    return MakeComparePage(arguments[1], arguments[2]);
  }
  if (arguments.size() == 3 && arguments[0] == "graph") {
    return MakeGraphPage(arguments[1], arguments[2]);
  }
  if (arguments.size() == 4 && arguments[0] == "record") {
    return MakeRecordPage(arguments[1], arguments[2], arguments[3]);
  }
  return Error(
      Code::kInvalidArgument,
      "usage: make_page profile <file> <ranks> <spans> | compare <file> <operators> | graph "
      "<file> <layers> | record <file> <ranks> <calls>");
}

}  // namespace
}  // namespace npumesh::testing

int main(int argc, char** argv) {
  const npumesh::Status status = npumesh::testing::MakePage({argv + 1, argv + argc});
  if (!status.ok()) std::fprintf(stderr, "make_page: %s\n", status.ToString().c_str());
  return npumesh::ExitCode(status);
}
