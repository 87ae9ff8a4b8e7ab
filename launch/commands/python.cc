// `npumesh python`: starts a script with npumesh's packages and the user's TorchAir beside it.
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "launch/commands/build_facts.h"
#include "launch/commands/command.h"
#include "launch/mpirun/mpirun_plan.h"

namespace npumesh {
namespace {

struct PythonOptions {
  std::string torchair;            // a checkout of TorchAir; empty: as the environment says
  bool vendor = false;             // torch_npu is the vendor's wheel
  std::string program;             // empty: python3
  std::vector<std::string> words;  // of the program
};

constexpr char kTorchAir[] = "NPUMESH_TORCHAIR";
constexpr char kPath[] = "PYTHONPATH";
constexpr char kLibraries[] = "LD_LIBRARY_PATH";

std::string Variable(const char* name) {
  const char* const value = secure_getenv(name);
  return value == nullptr ? "" : value;
}

// The absolute path of a checkout of TorchAir, or of the package in it.
Result<std::string> CheckTorchAir(const std::string& folder) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(folder, error);
  for (const char* below : {"", "torchair", "python/torchair"}) {
    if (std::filesystem::exists(path / below / "core/_backend.py", error)) return path.string();
  }
  return Error(Code::kNotFound,
               "--torchair {}: it has no python/torchair/core/_backend.py; expected a checkout of "
               "TorchAir (Ascend/torchair)",
               folder);
}

// The packages, where they are installed or built.
Result<std::filesystem::path> FindPackages(const std::filesystem::path& self) {
  std::error_code error;
  const std::filesystem::path prefix = self.parent_path().parent_path();
  const std::filesystem::path packages = prefix / NPUMESH_PYTHON_DIR;
  if (std::filesystem::exists(packages / "npumesh/__init__.py", error)) return packages;
  return Error(Code::kNotFound, "{}: the Python packages of npumesh are not there; install them",
               packages.string());
}

Result<std::string> FindPython(const PythonOptions& options) {
  const std::string named = Variable(kPythonVariable);
  if (options.program.empty() && access(named.c_str(), X_OK) == 0) return named;
  const std::string program = options.program.empty() ? "python3" : options.program;
  if (program.find('/') == std::string::npos) {
    return FindProgram(program, Variable("PATH"), "python3");
  }
  if (access(program.c_str(), X_OK) == 0) return program;
  return Error(Code::kNotFound, "--python {}: {}", program, std::strerror(errno));
}

// A script that is named is looked for here, so that all ranks say the same.
Status CheckScript(const std::string& word) {
  if (word.starts_with('-') || access(word.c_str(), R_OK) == 0) return Status();
  return Error(Code::kNotFound, "{}: {}", word, std::strerror(errno));
}

// PYTHONPATH: our packages, the stand-in for TensorFlow, which makes room for an installed one, and
// what the user has.
std::string PathWith(const std::filesystem::path& packages) {
  const std::string users = Variable(kPath);
  const std::string ours =
      fmt::format("{}:{}", packages.string(), (packages / "npu_bridge/stand_in").string());
  return users.empty() ? ours : fmt::format("{}:{}", ours, users);
}

// What set_env.sh gives besides: programs, and the vendor's wheel of torch_npu, find libraries and
// folders by these.
void NameFolders(const std::filesystem::path& prefix) {
  const std::string users = Variable(kLibraries);
  const std::string ours = (prefix / "lib64").string();
  setenv(kLibraries, users.empty() ? ours.c_str() : fmt::format("{}:{}", ours, users).c_str(), 1);
  setenv("ASCEND_HOME_PATH", prefix.c_str(), 0);
  setenv("ASCEND_OPP_PATH", (prefix / "opp").c_str(), 0);
}

// Becomes the program; returns only when it cannot.
Status Become(const std::string& program, const PythonOptions& options) {
  std::vector<std::string> words = {program};
  words.insert(words.end(), options.words.begin(), options.words.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return Error(Code::kIo, "{}: {}", program, std::strerror(errno));
}

Status RunPython(PythonOptions options) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return Error(Code::kIo, "/proc/self/exe: {}", error.message());
  NPUMESH_ASSIGN_OR_RETURN(const std::filesystem::path packages, FindPackages(self));
  NPUMESH_ASSIGN_OR_RETURN(const std::string program, FindPython(options));
  if (!options.words.empty()) NPUMESH_RETURN_IF_ERROR(CheckScript(options.words[0]));
  if (!options.torchair.empty()) {
    NPUMESH_ASSIGN_OR_RETURN(const std::string folder, CheckTorchAir(options.torchair));
    setenv(kTorchAir, folder.c_str(), 1);
  }
  if (options.vendor) setenv("NPUMESH_TORCH_NPU", "wheel", 1);
  NameFolders(self.parent_path().parent_path());
  setenv(kPath, PathWith(packages).c_str(), 1);
  setenv("NPUMESH_COMMAND", self.c_str(), 0);
  return Become(program, options);
}

}  // namespace

Status RunPythonModule(const std::string& module) {
  PythonOptions options;
  options.words = {"-m", module};
  return RunPython(options);
}

std::vector<std::string> PythonWords(std::vector<std::string> words) {
  size_t at = 1;
  while (at < words.size() && words[at].starts_with("--") && words[at] != "--") {
    const bool whole = words[at] == "--vendor" || words[at].find('=') != std::string::npos;
    at += whole ? 1 : 2;
  }
  if (at < words.size() && words[at] == "--") {
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return words;
}

void AddPython(CLI::App& app, Action& action) {
  auto options = std::make_shared<PythonOptions>();
  CLI::App* python = app.add_subcommand(
      "python", "Run a Python script with npumesh's packages, torch_npu and TorchAir");
  AddFooter(*python, "",
            {"npumesh python --torchair ~/torchair train.py --steps 10",
             "npumesh launch -n 2 -- python train.py"},
            "The words after the options go to python3: a script and its words, -m MODULE or -c "
            "CODE. Ends with what the script ends with, with 3 when the script, the packages or "
            "the checkout are not there.\n");
  python
      ->add_option("--torchair", options->torchair,
                   "A checkout of TorchAir, for `import torchair`; else NPUMESH_TORCHAIR")
      ->type_name("DIR");
  python->add_flag("--vendor", options->vendor,
                   "torch_npu is the vendor's wheel, or an error where none is installed; else the "
                   "wheel where there is one");
  python
      ->add_option("--python", options->program,
                   "The Python to run; else NPUMESH_PYTHON, else python3")
      ->type_name("FILE");
  python->prefix_command();
  python->callback([options, python, &action] {
    options->words = python->remaining();
    action = [options] { return Fail("python", RunPython(*options)); };
  });
}

}  // namespace npumesh
