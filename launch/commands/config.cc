// `npumesh config` and `npumesh env`: what can be set, and what is.
#include <cstdlib>

#include "graph/config/config_reader.h"
#include "graph/config/validation.h"
#include "launch/catalog/option_page.h"
#include "launch/catalog/tables_json.h"
#include "launch/commands/answer.h"

namespace npumesh {
namespace {

const char* Variable(const char* name) {
  return std::getenv(name);
}

// Reads and validates; tells what has no effect.
Result<Answer> CheckSource(const ConfigSource& source) {
  NPUMESH_ASSIGN_OR_RETURN(const Configuration read, LoadConfiguration(source));
  Answer answer;
  answer.report.verdict = "valid";
  for (const auto& notices : {NoticesOf(read.compiler), NoticesOf(read.session)}) {
    for (const std::string& notice : notices) {
      answer.text += notice + "\n";
      answer.report.Add(Severity::kWarning, notice);
    }
  }
  answer.text += "valid\n";
  return answer;
}

}  // namespace

void AddConfig(CLI::App& app, Action& action) {
  struct Options {
    bool markdown = false;
    bool as_json = false;
    ConfigSource source;
  };
  auto options = std::make_shared<Options>();
  CLI::App* config = app.add_subcommand("config", "Check options of `run`, or list all of them");
  AddFooter(*config, "",
            {"npumesh config --config config.json -o ge_config.oo_level=O1",
             "npumesh config --markdown > docs/config.md"});
  AddConfigOptions(*config, options->source);
  config->add_flag("--markdown", options->markdown, "List all options, as docs/config.md");
  AddJsonFlag(*config, options->as_json);
  config->callback([options, &action] {
    action = [options] {
      if (!options->markdown && !options->source.empty()) {
        return Tell("config", options->as_json, CheckSource(options->source));
      }
      if (options->as_json) return Tell("config", true, Answer{0, "", OptionsReport()});
      Print(ConfigAsMarkdown());
      return 0;
    };
  });
}

void AddEnv(CLI::App& app, Action& action) {
  struct Options {
    bool markdown = false;
    bool as_json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* env = app.add_subcommand("env", "Show the variables npumesh reads");
  AddFooter(*env, "", {"npumesh env --markdown > docs/env.md"});
  CLI::Option* markdown = env->add_flag("--markdown", options->markdown, "As docs/env.md");
  AddJsonFlag(*env, options->as_json)->excludes(markdown);
  env->callback([options, &action] {
    action = [options] {
      const std::string text = options->markdown ? EnvAsMarkdown() : EnvAsText(Variable);
      return Tell("env", options->as_json, Answer{0, text, EnvReport(Variable)});
    };
  });
}

void AddConfigOptions(CLI::App& app, ConfigSource& source) {
  app.add_option("--config", source.file, "JSON file of options (docs/config.md)")
      ->type_name("FILE");
  app.add_option("-o", source.assignments, "One option; beats --config")
      ->type_name("A.B.C=VALUE")
      ->allow_extra_args(false);
}

}  // namespace npumesh
