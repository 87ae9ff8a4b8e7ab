// Writes the C functions of the table, and the headers that declare them: write_aclnn_functions
// FOLDER.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "graph/aclnn/table/table.h"

namespace npumesh {
namespace {

std::string ParamsInC(const AclnnFunction& function) {
  std::string text;
  for (const AclnnParam& param : function.params) {
    text += fmt::format("{} {}, ", AclnnTypeInC(param), param.name);
  }
  return text;
}

std::string PhaseOne(const AclnnFunction& function) {
  return fmt::format(
      "aclnnStatus {}GetWorkspaceSize({}uint64_t* workspaceSize, aclOpExecutor** executor)",
      function.name, ParamsInC(function));
}

std::string PhaseTwo(const AclnnFunction& function) {
  return fmt::format(
      "aclnnStatus {}(void* workspace, uint64_t workspaceSize, aclOpExecutor* executor, "
      "aclrtStream stream)",
      function.name);
}

// A parameter as a word of graph/aclnn/calls/calls.h.
std::string Word(const AclnnParam& param) {
  switch (param.kind) {
    case AclnnKind::kInt64:
    case AclnnKind::kInt32:
    case AclnnKind::kInt8:
    case AclnnKind::kUint64:
    case AclnnKind::kBool:
    case AclnnKind::kDataType:
      return fmt::format("static_cast<int64_t>({})", param.name);
    case AclnnKind::kDouble:
    case AclnnKind::kFloat:
      return fmt::format("static_cast<double>({})", param.name);
    default:
      return fmt::format("static_cast<const void*>({})", param.name);
  }
}

void WriteDefinition(std::ostream& out, const AclnnFunction& function, size_t index) {
  std::vector<std::string> words;
  for (const AclnnParam& param : function.params) words.push_back(Word(param));
  out << fmt::format("{} {{\n", PhaseOne(function))
      << fmt::format("  const npumesh::AclnnWord words[] = {{{}}};\n", fmt::join(words, ", "))
      << fmt::format(
             "  return npumesh::PrepareAclnn(__func__, {}, words, workspaceSize, executor);\n}}\n",
             index)
      << fmt::format("{} {{\n", PhaseTwo(function))
      << "  return npumesh::ExecuteAclnn(__func__, workspace, workspaceSize, executor, stream);\n"
      << "}\n";
}

std::string Guard(const std::string& header) {
  std::string guard = "NPUMESH_ACLNNOP_";
  for (const char c : header) {
    const auto letter = static_cast<unsigned char>(c);
    guard += std::isalnum(letter) != 0 ? static_cast<char>(std::toupper(letter)) : '_';
  }
  return guard + "_";
}

std::string Header(const std::string& name, const std::vector<const AclnnFunction*>& functions) {
  std::string text = fmt::format(
      "/* Made from npumesh's table of aclnn functions. */\n#ifndef {0}\n#define {0}\n\n"
      "#include \"acl/acl_rt.h\"\n#include \"aclnn/acl_meta.h\"\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n",
      Guard(name));
  for (const AclnnFunction* function : functions) {
    text += fmt::format("{};\n{};\n\n", PhaseOne(*function), PhaseTwo(*function));
  }
  return text + fmt::format("#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {} */\n", Guard(name));
}

// A file whose content is the same keeps its time.
bool Write(const std::filesystem::path& path, const std::string& text) {
  std::ifstream before(path);
  const std::string old((std::istreambuf_iterator<char>(before)), std::istreambuf_iterator<char>());
  if (before.good() && old == text) return true;
  std::ofstream file(path);
  file << text;
  return file.good();
}

int Run(const std::filesystem::path& folder) {
  const auto& functions = AclnnFunctions().functions();
  std::map<std::string, std::vector<const AclnnFunction*>> headers;
  std::ostringstream definitions;
  definitions << "#include \"graph/aclnn/calls/calls.h\"\n\nextern \"C\" {\n";
  for (size_t i = 0; i < functions.size(); ++i) {
    headers[functions[i].header].push_back(&functions[i]);
    WriteDefinition(definitions, functions[i], i);
  }
  definitions << "}\n";
  const auto include = folder / "include" / "aclnnop";
  std::filesystem::create_directories(include);
  bool good = Write(folder / "functions.cc", definitions.str());
  for (const auto& [name, declared] : headers) {
    good = Write(include / name, Header(name, declared)) && good;
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace npumesh

int main(int argc, char** argv) {
  if (argc == 2) return npumesh::Run(argv[1]);
  std::fputs("usage: write_aclnn_functions FOLDER\n", stderr);
  return 2;
}
