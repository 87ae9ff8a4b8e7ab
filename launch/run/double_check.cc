#include "launch/run/double_check.h"

#include "graph/compare/golden/reference_ops.h"
#include "graph/config/config_reader.h"
#include "graph/onnx/onnx_file.h"
#include "graph/session/group_table.h"
#include "graph/session/session_config.h"
#include "graph/session/system.h"
#include "launch/ranks/model_choice.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

using nlohmann::json;

// The options of the run, and those of --against behind them.
Result<SessionOptions> OtherOptions(const RunOptions& options) {
  ConfigSource source = options.config;
  source.assignments.insert(source.assignments.end(), options.against.begin(),
                            options.against.end());
  NPUMESH_ASSIGN_OR_RETURN(const Configuration config, LoadConfiguration(source));
  NPUMESH_ASSIGN_OR_RETURN(SessionOptions session, SessionOptionsFor(config.compiler));
  NPUMESH_RETURN_IF_ERROR(ApplySystemOptions(config.session, session));
  return session;
}

Result<Comparison> CompareWithOptions(World& world, const RunOptions& options, RunJob& job) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string file,
                           ChooseModelFile(options.path, world.rank(), world.size()));
  NPUMESH_ASSIGN_OR_RETURN(SessionOptions session_options, OtherOptions(options));
  session_options.registry = &job.registry();
  session_options.card = nullptr;
  NPUMESH_ASSIGN_OR_RETURN(session_options.groups, ReadGroupTable(FolderOf(file)));
  NPUMESH_ASSIGN_OR_RETURN(Model model, LoadAnyModel(file, job.registry()));
  NPUMESH_ASSIGN_OR_RETURN(const OperatorOrder order,
                           OperatorOrder::FromGraph(job.session().model().graph, job.registry()));
  NPUMESH_ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      Session::Create(world, job.memory(), std::move(model), std::move(session_options)));
  Recorder recorder(options.golden, 0, false);
  NPUMESH_RETURN_IF_ERROR(session->Run(job.recorded_inputs(), &recorder).status());
  return CompareSources(job.recorder()->source(), recorder.source(), &order, {});
}

// "MatMul_3 (MatMulV2): float16 and float32, 12 of 64 elements differ, max abs 0.002".
std::vector<std::string> DifferingLines(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const OperatorRow& row : comparison.rows) {
    const TensorRow* const worst = row.Worst();
    if (!row.differs() || worst == nullptr) continue;
    const std::string types =
        worst->mine.dtype == worst->golden.dtype
            ? std::string(Name(worst->mine.dtype))
            : fmt::format("{} and {}", Name(worst->mine.dtype), Name(worst->golden.dtype));
    lines.push_back(fmt::format("{} ({}): {}, {} of {} elements differ, max abs {:.6g}",
                                Printable(row.name), Printable(row.type), types,
                                worst->distance.differing, worst->mine.shape.elements(),
                                worst->distance.max_abs));
  }
  return lines;
}

Result<Comparison> CompareWithReference(World& world, const RunOptions& options, RunJob& job) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string file,
                           ChooseModelFile(options.path, world.rank(), world.size()));
  SessionOptions session_options;
  session_options.registry = &ReferenceOps();
  NPUMESH_ASSIGN_OR_RETURN(session_options.groups, ReadGroupTable(FolderOf(file)));
  Model model = job.session().model();
  NPUMESH_ASSIGN_OR_RETURN(const OperatorOrder order,
                           OperatorOrder::FromGraph(model.graph, ReferenceOps()));
  NPUMESH_ASSIGN_OR_RETURN(
      const std::unique_ptr<Session> session,
      Session::Create(world, job.memory(), std::move(model), std::move(session_options)));
  Recorder recorder("float64", 0, false);
  NPUMESH_RETURN_IF_ERROR(session->Run(job.recorded_inputs(), &recorder).status());
  NPUMESH_ASSIGN_OR_RETURN(const OperatorRoundings roundings, job.Roundings());
  return CompareSources(job.recorder()->source(), recorder.source(), &order,
                        {.reorder = true, .roundings = &roundings});
}

// What the other ranks need to know of a comparison.
json Summary(const Comparison& comparison) {
  json summary = {{"compared", comparison.rows.size()}, {"first", comparison.first}};
  const OperatorRow* const first = comparison.First();
  if (first == nullptr) return summary;
  summary["key"] = first->key;
  summary["name"] = first->name;
  summary["type"] = first->type;
  if (const TensorRow* worst = first->Worst()) {
    summary["differing"] = worst->distance.differing;
    summary["max_abs"] = worst->distance.max_abs;
  }
  return summary;
}

// A comparison with the first differing operator only, in its place.
Comparison FromSummary(const json& summary) {
  Comparison comparison;
  comparison.first = summary.value("first", -1);
  if (comparison.first < 0) return comparison;
  comparison.rows.resize(static_cast<size_t>(comparison.first) + 1);
  comparison.rows.back().type = summary.value("type", "");
  return comparison;
}

}  // namespace

Result<DoubleVerdict> DoubleCheck(World& world, RankCircle& circle, const RunOptions& options,
                                  RunJob& job) {
  const Result<Comparison> comparison = options.against.empty()
                                            ? CompareWithReference(world, options, job)
                                            : CompareWithOptions(world, options, job);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<Outcome> outcomes,
                           circle.Share(Outcome::From(comparison.status())));
  if (!comparison.ok()) return comparison.status();
  if (const int failed = Culprit(outcomes); failed >= 0) {
    return Error(Code::kPeerLost, "rank {}: {}", failed,
                 outcomes[static_cast<size_t>(failed)].message);
  }
  const std::string mine =
      Summary(*comparison).dump(-1, ' ', false, json::error_handler_t::replace);
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<std::string> texts, circle.Share(mine));
  std::vector<Comparison> ranks;
  std::vector<json> summaries;
  for (const std::string& text : texts) {
    summaries.push_back(json::parse(text, nullptr, /*allow_exceptions=*/false));
    ranks.push_back(FromSummary(summaries.back()));
  }
  DoubleVerdict verdict;
  verdict.compared = comparison->rows.size();
  if (!options.against.empty()) verdict.differing = DifferingLines(*comparison);
  verdict.rank = RankToBlame(ranks, nullptr);
  if (verdict.rank < 0) return verdict;
  const json& blamed = summaries[static_cast<size_t>(verdict.rank)];
  verdict.key = blamed.value("key", "");
  verdict.name = blamed.value("name", "");
  verdict.type = blamed.value("type", "");
  verdict.distance.differing = blamed.value("differing", int64_t{0});
  verdict.distance.max_abs = blamed.value("max_abs", 0.0);
  return verdict;
}

}  // namespace npumesh
