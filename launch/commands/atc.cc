// `npumesh atc`: graphs become offline models.
#include <fmt/ranges.h>

#include <filesystem>

#include "graph/ops/builtin_ops.h"
#include "launch/atc/atc_error.h"
#include "launch/atc/atc_job.h"
#include "launch/commands/answer.h"
#include "launch/commands/versions.h"

namespace npumesh {
namespace {

struct AtcWords {
  AtcOptions options;
  std::vector<std::string> op_libraries;
  LibraryTrust library_trust = LibraryTrust::kOwner;
  bool as_json = false;
};

// Flags of the vendor's atc about kernels, which are not compiled here: they are taken, whatever
// their value, and change nothing.
constexpr std::string_view kWithoutEffect[] = {"ac_parallel_enable",
                                               "aicore_num",
                                               "allow_hf32",
                                               "atomic_clean_policy",
                                               "auto_tune_mode",
                                               "buffer_optimize",
                                               "build_config",
                                               "cal_conf",
                                               "check_report",
                                               "compress_weight_conf",
                                               "compression_optimize_conf",
                                               "core_type",
                                               "customize_dtypes",
                                               "debug_dir",
                                               "deterministic",
                                               "deterministic_level",
                                               "device_id",
                                               "disable_reuse_memory",
                                               "dump_mode",
                                               "enable_attr_compression",
                                               "enable_compress_weight",
                                               "enable_scope_fusion_passes",
                                               "enable_single_stream",
                                               "enable_small_channel",
                                               "fusion_switch_file",
                                               "h2d_overlapped_with_compute",
                                               "hccl_sub_comm_config",
                                               "host_env_cpu",
                                               "host_env_os",
                                               "input_hint_shape",
                                               "is_input_adjust_hw_layout",
                                               "is_output_adjust_hw_layout",
                                               "jit_compile",
                                               "log",
                                               "mdl_bank_path",
                                               "oo_constant_folding",
                                               "oo_dead_code_elimination",
                                               "oo_level",
                                               "op_bank_path",
                                               "op_compiler_cache_dir",
                                               "op_compiler_cache_mode",
                                               "op_debug_config",
                                               "op_debug_level",
                                               "op_name_map",
                                               "op_precision_mode",
                                               "optimization_switch",
                                               "quant_dumpable",
                                               "raw_ge_options",
                                               "save_original_model",
                                               "shape_generalized_build_mode",
                                               "sparsity",
                                               "static_model_ops_lower_limit",
                                               "status_check",
                                               "target",
                                               "tiling_schedule_optimize",
                                               "virtual_type"};

// Flags whose work npumesh does not have, so that a model without it would be another one.
struct RefusedFlag {
  std::string_view name, reason;
};
constexpr RefusedFlag kRefused[] = {
    {"weight", "is of Caffe models, which npumesh does not read"},
    {"insert_op_conf",
     "puts image processing (AIPP) in front of a model, which npumesh does not have; "
     "process the image before"},
};

Status CheckWords(const AtcOptions& options) {
  if (options.mode == 0) {
    const bool graph = !options.model.empty() || !options.model_relation_config.empty();
    if (graph && !options.singleop.empty()) {
      return AtcError(atc_code::kExclusive, "singleop", "excludes --model");
    }
    if (!graph && options.singleop.empty()) {
      return AtcError(atc_code::kRequired, "model",
                      "is required: a file, or a package; or --singleop");
    }
    if (options.output.empty()) {
      return AtcError(atc_code::kRequired, "output", "is required: {}",
                      options.singleop.empty() ? "the name of the file without .om"
                                               : "the folder of the files");
    }
    return Status();
  }
  if (options.mode != 1 && options.mode != 3 && options.mode != 5 && options.mode != 6) {
    return AtcError(atc_code::kValue, "mode",
                    "is {}; expected 0 (compile), 1 or 5 (a model as JSON) or 6 (what an offline "
                    "model says)",
                    options.mode);
  }
  if (options.om.empty()) return AtcError(atc_code::kRequired, "om", "is required with --mode");
  if (options.mode != 6 && options.json.empty()) {
    return AtcError(atc_code::kRequired, "json", "is required with --mode={}", options.mode);
  }
  return Status();
}

Result<Answer> TellOffline(const AtcOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const OfflineFacts facts, ReadOfflineFacts(options.om));
  return Answer{0,
                fmt::format("{}: {}", options.om, InfoText(facts)),
                {.details = nlohmann::json::parse(ToJson(facts))}};
}

Result<Answer> TellModelAsJson(const AtcOptions& options) {
  NPUMESH_RETURN_IF_ERROR(WriteModelJson(options));
  return Answer{
      0,
      fmt::format("{}: {} as JSON, without the bytes of weights\n", options.json, options.om),
      {.details = {{"written", {options.json}}}}};
}

Result<Answer> Compile(const AtcWords& words) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(words.op_libraries, words.library_trust));
  const bool bundles = !BundledModels(words.options).empty();
  NPUMESH_ASSIGN_OR_RETURN(const AtcResult result, bundles ? BundleModels(words.options)
                                                           : RunAtc(words.options, *registry));
  Answer answer;
  const std::string& first = result.written[0];
  answer.text = fmt::format("{}: for npumesh only; it has no kernels, and no NPU takes it\n",
                            fmt::join(result.written, ", "));
  if (!words.options.no_effect.empty()) {
    answer.text += fmt::format("without effect, because no kernels are compiled: --{}\n",
                               fmt::join(words.options.no_effect, ", --"));
  }
  for (const std::string& note : result.notes) answer.text += note + "\n";
  if (words.options.display_model_info != "0") {
    for (const OfflineFacts& facts : result.facts) answer.text += InfoText(facts);
  }
  answer.text += "ATC run success\n";  // what scripts look for
  answer.report.details = {{"written", result.written},
                           {"work_bytes", result.facts[0].work_bytes},
                           {"weight_bytes", result.facts[0].weight_bytes}};
  const size_t ranks = result.facts.size();
  if (bundles || !words.options.singleop.empty()) return answer;
  answer.next = ranks > 1
                    ? fmt::format("npumesh launch -n {} -- run {}", ranks, words.options.output)
                    : fmt::format("npumesh run {}", first);
  return answer;
}

Result<Answer> Work(const AtcWords& words) {
  NPUMESH_RETURN_IF_ERROR(CheckWords(words.options));
  if (words.options.mode == 6) return TellOffline(words.options);
  return words.options.mode == 0 ? Compile(words) : TellModelAsJson(words.options);
}

void AddFlags(CLI::App& command, AtcOptions& options) {
  const auto text = [&command](const char* flag, std::string& value, const char* help) {
    return command.add_option(flag, value, help)->type_name("TEXT");
  };
  command.add_option("--mode", options.mode,
                     "0: compile; 1 or 5: --om as JSON; 6: what the offline model --om says");
  command.add_option("--framework", options.framework,
                     "1: AIR, 5: ONNX; default: the file says it");
  text("--model", options.model, "The graph: .air, .onnx, or the folder of a package");
  text("--output", options.output, "The offline model without .om; of a package its folder");
  text("--soc_version", options.soc_version, "Kept in the file, as Ascend910B1");
  text("--input_shape", options.input_shape,
       "NAME:DIM,DIM;...: shapes of inputs, -1 for open ones");
  text("--input_shape_range", options.input_shape_range, "NAME:LOW~HIGH,DIM;...: open dimensions");
  text("--dynamic_batch_size", options.dynamic_batch_size, "1,2,4: values of first dimensions");
  text("--dynamic_image_size", options.dynamic_image_size, "H,W;H,W: sizes of the image");
  text("--dynamic_dims", options.dynamic_dims, "N,N;N,N: values of all open dimensions");
  text("--input_format", options.input_format, "NCHW, NHWC or ND")
      ->check(CLI::IsMember({"NCHW", "NHWC", "ND", "NCDHW", "NDHWC"}));
  text("--input_fp16_nodes", options.input_fp16_nodes, "NAME;NAME: inputs that are fed as float16");
  text("--output_type", options.output_type, "FP32, FP16, UINT8, INT8, or NODE:PORT:TYPE;...");
  text("--out_nodes", options.out_nodes, "NODE:PORT;...: other outputs than the graph's");
  text("--precision_mode", options.precision_mode,
       "As session.precision_mode; default: the graph's types");
  text("--precision_mode_v2", options.precision_mode_v2,
       "fp16, origin, mixed_float16, mixed_bfloat16");
  text("--modify_mixlist", options.modify_mixlist, "A JSON file, as session.modify_mixlist");
  text("--keep_dtype", options.keep_dtype,
       "A file of what keeps its types, by line: a node, or OpType::Conv2D");
  text("--op_select_implmode", options.op_select_implmode, "high_precision or high_performance");
  text("--optypelist_for_implmode", options.optypelist_for_implmode, "The operators it is for");
  text("--external_weight", options.external_weight,
       "0: weights in the file; 1: beside it in weight/");
  text("--model_relation_config", options.model_relation_config, "Of a package: its relation file");
  text("--cluster_config", options.cluster_config, "Of a package: its file of nodes and devices");
  text("--singleop", options.singleop,
       "In place of --model: a JSON file of operators, each a model; --output is their folder");
  text("--display_model_info", options.display_model_info, "1: say what the model needs");
  text("--om", options.om, "The model of --mode");
  text("--json", options.json, "The file that --mode writes");
}

void AddOtherFlags(CLI::App& command, AtcOptions& options) {
  for (const std::string_view flag : kWithoutEffect) {
    command
        .add_option_function<std::string>(
            fmt::format("--{}", flag),
            [&options, flag](const std::string&) { options.no_effect.emplace_back(flag); },
            "Accepted without effect: no kernels are compiled")
        ->group("");  // not in the help
  }
  for (const RefusedFlag& flag : kRefused) {
    command
        .add_option_function<std::string>(
            fmt::format("--{}", flag.name),
            [&flag](const std::string&) {
              throw CLI::ValidationError(
                  fmt::format("{} --{} {}", atc_code::kValue, flag.name, flag.reason));
            },
            "Refused: it is part of no model of npumesh")
        ->group("");
  }
}

}  // namespace

void AddAtc(CLI::App& app, Action& action) {
  auto words = std::make_shared<AtcWords>();
  CLI::App* command =
      app.add_subcommand("atc", "Compile a graph or package into offline models (.om)");
  AddFooter(
      *command, "",
      {"npumesh atc --framework=5 --model=model.onnx --output=model --soc_version=Ascend910B1",
       "npumesh atc --model=model.onnx --output=model --input_shape=\"x:-1,32\" "
       "--dynamic_batch_size=1,8",
       "npumesh atc --model=mp/ --output=mp_om/",
       "npumesh atc --singleop=add.json --output=op_models --soc_version=Ascend910B1",
       "npumesh atc --mode=6 --om=model.om"});
  AddFlags(*command, words->options);
  AddOtherFlags(*command, words->options);
  AddOpLibraryOption(*command, words->op_libraries, words->library_trust);
  command->add_flag("--report-json", words->as_json, "Print the answer as JSON");
  command->callback([words, command, &action] {
    for (const CLI::Option* option : command->get_options()) {
      if (option->count() == 0) continue;
      words->options.command +=
          fmt::format(" {}={}", option->get_name(), fmt::join(option->results(), ","));
    }
    words->options.command = "atc" + words->options.command;
    words->options.version = VersionsAsJson().value("version", "");
    action = [words] { return Tell("atc", words->as_json, Work(*words)); };
  });
}

}  // namespace npumesh
