#include "graph/static_kernel/store/system_compiler.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <optional>

#include "graph/static_kernel/store/program_run.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/printable.h"
#include "runtime/base/text/strings.h"

namespace npumesh {
namespace {

#if defined(__x86_64__)
constexpr int kMachineHere = EM_X86_64;
#elif defined(__aarch64__)
constexpr int kMachineHere = EM_AARCH64;
#else
constexpr int kMachineHere = EM_NONE;  // not compared
#endif

std::string FolderOf(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

std::string VariableOr(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

bool IsProgram(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// Where `name` is found; empty: nowhere. A name with a slash is a path already.
std::string OnPath(const std::string& name, const std::string& path) {
  if (name.find('/') != std::string::npos) return IsProgram(name) ? name : std::string();
  for (const std::string_view folder : Split(path, ":")) {
    std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (IsProgram(candidate)) return candidate;
  }
  return {};
}

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : Split(text, " \t")) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

// The first line of `said` that tells of an error, else the first that is not empty.
std::string TellingLine(std::string_view said) {
  std::string_view first;
  for (const std::string_view line : Split(said, "\n")) {
    const std::string_view text = Trimmed(line);
    if (text.find("error") != std::string_view::npos) return Quotable(text);
    if (first.empty()) first = text;
  }
  return first.empty() ? "it said nothing" : Quotable(first);
}

// How a program failed: "exit code 1: <line>"; empty: it did not.
std::string FailureOf(const ProgramEnd& end) {
  if (end.signal != 0) {
    return fmt::format("was ended by signal {} ({}): {}", end.signal, strsignal(end.signal),
                       TellingLine(end.said));
  }
  if (end.code == 0) return {};
  return fmt::format("ended with exit code {}: {}", end.code, TellingLine(end.said));
}

// What is wrong with `bytes` as a shared object of this machine; empty: nothing.
std::string FaultOfObject(std::string_view bytes) {
  Elf64_Ehdr header;
  if (bytes.empty()) return "is empty";
  if (bytes.size() < sizeof(header) || !bytes.starts_with(ELFMAG)) return "is no ELF file";
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "is no 64-bit ELF file";
  if (header.e_type != ET_DYN) return "is an ELF file but no shared object";
  if (kMachineHere != EM_NONE && header.e_machine != kMachineHere) {
    return fmt::format("is for another kind of processor (ELF machine {}, here {})",
                       header.e_machine, kMachineHere);
  }
  const uint64_t table = uint64_t{header.e_shnum} * header.e_shentsize;
  if (header.e_shoff > bytes.size() || table > bytes.size() - header.e_shoff) return "is cut short";
  return {};
}

Status CheckObjectFile(const std::string& compiler, const std::string& path) {
  const auto bytes = ReadFile(path);
  if (!bytes.ok() && bytes.status().code() == Code::kNotFound) {
    return Error(Code::kUnsupported, "{} ended well but wrote no shared object", compiler);
  }
  if (!bytes.ok()) return bytes.status();
  const std::string fault = FaultOfObject(*bytes);
  if (fault.empty()) return Status();
  return Error(Code::kUnsupported, "{} ended well but what it wrote {}", compiler, fault);
}

}  // namespace

Result<SystemCompiler> SystemCompiler::Find() {
  constexpr std::chrono::seconds kAnswersWithin{20};
  const std::string chosen = VariableOr("CXX", "");
  std::vector<std::string> command = WordsOf(chosen);
  const bool by_variable = !command.empty();
  if (!by_variable) command = {"c++"};
  const std::string path = VariableOr("PATH", "/usr/local/bin:/usr/bin:/bin");
  std::string program = OnPath(command[0], path);
  if (program.empty()) {
    return Error(Code::kNotFound,
                 "no C++ compiler: \"{}\"{} is no program on PATH ({}); install g++ or clang++, or "
                 "name one by CXX",
                 command[0], by_variable ? " of CXX" : "", path);
  }
  command[0] = std::move(program);
  std::vector<std::string> asks = command;
  asks.emplace_back("--version");
  NPUMESH_ASSIGN_OR_RETURN(const ProgramEnd end, RunProgram(asks, "", kAnswersWithin));
  const std::string version(Trimmed(Split(end.said, "\n")[0]));
  std::string failure = end.late ? "does not end" : FailureOf(end);
  if (failure.empty() && version.empty()) failure = "said nothing";
  if (!failure.empty()) {
    return Error(Code::kUnsupported, "asked for its --version, the compiler {} {}; set CXX",
                 command[0], failure);
  }
  return SystemCompiler(std::move(command), Quotable(version));
}

Status SystemCompiler::Compile(const CompileRequest& request) const {
  std::vector<std::string> words = command_;
  for (const auto& flags : {KernelFlags(request.debug), CompilerFlags(request.instructions)}) {
    words.insert(words.end(), flags.begin(), flags.end());
  }
  if (!request.shown_in.empty() && !request.sources.empty()) {
    words.push_back(
        fmt::format("-fdebug-prefix-map={}={}", FolderOf(request.sources[0]), request.shown_in));
    words.insert(words.end(), {"-x", "c++"});  // whatever the sources are called
  }
  words.insert(words.end(), request.sources.begin(), request.sources.end());
  words.insert(words.end(), {"-o", request.object});
  const std::string folder = FolderOf(request.object);
  unlink(request.object.c_str());  // what is there afterwards is new
  const auto end = RunProgram(words, folder, request.time_limit);
  Status status;
  if (!end.ok()) {
    status = end.status();
  } else if (end->late) {
    status = Error(Code::kTimeout, "{} did not end within {} s and was killed", command_[0],
                   request.time_limit.count());
  } else if (const std::string failure = FailureOf(*end); !failure.empty()) {
    status = Error(Code::kUnsupported, "{} {}", command_[0], failure);
  } else {
    status = CheckObjectFile(command_[0], request.object);
  }
  if (!status.ok()) unlink(request.object.c_str());
  return status;
}

std::vector<std::string> KernelFlags(bool debug) {
  std::vector<std::string> flags = {"-std=c++20",        "-shared",         "-fPIC",
                                    "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"};
  if (debug) {
    flags.insert(flags.end(), {"-O0", "-g"});
  } else {
    flags.emplace_back("-O3");
  }
  return flags;
}

}  // namespace npumesh
