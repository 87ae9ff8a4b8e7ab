// Rows of export, fusion, inference, AOE and GE.
#include "graph/config/option_tables.h"
#include "graph/config/value_checks.h"

namespace npumesh {
namespace {

using OptionEffect::kHere;
using OptionEffect::kNone;
using OptionMode::kMaxAutotune;

const OptionRule& ExistingFile() {
  static const auto* const rule =
      new OptionRule{.objection = ObjectionToFile, .accepted = "an existing file"};
  return *rule;
}

void AddExport(CompilerConfig& config, std::vector<Option>& rows) {
  ExportConfig& options = config.export_config;
  ExportExperimentalConfig& experimental = options.experimental;
  rows.insert(
      rows.end(),
      {{"export.export_mode",
        &options.export_mode,
        {},
        kHere,
        "An export sets it; a session refuses it, because an exported graph does not run"},
       {"export.export_path_dir",
        &options.export_path_dir,
        {.objection = ObjectionToPath, .accepted = "a folder, made when it is missing"},
        kHere,
        "Where an export is written"},
       {"export.export_name",
        &options.export_name,
        {.objection = ObjectionToPath, .accepted = "a file name without its ending"},
        kHere,
        "Name of the exported file; several ranks append their number"},
       {"export.experimental.enable_record_nn_module_stack",
        &experimental.enable_record_nn_module_stack,
        {},
        kHere,
        "Keeps the layers (`nn_module_stack`) that GraphBuilder::Module recorded on the nodes, for "
        "models of at least two levels",
        kMaxAutotune},
       {"export.experimental.auto_atc_config_generated",
        &experimental.auto_atc_config_generated,
        {},
        kHere,
        "Writes model_relation_config.json and numa_config.json beside the export",
        kMaxAutotune},
       {"export.experimental.enable_lite_export",
        &experimental.enable_lite_export,
        {},
        kNone,
        "It is the export for a runtime on phones, which npumesh does not simulate",
        kMaxAutotune}});
}

void AddAoeAndFusion(CompilerConfig& config, std::vector<Option>& rows) {
  AoeConfig& aoe = config.aoe_config;
  rows.insert(
      rows.end(),
      {{"aoe_config.aoe_mode",
        &aoe.aoe_mode,
        {.words = {"2"}},
        kHere,
        "Measures which kernels are the fastest on this machine, for graphs without open "
        "dimensions, and takes them (tuning.md)",
        kMaxAutotune},
       {"aoe_config.work_path",
        &aoe.work_path,
        {.objection = ObjectionToFolder, .accepted = "an existing folder, readable and writable"},
        kHere,
        "Has the records of what was measured, in npumesh_tuning, from which later runs take the "
        "winners"},
       {"aoe_config.aoe_config_file", &aoe.aoe_config_file, ExistingFile(), kHere,
        "JSON that says which operators are tuned: tune_ops_name, tune_ops_type, "
        "tune_optimization_level",
        kMaxAutotune},
       {"fusion_config.fusion_switch_file", &config.fusion_config.fusion_switch_file,
        ExistingFile(), kHere,
        "Switches passes by name, or ALL of them: ConstantFoldingPass, DeadNodeEliminationPass and "
        "the fusion passes of fusion.md; passes of the vendor that npumesh does not have are "
        "ignored",
        kMaxAutotune},
       {"inference_config.dynamic_gears_merge_policy",
        &config.inference_config.dynamic_gears_merge_policy,
        {.words = {"zip", "product"}},
        kNone,
        "Gears name the shapes to compile for in advance; npumesh compiles for any shape when it "
        "first sees it",
        kMaxAutotune}});
}

}  // namespace

void AddGeOptions(CompilerConfig& config, std::vector<Option>& rows) {
  AddExport(config, rows);
  AddAoeAndFusion(config, rows);
  GeConfig& ge = config.ge_config;
  rows.insert(
      rows.end(),
      {{"ge_config.enable_single_stream",
        &ge.enable_single_stream,
        {},
        kHere,
        "Keeps a graph on one stream, whatever cc_parallel_enable says",
        kMaxAutotune},
       {"ge_config.oo_level",
        &ge.oo_level,
        {.words = {"O1", "O3"}},
        kHere,
        "O1 folds no constants and runs nodes in their order of the file, whatever "
        "topology_sorting_strategy says",
        kMaxAutotune},
       {"ge_config.oo_constant_folding",
        &ge.oo_constant_folding,
        {},
        kHere,
        "Whether operators with constant inputs are evaluated at compile time; null: as oo_level "
        "says",
        kMaxAutotune},
       {"ge_config.oo_dead_code_elimination",
        &ge.oo_dead_code_elimination,
        {},
        kHere,
        "Whether operators whose outputs are unused are left out; null: they are",
        kMaxAutotune},
       {"ge_config.export_compile_stat",
        &ge.export_compile_stat,
        {.words = {"0", "1", "2"}},
        kNone,
        "fusion_result.json counts matches of the vendor's fusion passes, which do not run here",
        kMaxAutotune},
       {"ge_config.aicore_num",
        &ge.aicore_num,
        {.objection = ObjectionToCores, .accepted = "counts of cube and vector cores, as 24|48"},
        kNone,
        "Kernels run on the host's cores; NPUMESH_NUM_THREADS says on how many",
        kMaxAutotune},
       {"ge_config.optimization_switch",
        &ge.optimization_switch,
        {.objection = ObjectionToSwitches, .accepted = "PassA:on;PassB:off"},
        kHere,
        "Switches passes by name and beats fusion_switch_file and oo_level",
        kMaxAutotune}});
}

}  // namespace npumesh
