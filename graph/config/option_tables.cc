#include "graph/config/option_tables.h"

#include "graph/config/value_checks.h"

namespace npumesh {
namespace {

constexpr std::string_view kNoQuantDump =
    "No pass here fuses quantisation away, so what lies before it is dumped in any case";

}  // namespace

OptionTable OptionsOf(CompilerConfig& config) {
  OptionTable table;
  table.rows.push_back({"mode",
                        &config.mode,
                        {.words = {"max-autotune", "reduce-overhead", "npugraph_ex"}},
                        OptionEffect::kHere,
                        "The last two capture a graph once and replay it, and take the aclgraph "
                        "options; a simulated NPU computes the same in each"});
  AddDebugOptions(config, table.rows);
  AddDumpOptions(config, table.rows);
  AddGeOptions(config, table.rows);
  AddExperimentalOptions(config, table.rows);
  AddCaptureOptions(config, table.rows);
  // The plural is what later releases of the vendor write.
  table.aliases.emplace("experimental_config.keep_inference_input_mutations",
                        "experimental_config.keep_inference_input_mutation");
  return table;
}

OptionTable OptionsOf(CompilerConfig& config, SystemOptions& options) {
  OptionTable table = OptionsOf(config);
  const OptionTable session = OptionsOf(options);
  table.rows.insert(table.rows.end(), session.rows.begin(), session.rows.end());
  return table;
}

void AddDebugOptions(CompilerConfig& config, std::vector<Option>& rows) {
  DebugConfig& debug = config.debug;
  constexpr auto kHere = OptionEffect::kHere;
  constexpr auto kMax = OptionMode::kMaxAutotune;
  const OptionRule folder = {.objection = ObjectionToPath,
                             .accepted = "a folder, made when it is missing"};
  rows.insert(
      rows.end(),
      {{"debug.graph_dump.type",
        &debug.graph_dump.type,
        {.words = {"txt", "pbtxt", "py"}},
        kHere,
        "Writes the graph as it was given (`dynamo_original_...`) and as it runs "
        "(`dynamo_optimized_...`)"},
       {"debug.graph_dump.path", &debug.graph_dump.path, folder, kHere, "Where graph_dump writes"},
       {"debug.data_dump.type",
        &debug.data_dump.type,
        {.words = {"npy"}},
        kHere,
        "Runs as run_eagerly does and writes each tensor of each operator for numpy; in C++ "
        "`filter` chooses nodes",
        kMax},
       {"debug.data_dump.path", &debug.data_dump.path, folder, kHere, "Where data_dump writes",
        kMax},
       {"debug.fx_summary.type",
        &debug.fx_summary.type,
        {.words = {"csv"}},
        kHere,
        "Writes `summary_rank_...csv` into the working folder: types, support and calls of the "
        "graph's operators",
        kMax},
       {"debug.fx_summary.skip_compile",
        &debug.fx_summary.skip_compile,
        {},
        kHere,
        "With a summary: runs as run_eagerly does instead of compiling",
        kMax},
       {"debug.run_eagerly",
        &debug.run_eagerly,
        {},
        kHere,
        "Runs operator by operator as written: nothing is folded or left out"},
       {"debug.deadlock_check",
        &debug.deadlock_check,
        {},
        kHere,
        "Before a run: names collectives that may wait for each other's vector cores "
        "(card.md)"}});
}

void AddDumpOptions(CompilerConfig& config, std::vector<Option>& rows) {
  DumpConfig& dump = config.dump_config;
  constexpr auto kHere = OptionEffect::kHere;
  constexpr auto kMax = OptionMode::kMaxAutotune;
  const OptionRule folder = {.objection = ObjectionToFolder,
                             .accepted = "an existing folder, readable and writable"};
  rows.insert(
      rows.end(),
      {{"dump_config.enable_dump",
        &dump.enable_dump,
        {},
        kHere,
        "Dumps operators while the graph runs",
        kMax},
       {"dump_config.dump_path", &dump.dump_path, folder, kHere,
        "Receives the folders `worldsize<N>_global_rank<R>`", kMax},
       {"dump_config.dump_mode",
        &dump.dump_mode,
        {.words = {"input", "output", "all"}},
        kHere,
        "What of an operator is dumped",
        kMax},
       {"dump_config.quant_dumpable",
        &dump.quant_dumpable,
        {},
        OptionEffect::kNone,
        kNoQuantDump,
        kMax},
       {"dump_config.dump_step",
        &dump.dump_step,
        {.objection = ObjectionToSteps,
         .accepted =
             "steps and upward ranges joined by bars, at most 100, as 0|3-5|10; empty: all"},
        kHere,
        "Which steps are dumped",
        kMax},
       {"dump_config.dump_layer",
        &dump.dump_layer,
        {.objection = ObjectionToLayers,
         .accepted = "operator names with blanks between; empty: all"},
        kHere,
        "Which operators are dumped",
        kMax},
       {"dump_config.dump_data",
        &dump.dump_data,
        {.words = {"tensor", "stats"}},
        kHere,
        "Whole tensors, or a table of their statistics",
        kMax},
       {"dump_config.dump_config_path",
        &dump.dump_config_path,
        {.objection = ObjectionToJsonFile, .accepted = "an existing .json file"},
        kHere,
        "Dumps as the vendor's JSON says; without effect beside enable_dump",
        kMax},
       {"dump_config.data_dump_stage",
        &dump.data_dump_stage,
        {.words = {"original", "optimized"}},
        OptionEffect::kNone,
        "It belongs to the dump of captured graphs, and a simulated NPU dumps in max-autotune only",
        OptionMode::kCapture}});
}

}  // namespace npumesh
