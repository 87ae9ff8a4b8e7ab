// `npumesh verify`: the outputs of a kernel beside the operator in float64.
#include "launch/verify/verify.h"

#include <filesystem>

#include "launch/commands/answer.h"
#include "launch/commands/tolerance_options.h"
#include "launch/catalog/environment.h"

namespace npumesh {
namespace {

Result<Answer> VerifyKernel(const VerifyOptions& options) {
  if (options.against.empty() && options.write.empty()) {
    return Error(Code::kInvalidArgument, "expected --against, --write, or both");
  }
  NPUMESH_RETURN_IF_ERROR(CheckTolerance(options.tolerance));
  NPUMESH_ASSIGN_OR_RETURN(const Env env, ReadEnvironment());
  NPUMESH_ASSIGN_OR_RETURN(const Verified verified, Verify(options, env));
  Answer answer = {verified.matches() ? 0 : 1, ToText(verified), ToReport(verified)};
  if (options.against.empty()) {
    answer.next = fmt::format("npumesh verify {} --inputs {} --against YOURS.npy", options.op_file,
                              (std::filesystem::path(options.write) / "inputs").string());
  }
  return answer;
}

}  // namespace

void AddVerify(CLI::App& app, Action& action) {
  auto options = std::make_shared<VerifyOptions>();
  auto as_json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand(
      "verify", "Compare the outputs of a kernel with its operator, computed in float64");
  AddFooter(*command, "an output differs",
            {"npumesh verify relu.json --write case/",
             "npumesh verify relu.json --inputs inputs/ --against mine.npy --json"});
  command
      ->add_option("operator", options->op_file,
                   "One operator: type, tensors and attributes, in the form of atc's --singleop")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--inputs", options->inputs,
                   "A folder with <i>.npy for each input. Default: drawn from --seed")
      ->type_name("FOLDER");
  command->add_option("--seed", options->seed, "Of inputs that are drawn");
  command
      ->add_option("--against", options->against,
                   "What the kernel gave: output 0 as .npy, or a folder with <i>.npy")
      ->type_name("PATH");
  command
      ->add_option("--write", options->write,
                   "Write inputs/ and golden/ into this folder, for the kernel to read")
      ->type_name("FOLDER");
  AddToleranceOptions(*command, options->tolerance);
  AddJsonFlag(*command, *as_json);
  command->callback([options, as_json, &action] {
    action = [options, as_json] { return Tell("verify", *as_json, VerifyKernel(*options)); };
  });
}

}  // namespace npumesh
