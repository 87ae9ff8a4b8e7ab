// `npumesh import`: an ONNX model becomes a graph of ours.
#include <filesystem>
#include <map>

#include "graph/io/model_file.h"
#include "graph/onnx/onnx_file.h"
#include "graph/ops/builtin_ops.h"
#include "launch/catalog/onnx_table.h"
#include "launch/commands/answer.h"
#include "launch/commands/shard_words.h"
#include "launch/report/json_parts.h"
#include "launch/run/dim_bindings.h"
#include "launch/run/onnx_choice.h"
#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

struct ImportWords {
  std::string file;
  std::string output;  // empty: nothing is written
  std::vector<std::string> sequences;
  std::vector<std::string> sets;
  std::vector<std::string> op_libraries;
  LibraryTrust library_trust = LibraryTrust::kOwner;
  bool ops = false;
  bool markdown = false;
  bool as_json = false;
  ShardJobOptions shard;
};

// "NAME=N"
Result<std::map<std::string, int>> LengthsFrom(const std::vector<std::string>& texts) {
  constexpr int64_t kMostElements = 1 << 20;
  std::map<std::string, int> lengths;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      return Error(Code::kInvalidArgument, "\"{}\": expected NAME=N", text);
    }
    NPUMESH_ASSIGN_OR_RETURN(const int64_t length,
                             ParseInt(text.substr(equals + 1), 0, kMostElements, "--sequence"));
    lengths[text.substr(0, equals)] = static_cast<int>(length);
  }
  return lengths;
}

Result<OnnxChoice> ChoiceOf(const ImportWords& words) {
  OnnxChoice choice;
  NPUMESH_ASSIGN_OR_RETURN(choice.sequence_lengths, LengthsFrom(words.sequences));
  NPUMESH_ASSIGN_OR_RETURN(choice.dims, DimBindings::Parse(words.shard.dims));
  NPUMESH_ASSIGN_OR_RETURN(choice.values, InputValues::Parse(words.sets));
  return choice;
}

// What to do with a model that was written, or only checked.
std::string NextOf(const ImportWords& words, const Model& model) {
  if (words.output.empty()) {
    const std::string stem = std::filesystem::path(words.file).stem().string();
    return fmt::format("npumesh import {} -o {}.air: the graph as a file", words.file, stem);
  }
  const Result<std::vector<InputSpec>> inputs = InputsOf(model);
  return fmt::format("npumesh run {}{}", words.output, inputs.ok() ? DimWords(*inputs) : "");
}

Result<Answer> ImportFile(const ImportWords& words) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> registry,
                           OperatorsWith(words.op_libraries, words.library_trust));
  NPUMESH_ASSIGN_OR_RETURN(const OnnxChoice choice, ChoiceOf(words));
  NPUMESH_ASSIGN_OR_RETURN(const bool is_onnx, IsOnnxFile(words.file));
  if (!is_onnx) return LoadOnnx(words.file, *registry).status();  // which says what it is
  Warnings notes;
  NPUMESH_ASSIGN_OR_RETURN(const ChosenModel chosen, LoadFor(words.file, *registry, choice, notes));
  const Model& model = chosen.model;
  PrintWarnings("import", notes);
  const NodeId sink = model.graph.NetOutput();
  const size_t outputs = sink == kNoNode ? 0 : model.graph.node(sink).inputs.size();
  if (!words.output.empty()) NPUMESH_RETURN_IF_ERROR(SaveAir(model, words.output));
  Answer answer;
  answer.text = fmt::format("{}: graph \"{}\", {} nodes, {} inputs, {} outputs, {} subgraphs\n",
                            words.output.empty() ? words.file : words.output, model.graph.name(),
                            model.graph.nodes().size(), model.graph.DataNodes().size(), outputs,
                            model.subgraphs.size());
  answer.report.details = {{"file", words.file},
                           {"written", OrNull(words.output)},
                           {"graph", model.graph.name()},
                           {"nodes", model.graph.nodes().size()},
                           {"inputs", model.graph.DataNodes().size()},
                           {"outputs", outputs},
                           {"subgraphs", model.subgraphs.size()}};
  answer.next = NextOf(words, model);
  return answer;
}

// A package of several ranks in the folder that -o names.
int ImportSharded(const ImportWords& words) {
  const Result<std::shared_ptr<const OpRegistry>> registry =
      OperatorsWith(words.op_libraries, words.library_trust);
  if (!registry.ok()) return Tell("import", words.as_json, registry.status());
  ExportOptions package;
  package.export_path = words.output;
  package.export_name = std::filesystem::path(words.file).stem().string() + "_rank";
  return ShardFile("import", words.file, **registry, words.shard, package, words.as_json);
}

}  // namespace

void AddImport(CLI::App& app, Action& action) {
  auto words = std::make_shared<ImportWords>();
  CLI::App* command = app.add_subcommand("import", "Make a graph of an ONNX model");
  AddFooter(*command, "",
            {"npumesh import model.onnx -o imported.air",
             "npumesh import model.onnx -o fixed.air --dim x=1",
             "npumesh import model.onnx --tp 2 -o split/ --dim x=8", "npumesh import --ops"});
  CLI::Option* file = command->add_option("file", words->file, "An ONNX model")->type_name("FILE");
  CLI::Option* output =
      command
          ->add_option(
              "-o,--output", words->output,
              "Write the graph as .air, or with --tp the package in this folder; without it the "
              "model is checked only")
          ->type_name("FILE");
  CLI::Option* sequence = command
                              ->add_option("--sequence", words->sequences,
                                           "How many elements an input that is a sequence has")
                              ->type_name("NAME=N")
                              ->check(CLI::Validator(
                                  [](const std::string& text) {
                                    return std::string(LengthsFrom({text}).status().message());
                                  },
                                  ""))
                              ->allow_extra_args(false);
  AddOpLibraryOption(*command, words->op_libraries, words->library_trust);
  AddShardOptions(*command, words->shard);
  CLI::Option* set =
      command
          ->add_option("--set", words->sets, "An input that is a constant from now on, as in `run`")
          ->type_name("INPUT=VALUE")
          ->allow_extra_args(false);
  CLI::Option* dim = command->get_option("--dim");
  dim->remove_needs(command->get_option("--tp"));
  dim->description(
      "Sizes for open dimensions, as in `run`: they are fixed in the graph, or with --tp those of "
      "the proof's inputs");
  command->get_option("--tp")->excludes(sequence)->excludes(set)->needs(output);
  CLI::Option* ops =
      command->add_flag("--ops", words->ops, "List the operators that have a translation");
  ops->excludes(file)->excludes(output)->excludes(sequence)->excludes(set)->excludes(dim);
  command->add_flag("--markdown", words->markdown, "As the table of docs/onnx.md")->needs(ops);
  AddJsonFlag(*command, words->as_json)->excludes(command->get_option("--markdown"));
  command->callback([words, &action] {
    if (words->file.empty() && !words->ops) {
      throw CLI::RequiredError("file");
    }
    action = [words] {
      if (words->ops && words->as_json) {
        return Tell("import", true, Answer{0, "", OnnxOpsReport()});
      }
      if (words->ops) {
        words->markdown ? Print(OnnxOpsAsMarkdown()) : Show(OnnxOpsAsText());
        return 0;
      }
      if (words->shard.ranks > 0) return ImportSharded(*words);
      return Tell("import", words->as_json, ImportFile(*words));
    };
  });
}

}  // namespace npumesh
