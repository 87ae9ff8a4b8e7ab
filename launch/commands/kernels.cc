// `npumesh kernels`: the store of static kernels.
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "graph/static_kernel/store/kernel_store.h"
#include "graph/static_kernel/store/program_run.h"
#include "launch/commands/answer.h"
#include "launch/report/json_parts.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

constexpr uint64_t kMostText = uint64_t{16} << 20;
constexpr std::chrono::seconds kPackageLimit{120};

struct KernelsOptions {
  std::string store;  // empty: that of this user
  std::string key;
  std::string package;
  int days = 30;
  bool as_json = false;
};

Result<std::string> RootOf(const KernelsOptions& options) {
  return options.store.empty() ? KernelStoreRoot() : Result<std::string>(options.store);
}

// What only looks makes no store.
Result<std::optional<KernelStore>> ExistingStore(const KernelsOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string root, RootOf(options));
  if (!std::filesystem::exists(root)) return std::optional<KernelStore>();
  NPUMESH_ASSIGN_OR_RETURN(KernelStore store, KernelStore::Open(root));
  return std::optional<KernelStore>(std::move(store));
}

nlohmann::json KernelJson(const KernelObject& kernel) {
  return {{"key", kernel.key},           {"title", kernel.title},
          {"symbol", kernel.symbol},     {"object", kernel.object},
          {"sha256", kernel.sha256},     {"instructions", kernel.instructions},
          {"compiler", kernel.compiler}, {"created", kernel.created}};
}

// ---- ls ----

Result<Answer> ListKernels(const KernelsOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string root, RootOf(options));
  NPUMESH_ASSIGN_OR_RETURN(std::optional<KernelStore> store, ExistingStore(options));
  Answer answer;
  const std::vector<KernelObject> kernels = store ? store->List() : std::vector<KernelObject>();
  answer.report.details = {{"store", root}, {"kernels", ListOf(kernels, KernelJson)}};
  if (!store) {
    answer.text = fmt::format("{}: no store yet\n", root);
    return answer;
  }
  for (const KernelObject& kernel : kernels) {
    answer.text += fmt::format("{}  {}  {}  {}\n", ShortKey(kernel.key), kernel.created,
                               kernel.instructions, Quotable(kernel.title));
  }
  answer.text += fmt::format("{}: {} static kernel(s)\n", root, kernels.size());
  return answer;
}

// ---- verify, gc ----

Result<Answer> VerifyKernels(const KernelsOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string root, RootOf(options));
  NPUMESH_ASSIGN_OR_RETURN(std::optional<KernelStore> store, ExistingStore(options));
  Answer answer;
  const std::vector<KernelStore::Damage> damages =
      store ? store->Verify() : std::vector<KernelStore::Damage>();
  for (const KernelStore::Damage& damage : damages) {
    const std::string text = fmt::format("{}: {}", Quotable(damage.file), damage.what);
    answer.text += text + "\n";
    answer.report.Add(Severity::kError, text, {{"file", damage.file}});
  }
  answer.exit_code = damages.empty() ? 0 : 1;
  answer.report.verdict = damages.empty() ? "ok" : "damaged";
  answer.report.details = {{"store", root}};
  answer.text += fmt::format("{}: {}\n", root,
                             damages.empty() ? std::string("every static kernel is whole")
                                             : fmt::format("{} damaged file(s)", damages.size()));
  return answer;
}

Result<Answer> CollectKernels(const KernelsOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(std::optional<KernelStore> store, ExistingStore(options));
  Answer answer;
  const std::vector<std::string> removed =
      store ? store->Collect(std::chrono::hours(24 * options.days)) : std::vector<std::string>();
  for (const std::string& path : removed) {
    answer.text += fmt::format("removed {}\n", Quotable(path));
  }
  answer.report.details = {{"removed", removed}};
  answer.text += fmt::format("{} file(s) and folder(s) removed\n", removed.size());
  return answer;
}

// ---- install, uninstall: what a package does by itself, run here ----

// A package that is cut off says so itself, unless it ends with its first line: a shell has nothing
// to do then, and ends well.
bool IsCutInFirstLine(const std::string& package) {
  constexpr std::string_view kFirstLine = "#!/bin/sh\n";
  std::string begin(kFirstLine.size() + 1, '\0');
  std::ifstream file(package, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));
  return begin.size() <= kFirstLine.size() && kFirstLine.starts_with(begin);
}

Result<Answer> RunPackage(const KernelsOptions& options, std::string_view verb) {
  NPUMESH_ASSIGN_OR_RETURN(const std::string root, RootOf(options));
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(options.package, ignored)) {
    return Error(Code::kNotFound, "{}: no such file; a package is static_kernel_<datetime>.run",
                 Quotable(options.package));
  }
  if (access(options.package.c_str(), R_OK) == 0 && IsCutInFirstLine(options.package)) {
    return Error(Code::kCorrupt, "{}: the package is cut off or damaged, copy it again",
                 Quotable(options.package));
  }
  NPUMESH_ASSIGN_OR_RETURN(
      const ProgramEnd end,
      RunProgram({"/bin/sh", std::filesystem::absolute(options.package).string(),
                  fmt::format("--{}", verb), "--target", root},
                 "", kPackageLimit));
  if (end.late) {
    return Error(Code::kIo, "{}: not done after {} s", Quotable(options.package),
                 kPackageLimit.count());
  }
  if (end.code != 0 || end.signal != 0) {
    constexpr int kShellRefuses = 2;  // what it reads makes no sense
    const bool corrupt = end.code == 3 || end.code == kShellRefuses;
    return Error(corrupt ? Code::kCorrupt : Code::kIo, "{}",
                 end.said.substr(0, end.said.find('\n')));
  }
  return Answer{0, end.said, {.details = {{"store", root}, {"package", options.package}}}};
}

// ---- show ----

Result<KernelObject> OneKernel(KernelStore& store, const std::string& key) {
  std::vector<KernelObject> found;
  for (KernelObject& kernel : store.List()) {
    if (kernel.key.starts_with(key)) found.push_back(std::move(kernel));
  }
  if (found.size() == 1) return std::move(found[0]);
  return Error(found.empty() ? Code::kNotFound : Code::kInvalidArgument,
               "{} static kernels have a key that begins with \"{}\"; npumesh kernels ls has all",
               found.size(), Quotable(key));
}

std::string SourceFile(const KernelStore& store, const KernelObject& kernel,
                       std::string_view suffix) {
  const auto text =
      ReadFile(fmt::format("{}/sources/{}.{}", store.root(), kernel.key, suffix), kMostText);
  return text.ok() ? *text : fmt::format("({})\n", text.status().message());
}

// Empty where there is no objdump.
std::string Disassembly(const KernelObject& kernel) {
  for (const char* program : {"/usr/bin/objdump", "/usr/local/bin/objdump"}) {
    if (!std::filesystem::exists(program)) continue;
    const Result<ProgramEnd> end =
        RunProgram({program, "--no-show-raw-insn", fmt::format("--disassemble={}", kernel.symbol),
                    kernel.object},
                   "", kPackageLimit);
    if (end.ok() && end->code == 0) return end->said;
  }
  return "";
}

Result<Answer> ShowKernel(const KernelsOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(std::optional<KernelStore> store, ExistingStore(options));
  if (!store) return Error(Code::kNotFound, "there is no store of static kernels yet");
  NPUMESH_ASSIGN_OR_RETURN(const KernelObject kernel, OneKernel(*store, options.key));
  const std::string record = SourceFile(*store, kernel, "json");
  const std::string source = SourceFile(*store, kernel, "cc");
  const std::string code = Disassembly(kernel);
  Answer answer;
  answer.text = fmt::format(
      "key           {}\ntitle         {}\nsymbol        {}\nobject        {}\ninstructions  {}\n"
      "compiler      {}\ncreated       {}\n\n---- operators ----\n{}\n---- source ----\n{}{}{}",
      kernel.key, Quotable(kernel.title), kernel.symbol, kernel.object, kernel.instructions,
      kernel.compiler, kernel.created, record, source,
      code.empty() ? "" : "\n---- machine code ----\n", code);
  answer.report.details = KernelJson(kernel);
  answer.report.details["operators"] = record;
  answer.report.details["source"] = source;
  answer.report.details["machine_code"] = code;
  return answer;
}

}  // namespace

void AddKernels(CLI::App& app, Action& action) {
  auto options = std::make_shared<KernelsOptions>();
  CLI::App* kernels =
      app.add_subcommand("kernels", "Look after the store of compiled static kernels");
  kernels->require_subcommand(1);
  AddFooter(*kernels, "verify found a damaged file",
            {"npumesh kernels ls", "npumesh kernels verify", "npumesh kernels gc --days 7"});
  const auto add = [&](const char* name, const char* what, std::string_view example,
                       Result<Answer> (*run)(const KernelsOptions&)) {
    CLI::App* command = kernels->add_subcommand(name, what);
    AddFooter(*command, name == std::string_view("verify") ? "a damaged file was found" : "",
              {example});
    command->add_option("--store", options->store, "Another folder than that of this user")
        ->type_name("FOLDER");
    AddJsonFlag(*command, options->as_json);
    command->callback([options, &action, run, name = fmt::format("kernels {}", name)] {
      action = [options, run, name] { return Tell(name, options->as_json, run(*options)); };
    });
    return command;
  };
  add("ls", "List the kernels", "npumesh kernels ls --json", ListKernels);
  add("verify", "Check every file by its SHA-256", "npumesh kernels verify", VerifyKernels);
  add("gc", "Remove what is not needed: leftovers, damaged files, old kernels",
      "npumesh kernels gc --days 7", CollectKernels)
      ->add_option("--days", options->days, "Kernels not used for so many days")
      ->check(CLI::Range(0, 36500));
  add("install", "Put the kernels of a package into the store",
      "npumesh kernels install static_kernel_20261123084245.run",
      [](const KernelsOptions& o) { return RunPackage(o, "install"); })
      ->add_option("package", options->package, "static_kernel_<datetime>.run")
      ->type_name("FILE")
      ->required();
  add("uninstall", "Take the kernels of a package out again",
      "npumesh kernels uninstall static_kernel_20261123084245.run",
      [](const KernelsOptions& o) { return RunPackage(o, "uninstall"); })
      ->add_option("package", options->package, "static_kernel_<datetime>.run")
      ->type_name("FILE")
      ->required();
  add("show", "Print a kernel: its operators, its source, its machine code",
      "npumesh kernels show 3f2a", ShowKernel)
      ->add_option("key", options->key, "A key, or how it begins")
      ->type_name("KEY")
      ->required();
}

}  // namespace npumesh
