// kernel_meta: which files each op_debug_level leaves, and whether they say what is true.
#include "graph/static_kernel/record/kernel_meta.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <link.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "graph/digest/sha256.h"
#include "graph/static_kernel/static_kernels.h"
#include "graph/static_kernel/store/program_run.h"
#include "runtime/base/files/secure_file.h"
#include "runtime/base/text/json.h"
#include "runtime/base/text/strings.h"
#include "tests/unit/base/plain_user.h"
#include "tests/unit/base/temporary_folder.h"
#include "tests/unit/fusion/fusion_fixture.h"

namespace npumesh {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kStack[] = "{'L__self__layer_0': (\"L['self'].layer[0]\", <class 'net.Layer'>)}";

std::string TextOf(const fs::path& file) {
  const Result<std::string> text = ReadFile(file.string());
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return text.ok() ? *text : std::string();
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class KernelMetaTest : public FusionTest {
 protected:
  KernelMetaTest() { fs::create_directory(folder_.Path("build")); }

  std::unique_ptr<StaticKernels> Kernels() const {
    StaticKernelOptions options;
    options.build_dir = folder_.Path("build");
    options.store_root = folder_.Path("store");
    Result<std::unique_ptr<StaticKernels>> made = StaticKernels::Create(options);
    EXPECT_TRUE(made.ok()) << made.status().ToString();
    return std::move(*made);
  }

  // softmax(relu(x + y) x) of rows of 20 columns.
  void BuildChain() {
    SetUpAnew();
    const Value x = In({kFloat, {3, 20}}), y = In({kFloat, {3, 20}});
    const Value sum = g_.Op("Add", {{"x1", x}, {"x2", y}},
                            {{"nn_module_stack", AttrValue::String(kStack)}}, "sum");
    const Value relu = g_.Op("Relu", {{"x", sum}}, {}, "relu");
    const Value product = g_.Op("Mul", {{"x1", relu}, {"x2", x}}, {}, "product");
    g_.Output({g_.Op("SoftmaxV2", {{"x", product}}, {}, "soft")});
  }

  // Makes the kernels of the graph with this level.
  void Keep(int level) {
    const std::unique_ptr<StaticKernels> kernels = Kernels();
    const Status kept = kernels->KeepMeta(level, folder_.path());
    ASSERT_TRUE(kept.ok()) << kept.ToString();
    Run(nullptr, kernels.get());
    EXPECT_EQ(kernels->stats().failed, 0);
  }
  void KeepChain(int level) {
    BuildChain();
    Keep(level);
  }

  fs::path Meta() const { return folder_.Path("kernel_meta"); }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(Meta()))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  // The one kernel's name: that of its description.
  std::string Kernel() const {
    std::string kernel;
    for (const std::string& name : Names()) {
      const bool part = name.ends_with("_loc.json") || name.ends_with("_compute.json");
      if (name.ends_with(".json") && !part) kernel = name.substr(0, name.size() - 5);
    }
    return kernel;
  }
  // What stands behind the kernel's name, and for the object ".o".
  std::vector<std::string> Endings() const {
    const std::string kernel = Kernel();
    std::vector<std::string> endings;
    for (const std::string& name : Names()) {
      endings.push_back(name.starts_with(kernel) ? name.substr(kernel.size())
                                                 : name.substr(name.rfind('.')));
    }
    std::sort(endings.begin(), endings.end());
    return endings;
  }
  json Read(const std::string& ending) const {
    const json read = json::parse(TextOf(Meta() / (Kernel() + ending)), nullptr, false);
    EXPECT_FALSE(read.is_discarded()) << ending;
    return read;
  }
  std::string Object() const {
    const json description = Read(".json");
    return Meta() / (description.value("binFileName", "") + description.value("binFileSuffix", ""));
  }

  const TemporaryFolder folder_;
};

TEST_F(KernelMetaTest, HasTheFilesOfItsLevel) {
  const std::map<int, std::vector<std::string>> expected = {
      {1, {".cce", ".json", ".o", "_loc.json"}},
      {2, {".cce", ".json", ".o", "_loc.json"}},
      {3, {".json", ".o"}},
      {4, {".cce", ".json", ".o", "_compute.json"}},
  };
  for (const auto& [level, endings] : expected) {
    fs::remove_all(Meta());
    KeepChain(level);
    EXPECT_EQ(Endings(), endings) << level;
    EXPECT_THAT(Kernel(), testing::MatchesRegex("Add_Relu_Mul_SoftmaxV2_[0-9a-f]{32}")) << level;
  }
}

TEST_F(KernelMetaTest, ItsFilesAreForThisUser) {
  const mode_t before = umask(0);
  KeepChain(1);
  umask(before);
  struct stat info;
  ASSERT_EQ(stat(Meta().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0700u);
  for (const std::string& name : Names()) {
    ASSERT_EQ(stat((Meta() / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777u, 0600u) << name;
  }
}

TEST_F(KernelMetaTest, ADescriptionSaysWhatItsObjectIs) {
  for (const int level : {2, 3}) {
    fs::remove_all(Meta());
    KeepChain(level);
    const json description = Read(".json");
    EXPECT_EQ(description["opDebugLevel"], level);
    const Result<std::string> sha256 = Sha256OfFile(Object());
    ASSERT_TRUE(sha256.ok());
    EXPECT_EQ(description["sha256"], *sha256);
    void* library = dlopen(Object().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    EXPECT_NE(dlsym(library, description.value("kernelName", "").c_str()), nullptr);
    dlclose(library);
    const json type = {{"dtype", "float"}, {"shape", {3, 20}}};
    EXPECT_EQ(description["inputs"], json::array({type, type}));
    EXPECT_EQ(description["outputs"], json::array({type}));
    ASSERT_THAT(description["operators"], SizeIs(4));
    EXPECT_EQ(description["operators"][0], json({{"name", "sum"},
                                                 {"type", "Add"},
                                                 {"nn_module_stack", kStack},
                                                 {"inputs", json::array({type, type})},
                                                 {"outputs", json::array({type})}}));
    EXPECT_EQ(description["operators"][3]["name"], "soft");
    EXPECT_EQ(description["instructionSet"], NameOf(InstructionsHere()));
    EXPECT_THAT(description["flags"].get<std::vector<std::string>>(),
                AllOf(Contains(level == 2 ? "-O0" : "-O3"), Contains("-ffp-contract=off")));
  }
}

// Statistics that are read, and values on the way, are outputs like any other.
TEST_F(KernelMetaTest, ADescriptionHasEveryOutput) {
  SetUpAnew();
  const Value x = In({kFloat, {3, 20}}), gamma = In({kFloat, {20}});
  const Value sum = g_.Op("Add", {{"x1", x}, {"x2", x}}, {}, "sum");
  const Value norm = g_.Op("RmsNorm", {{"x", sum}, {"gamma", gamma}}, {}, "norm", 2);
  g_.Output({norm, {norm.node, 1}, sum});
  Keep(3);
  const json rows = {{"dtype", "float"}, {"shape", {3, 20}}};
  const json numbers = {{"dtype", "float"}, {"shape", {3, 1}}};
  EXPECT_EQ(Read(".json")["outputs"], json::array({rows, numbers, rows}));
}

TEST_F(KernelMetaTest, ItsSourceCompilesAlone) {
  KeepChain(4);
  CompileRequest request;
  request.sources = {folder_.Path("alone.cc")};
  request.object = folder_.Path("alone.so");
  request.instructions = InstructionsHere();
  fs::copy_file(Meta() / (Kernel() + ".cce"), request.sources[0]);
  const Result<SystemCompiler> compiler = SystemCompiler::Find();
  ASSERT_TRUE(compiler.ok()) << compiler.status().ToString();
  const Status compiled = compiler->Compile(request);
  EXPECT_TRUE(compiled.ok()) << compiled.ToString();
}

// The comment above a line is the writer's own word for whose line it is.
TEST_F(KernelMetaTest, EachLineLiesBelowTheCommentOfItsOperator) {
  for (const int level : {1, 2}) {
    fs::remove_all(Meta());
    KeepChain(level);
    const json map = Read("_loc.json");
    EXPECT_EQ(map["source"], Kernel() + ".cce");
    EXPECT_EQ(map["operators"][0],
              json({{"name", "sum"}, {"type", "Add"}, {"nn_module_stack", kStack}}));
    EXPECT_EQ(map["operators"][1], json({{"name", "relu"}, {"type", "Relu"}}));
    const std::vector<std::string> lines =
        LinesOf(TextOf(Meta() / map["source"].get<std::string>()));
    std::map<size_t, int> owners;
    for (const json& entry : map["lines"]) owners[entry["line"]] = entry["operator"];
    const std::string head = "extern \"C\" void " + map["kernelName"].get<std::string>() + "(";
    bool inside = false;
    std::string comment;
    std::set<int> seen;
    for (size_t i = 0; i < lines.size(); ++i) {
      const std::string line(Trimmed(lines[i]));
      inside = inside || line.starts_with(head);
      if (inside && line.starts_with("// ")) comment = line.substr(3);
      const auto owner = owners.find(i + 1);
      const bool computes = line.find(" v") != std::string::npos && line.ends_with(");") &&
                            !line.starts_with("for") && !line.starts_with("Empty(");
      EXPECT_TRUE(!inside || !computes || owner != owners.end()) << i + 1 << ": " << line;
      if (owner == owners.end()) continue;
      ASSERT_TRUE(inside) << i + 1 << ": " << line;
      EXPECT_FALSE(line.starts_with("//") || line.starts_with("}") || line.starts_with("for"))
          << line;
      const json& op = map["operators"][static_cast<size_t>(owner->second)];
      EXPECT_EQ(comment, fmt::format("{} ({})", op["name"].get<std::string>(),
                                     op["type"].get<std::string>()))
          << i + 1 << ": " << line;
      seen.insert(owner->second);
    }
    EXPECT_THAT(seen, ElementsAre(0, 1, 2, 3));
  }
}

TEST_F(KernelMetaTest, AComputationHasTheEdgesOfItsOperators) {
  KeepChain(4);
  const json computation = Read("_compute.json");
  std::set<std::pair<int, int>> edges;
  for (const json& edge : computation["edges"]) edges.emplace(edge["from"], edge["to"]);
  // x is read by Add and by Mul.
  EXPECT_THAT(edges, ElementsAre(std::pair(0, 1), std::pair(1, 2), std::pair(2, 3)));
  EXPECT_EQ(computation["space"], json({{"outer", {3}}, {"columns", 20}}));
  const std::string source = TextOf(Meta() / (Kernel() + ".cce"));
  for (const json& edge : computation["edges"]) {
    EXPECT_THAT(source, HasSubstr(" " + edge["value"].get<std::string>() + " = "));
  }
  std::set<std::string> values;
  for (const json& value : computation["values"]) {
    for (const json& arg : value["args"]) EXPECT_TRUE(values.contains(arg)) << value;
    values.insert(value["value"]);
  }
  EXPECT_TRUE(values.contains(computation["writes"][0]["value"]));
}

// Addresses of the code of a loaded library, less where it is loaded.
std::pair<uintptr_t, uintptr_t> CodeOf(const std::string& object) {
  struct Search {
    std::string object;
    std::pair<uintptr_t, uintptr_t> code;
  } search{object, {0, 0}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* wanted = static_cast<Search*>(data);
        if (wanted->object != info->dlpi_name) return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
          wanted->code = {part.p_vaddr, part.p_vaddr + part.p_memsz};
        }
        return 1;
      },
      &search);
  return search.code;
}

std::string ProgramPath(const std::string& name) {
  for (const char* folder : {"/usr/bin/", "/usr/local/bin/", "/bin/"}) {
    if (fs::exists(folder + name)) return folder + name;
  }
  return {};
}

// The "file:line" that addr2line tells for every fourth byte of the code, callers of inlined
// functions included.
std::set<std::string> PlacesIn(const std::string& addr2line, const std::string& object) {
  constexpr uintptr_t kStep = 4;
  constexpr uintptr_t kOfOneRun = 64 * kStep;  // what it says is kept up to 64 KiB
  std::set<std::string> places;
  const auto [begin, end] = CodeOf(object);
  for (uintptr_t first = begin; first < end; first += kOfOneRun) {
    std::vector<std::string> words = {addr2line, "-i", "-e", object};
    for (uintptr_t at = first; at < std::min(end, first + kOfOneRun); at += kStep) {
      words.push_back(fmt::format("{:#x}", at));
    }
    const Result<ProgramEnd> ended = RunProgram(words, "", std::chrono::seconds(60));
    EXPECT_TRUE(ended.ok() && ended->code == 0);
    if (!ended.ok()) break;
    for (const std::string& line : LinesOf(ended->said)) {
      places.insert(line.substr(0, line.find(" (discriminator")));
    }
  }
  return places;
}

TEST_F(KernelMetaTest, ADebuggerFindsTheLinesOfLevelTwo) {
  const std::string addr2line = ProgramPath("addr2line");
  if (addr2line.empty()) GTEST_SKIP() << "addr2line (binutils) is not installed";
  KeepChain(2);
  const std::string object = Object();
  void* library = dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();
  const std::set<std::string> places = PlacesIn(addr2line, object);
  dlclose(library);
  const json map = Read("_loc.json");
  const std::string source = Meta() / map["source"].get<std::string>();
  ASSERT_TRUE(fs::exists(source));
  std::set<int> found;
  for (const json& entry : map["lines"]) {
    if (places.contains(fmt::format("{}:{}", source, entry["line"].get<int>()))) {
      found.insert(entry["operator"].get<int>());
    }
  }
  EXPECT_THAT(found, ElementsAre(0, 1, 2, 3));
  // Nothing leads to a file that is gone, such as those of the work folder.
  for (const std::string& place : places) {
    const std::string line = place.substr(place.rfind(':') + 1);
    if (line == "?" || line == "0") continue;  // what the linker adds
    EXPECT_EQ(place, source + ":" + line);
  }
}

TEST_F(KernelMetaTest, AnObjectForADebuggerIsOfItsFolderAlone) {
  KeepChain(2);
  const json here = Read(".json");
  const std::string name = Kernel();
  BuildChain();
  const std::unique_ptr<StaticKernels> kernels = Kernels();
  ASSERT_TRUE(kernels->KeepMeta(2, folder_.Path("elsewhere")).ok());
  Run(nullptr, kernels.get());
  EXPECT_EQ(kernels->stats().compiled, 1);
  const json there = json::parse(TextOf(folder_.Path("elsewhere/kernel_meta/" + name + ".json")));
  EXPECT_NE(here["sha256"], there["sha256"]);
  EXPECT_THAT(TextOf(folder_.Path("elsewhere/kernel_meta/" +
                                  there["binFileName"].get<std::string>() + ".o")),
              testing::Not(HasSubstr(Meta().string() + "/" + name)));
}

// What decides the machine code stands in its key, so the store may serve these levels.
TEST_F(KernelMetaTest, OtherLevelsTakeWhatTheStoreHas) {
  BuildChain();
  const std::unique_ptr<StaticKernels> plain = Kernels();
  Run(nullptr, plain.get());
  EXPECT_EQ(plain->stats().compiled, 1);
  for (const int level : {1, 3, 4}) {
    BuildChain();
    const std::unique_ptr<StaticKernels> kernels = Kernels();
    ASSERT_TRUE(kernels->KeepMeta(level, folder_.path()).ok());
    Run(nullptr, kernels.get());
    EXPECT_EQ(kernels->stats().found, 1) << level;
    EXPECT_EQ(kernels->stats().compiled, 0) << level;
  }
}

// Equal programs of other operators have one object, and files of their own.
TEST_F(KernelMetaTest, EqualKernelsOfTwoOperatorsAreToldApart) {
  SetUpAnew();
  std::vector<Value> x;
  for (int i = 0; i < 4; ++i) x.push_back(In({kFloat, {8, 20}}));
  g_.Output({g_.Op("Mul", {{"x1", x[0]}, {"x2", x[1]}}, {}, "first"),
             g_.Op("Mul", {{"x1", x[2]}, {"x2", x[3]}}, {}, "second")});
  Keep(1);
  std::set<std::string> objects, operators;
  for (const std::string& name : Names()) {
    if (!name.ends_with(".json") || name.ends_with("_loc.json")) continue;
    const json description = json::parse(TextOf(Meta() / name));
    objects.insert(description["binFileName"]);
    operators.insert(description["operators"][0]["name"]);
  }
  EXPECT_THAT(objects, SizeIs(1));
  EXPECT_THAT(operators, ElementsAre("first", "second"));
}

TEST_F(KernelMetaTest, AKernelThatDoesNotCompileLeavesItsSource) {
  BuildChain();
  const char* before = std::getenv("CXX");
  const std::string kept = before != nullptr ? before : "";
  std::ofstream(folder_.Path("cxx")) << "#!/bin/sh\ncase \"$*\" in *--version*) echo 'bad 1.0'; "
                                        "exit 0;; esac\necho 'error: broken' >&2\nexit 1\n";
  fs::permissions(folder_.Path("cxx"), fs::perms::owner_all);
  setenv("CXX", folder_.Path("cxx").c_str(), 1);
  const std::unique_ptr<StaticKernels> kernels = Kernels();
  ASSERT_TRUE(kernels->KeepMeta(1, folder_.path()).ok());
  Run(nullptr, kernels.get());
  before != nullptr ? setenv("CXX", kept.c_str(), 1) : unsetenv("CXX");
  EXPECT_EQ(kernels->stats().failed, 1);
  ASSERT_THAT(Names(), SizeIs(2));
  EXPECT_TRUE(Names()[0].ends_with(".cce"));
  EXPECT_TRUE(Names()[1].ends_with("_loc.json"));
}

// ---- what is refused ----

std::string RefusalOf(const std::string& parent) {
  const Result<KernelMeta> meta = KernelMeta::Open(1, parent);
  EXPECT_FALSE(meta.ok());
  EXPECT_EQ(meta.status().code(), Code::kInvalidArgument) << meta.status().ToString();
  return std::string(meta.status().message());
}

TEST(KernelMetaFolder, IsMadeWithItsParents) {
  const TemporaryFolder folder;
  const Result<KernelMeta> meta = KernelMeta::Open(3, folder.Path("new/below"));
  ASSERT_TRUE(meta.ok()) << meta.status().ToString();
  EXPECT_EQ(meta->folder(), folder.Path("new/below/kernel_meta"));
  EXPECT_TRUE(fs::is_directory(meta->folder()));
}

TEST(KernelMetaFolder, WithoutAParentIsInTheWorkingFolder) {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  const Result<KernelMeta> meta = KernelMeta::Open(3, "");
  fs::current_path(before);
  ASSERT_TRUE(meta.ok()) << meta.status().ToString();
  EXPECT_TRUE(fs::equivalent(meta->folder(), folder.Path("kernel_meta")));
}

TEST(KernelMetaFolder, RefusesWhatIsNoFolderToWriteIn) {
  const TemporaryFolder folder;
  const std::string meta = folder.Path("kernel_meta");
  ASSERT_TRUE(WriteFile(meta, "", FileKind::kData).ok());
  EXPECT_THAT(RefusalOf(folder.path()),
              AllOf(HasSubstr(meta + " is no folder"), HasSubstr("ASCEND_WORK_PATH")));
  fs::remove(meta);
  fs::create_directory(folder.Path("real"));
  fs::create_directory_symlink(folder.Path("real"), meta);
  EXPECT_THAT(RefusalOf(folder.path()), HasSubstr("symbolic link"));
  EXPECT_TRUE(fs::is_empty(folder.Path("real")));
  fs::remove(meta);
  fs::create_directory(meta);
  ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
  ASSERT_EQ(chmod(meta.c_str(), 0555), 0);
  std::string refusal;
  {
    const PlainUser user;
    refusal = RefusalOf(folder.path());
  }
  chmod(meta.c_str(), 0700);
  EXPECT_THAT(refusal, HasSubstr("may not be read and written"));
}

TEST_F(KernelMetaTest, ALinkInThePlaceOfAFileIsNotFollowed) {
  KeepChain(1);
  const std::string source = Meta() / (Kernel() + ".cce");
  ASSERT_TRUE(WriteFile(folder_.Path("victim"), "mine", FileKind::kData).ok());
  fs::remove(source);
  fs::create_symlink(folder_.Path("victim"), source);
  Keep(1);
  EXPECT_EQ(TextOf(folder_.Path("victim")), "mine");
  EXPECT_TRUE(fs::is_symlink(source));
}

TEST_F(KernelMetaTest, APathThatCompilersDoNotTakeIsRefused) {
  const std::unique_ptr<StaticKernels> kernels = Kernels();
  const Status refused = kernels->KeepMeta(2, folder_.Path("a=b"));
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("a=b/kernel_meta has a \"=\""));
  EXPECT_TRUE(kernels->KeepMeta(1, folder_.Path("a=b")).ok());
}

}  // namespace
}  // namespace npumesh
