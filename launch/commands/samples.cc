// `npumesh samples`: packages with inputs and goldens to start from.
#include <filesystem>

#include "launch/catalog/environment.h"
#include "launch/commands/answer.h"
#include "launch/report/json_parts.h"
#include "launch/samples/samples.h"

namespace npumesh {
namespace {

struct SamplesWords {
  std::vector<std::string> names;  // none: all
  std::string folder;              // empty: nothing is written
  bool as_json = false;
};

// `folder`: in which the samples lie, or would.
Answer AnswerOf(const std::vector<const Sample*>& samples, const std::string& folder,
                std::string text) {
  const auto row = [&folder](const Sample* sample) -> nlohmann::json {
    const std::string place = (std::filesystem::path(folder) / sample->name / "").string();
    return {{"name", sample->name},
            {"ranks", sample->ranks},
            {"steps", sample->steps},
            {"model", sample->model},
            {"library", sample->library},
            {"summary", sample->summary},
            {"run", RunCommand(*sample, place)}};
  };
  return {0, std::move(text), {.details = {{"samples", ListOf(samples, row)}}}};
}

Result<Answer> ListSamples(const SamplesWords& words) {
  NPUMESH_ASSIGN_OR_RETURN(std::vector<const Sample*> samples, SamplesNamed(words.names));
  if (words.names.empty()) {
    samples.clear();
    for (const Sample& sample : AllSamples()) samples.push_back(&sample);
  }
  return AnswerOf(samples, "", SamplesAsText(samples));
}

Result<Answer> WriteSamples(const SamplesWords& words) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<const Sample*> samples, SamplesNamed(words.names));
  NPUMESH_ASSIGN_OR_RETURN(const Env env, ReadEnvironment());
  const std::filesystem::path folder = words.folder;
  for (const Sample* sample : samples) {
    const std::string place = folder / sample->name;
    NPUMESH_RETURN_IF_ERROR(WriteSample(*sample, env, place));
    // What is written is told at once, also when a later sample fails.
    if (!words.as_json) Print(RunCommand(*sample, place + "/") + "\n");
  }
  return AnswerOf(samples, words.folder, "");
}

}  // namespace

void AddSamples(CLI::App& app, Action& action) {
  auto words = std::make_shared<SamplesWords>();
  CLI::App* command = app.add_subcommand(
      "samples", "List small packages to start from, or write them with inputs and goldens");
  AddFooter(*command, "",
            {"npumesh samples", "npumesh samples --write samples/",
             "npumesh samples decoder_4 --write s/"});
  command
      ->add_option("names", words->names,
                   "These samples; default: all that need no library of operators")
      ->type_name("SAMPLE");
  command
      ->add_option("--write", words->folder,
                   "Write each to FOLDER/NAME, which must not exist, with a README.md, and print "
                   "the command that runs and checks it")
      ->type_name("FOLDER");
  AddJsonFlag(*command, words->as_json);
  command->callback([words, &action] {
    action = [words] {
      return Tell("samples", words->as_json,
                  words->folder.empty() ? ListSamples(*words) : WriteSamples(*words));
    };
  });
}

}  // namespace npumesh
