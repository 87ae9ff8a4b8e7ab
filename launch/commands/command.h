// The sub-commands of `npumesh`: one file each, which parses into one options struct and runs.
#ifndef NPUMESH_LAUNCH_COMMANDS_COMMAND_H_
#define NPUMESH_LAUNCH_COMMANDS_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/config/config_reader.h"
#include "graph/ops/op_library.h"
#include "runtime/base/status.h"

namespace npumesh {

// Runs the sub-command that was parsed; returns the exit code: 0 success, 1 `--check` or another
// comparison differs, or `record`, `validate` or `doctor` found a problem, 2 usage, 3 input,
// 4 run-time (also a standard output that cannot be written), 5 peer, 130 stopped by Ctrl-C.
using Action = std::function<int()>;

// Each adds its sub-command to `app`; parsing it sets `action`.
void AddRun(CLI::App& app, Action& action);
void AddLaunch(CLI::App& app, Action& action);
void AddExport(CLI::App& app, Action& action);
void AddValidate(CLI::App& app, Action& action);
void AddVerify(CLI::App& app, Action& action);
void AddTopo(CLI::App& app, Action& action);
void AddSamples(CLI::App& app, Action& action);
void AddImport(CLI::App& app, Action& action);
void AddAtc(CLI::App& app, Action& action);
void AddGraph(CLI::App& app, Action& action);
void AddDump(CLI::App& app, Action& action);
void AddReplay(CLI::App& app, Action& action);
void AddRecord(CLI::App& app, Action& action);
void AddPs(CLI::App& app, Action& action);
void AddAttach(CLI::App& app, Action& action);
void AddProfile(CLI::App& app, Action& action);
void AddOps(CLI::App& app, Action& action);
void AddBench(CLI::App& app, Action& action);
void AddConfig(CLI::App& app, Action& action);
void AddEnv(CLI::App& app, Action& action);
void AddCard(CLI::App& app, Action& action);
void AddKernels(CLI::App& app, Action& action);
void AddDoctor(CLI::App& app, Action& action);
void AddVersion(CLI::App& app, Action& action);
void AddPython(CLI::App& app, Action& action);
void AddCompletion(CLI::App& app, Action& action);
void AddMan(CLI::App& app, Action& action);

// Names the Python that `npumesh python` runs. `npumesh launch` sets it for its ranks.
inline constexpr char kPythonVariable[] = "NPUMESH_PYTHON";

// `npumesh python [OPTIONS] -- SCRIPT` is the same without "--".
std::vector<std::string> PythonWords(std::vector<std::string> words);

// Becomes `npumesh python -m MODULE`; returns only when it cannot: kNotFound without Python or the
// packages, kIo.
Status RunPythonModule(const std::string& module);

// What --help says below the options: `notes` whose lines are whole, the exit codes, and examples.
// `one` is what 1 means; empty: the command does not end with it.
void AddFooter(CLI::App& command, std::string_view one,
               const std::vector<std::string_view>& examples, std::string_view notes = {});

// Adds --config and -o, which fill `source`.
void AddConfigOptions(CLI::App& app, ConfigSource& source);

// Adds --allow-outside: weights, and where links lead, may be outside of their package.
void AddAllowOutsideOption(CLI::App& app, bool& allow_outside);

// Adds --op-library and --allow-writable-library: what OperatorsWith takes.
void AddOpLibraryOption(CLI::App& app, std::vector<std::string>& libraries, LibraryTrust& trust);

// Adds --algorithm-library, which sets NPUMESH_ALGORITHM_LIBRARY of this process.
void AddAlgorithmLibraryOption(CLI::App& app);

// All of them, as `npumesh` offers them.
void AddCommands(CLI::App& app, Action& action);

// The whole program: parses, runs, maps every failure to one line and an exit code.
int NpumeshMain(int argc, const char* const* argv);

// To standard output, at once; NpumeshMain checks that all of it was written.
void Print(std::string_view text);

// Text for people to standard output, folded and coloured as the screen there takes it.
void Show(std::string_view text);

// Prints "npumesh <command>: <message>" to standard error; folded and coloured on a
// terminal.
void PrintFailure(std::string_view command, std::string_view message);

// PrintFailure and the exit code of a failed status.
int Fail(std::string_view command, const Status& status);

}  // namespace npumesh

#endif  // NPUMESH_LAUNCH_COMMANDS_COMMAND_H_
