#include "launch/commands/dump_arguments.h"

#include "runtime/base/text/parse.h"

namespace npumesh {
namespace {

Result<uint64_t> BytesIn(const std::string& text) {
  return ParseBytes(text, "--dump-max-bytes");
}

}  // namespace

void AddDumpOptions(CLI::App& command, DumpArguments& arguments) {
  constexpr const char* kGroup = "Dump";
  CLI::Option* dump = command.add_option("--dump", arguments.mode,
                                         "Dump the operators' input, output or all (docs/dump.md)");
  dump->check(CLI::IsMember({"input", "output", "all"}))->group(kGroup);
  const auto detail = [&](const char* name, std::string& value, const char* help) {
    return command.add_option(name, value, help)->needs(dump)->group(kGroup);
  };
  detail("--dump-path", arguments.path, "Existing folder for the dump")
      ->type_name("FOLDER")
      ->capture_default_str();
  detail("--dump-step", arguments.step, "Steps to dump, as in \"0|3-5|10\"; default: all")
      ->type_name("STEPS");
  detail("--dump-layer", arguments.layer, "Operators to dump, between blanks; default: all")
      ->type_name("NAMES");
  detail("--dump-data", arguments.data, "Whole tensors, or a .csv of statistics")
      ->check(CLI::IsMember({"tensor", "stats"}))
      ->capture_default_str();
  command
      .add_option("--dump-config", arguments.config,
                  "JSON of dump_config_path; has no effect beside --dump")
      ->type_name("FILE")
      ->group(kGroup);
  command
      .add_option_function<std::string>(
          "--dump-max-bytes",
          [&arguments](const std::string& text) { arguments.max_bytes = BytesIn(text).value(); },
          "Bytes of tensors a rank may dump, as in 2G; statistics behind it")
      ->type_name("BYTES")
      ->check([](const std::string& text) { return std::string(BytesIn(text).status().message()); })
      ->group(kGroup);
  command
      .add_option_function<std::string>(
          "--dump-on-error",
          [&arguments](const std::string& word) { arguments.stop_on_error = word == "stop"; },
          "When the dump fails, say on a full disk: continue or stop the run")
      ->check(CLI::IsMember({"continue", "stop"}))
      ->default_str("continue")
      ->group(kGroup);
}

}  // namespace npumesh
