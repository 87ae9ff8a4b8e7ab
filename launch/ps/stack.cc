#include "launch/ps/stack.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <string_view>
#include <vector>

#include "launch/mpirun/child_process.h"
#include "launch/mpirun/mpirun_plan.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

constexpr std::chrono::seconds kPatience{30};

struct Debugger {
  std::string_view name;
  std::vector<std::string> words;  // behind its path
};

std::vector<Debugger> DebuggersFor(int process) {
  const std::string number = fmt::format("{}", process);
  return {{"py-spy", {"dump", "--native", "--pid", number}},
          {"eu-stack", {"-p", number}},
          {"gdb", {"-nx", "-batch", "-p", number, "-ex", "thread apply all bt 32"}}};
}

}  // namespace

Result<std::string> StackOf(int process) {
  const char* const folders = secure_getenv("PATH");
  Status failure = Error(Code::kNotFound,
                         "none of py-spy, eu-stack and gdb is in PATH; the Debian package gdb has "
                         "one");
  for (const Debugger& debugger : DebuggersFor(process)) {
    const Result<std::string> path =
        FindProgram(debugger.name, folders == nullptr ? "" : folders, "");
    if (!path.ok()) continue;
    std::vector<std::string> words = {*path};
    words.insert(words.end(), debugger.words.begin(), debugger.words.end());
    std::string output;
    std::string errors;
    ChildCare care;
    care.timeout = kPatience;
    const Result<ChildEnd> end = RunChild(
        words, [&](std::string_view bytes) { output += bytes; },
        [&](std::string_view bytes) { errors += bytes; }, care);
    NPUMESH_RETURN_IF_ERROR(end.status());
    if (end->code == 0 && !end->late && output.find("#0") != output.npos) return output;
    if (end->code == 0 && !end->late && debugger.name == "py-spy") return output;
    failure = Error(Code::kIo, "{} says nothing of process {}: {}", debugger.name, process,
                    end->late ? "it took too long" : Quotable(errors));
  }
  return failure;
}

}  // namespace npumesh
