// `npumesh samples`: packages with inputs and goldens to start from.
#include <filesystem>

#include "launch/commands/command.h"
#include "launch/pages/environment.h"
#include "launch/samples/samples.h"

namespace npumesh {
namespace {

struct SamplesWords {
  std::vector<std::string> names;  // none: all
  std::string folder;              // empty: nothing is written
};

Status ListSamples(const SamplesWords& words) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<const Sample*> samples, SamplesNamed(words.names));
  Show(SamplesAsText(samples));
  return Status();
}

Status WriteSamples(const SamplesWords& words) {
  NPUMESH_ASSIGN_OR_RETURN(const std::vector<const Sample*> samples, SamplesNamed(words.names));
  NPUMESH_ASSIGN_OR_RETURN(const Env env, ReadEnvironment());
  const std::filesystem::path folder = words.folder;
  for (const Sample* sample : samples) {
    const std::string place = folder / sample->name;
    NPUMESH_RETURN_IF_ERROR(WriteSample(*sample, env, place));
    Print(RunCommand(*sample, place + "/") + "\n");
  }
  return Status();
}

}  // namespace

void AddSamples(CLI::App& app, Action& action) {
  auto words = std::make_shared<SamplesWords>();
  CLI::App* command = app.add_subcommand(
      "samples", "List small packages to start from, or write them with inputs and goldens");
  AddFooter(*command, "",
            {"npumesh samples", "npumesh samples --write samples/",
             "npumesh samples decoder_4 --write s/"});
  command->add_option("names", words->names, "These samples; default: all")->type_name("NAME");
  command
      ->add_option("--write", words->folder,
                   "Write each to FOLDER/NAME, which must not exist, with a README.md, and print "
                   "the command that runs and checks it")
      ->type_name("FOLDER");
  command->callback([words, &action] {
    action = [words] {
      const Status status = words->folder.empty() ? ListSamples(*words) : WriteSamples(*words);
      return status.ok() ? 0 : Fail("samples", status);
    };
  });
}

}  // namespace npumesh
