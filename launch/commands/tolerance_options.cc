#include "launch/commands/tolerance_options.h"

#include "launch/commands/validators.h"

namespace npumesh {
namespace {

CLI::Validator IsToleranceRule() {
  return {[](const std::string& text) {
            return std::string(ParseToleranceRule(text, "value").status().message());
          },
          ""};
}

}  // namespace

void AddToleranceOptions(CLI::App& command, ToleranceOptions& options) {
  command
      .add_option_function<std::string>(
          "--tolerance",
          [&options](const std::string& text) {
            options.rule = *ParseToleranceRule(text, "--tolerance");
          },
          "How far an output may be from its golden. close (default): as far as rounding explains, "
          "by dtype, depth, length of sums and scale of each output. GOLDENS/tolerance.json may "
          "say so for each output")
      ->type_name("close|exact|RTOL,ATOL")
      ->check(IsToleranceRule());
  command.add_option("--rtol", options.rtol, "Relative tolerance, in place of --tolerance")
      ->type_name("NUMBER")
      ->check(NumberFromZero());
  command.add_option("--atol", options.atol, "Absolute tolerance, in place of --tolerance")
      ->type_name("NUMBER")
      ->check(NumberFromZero());
}

Status CheckTolerance(const ToleranceOptions& options) {
  if (!options.rule || !(options.rtol || options.atol)) return Status();
  return Error(Code::kInvalidArgument,
               "--tolerance says what --rtol and --atol say; give one or the other");
}

}  // namespace npumesh
