// `npumesh ops`: the operators npumesh can run.
#include <fmt/ranges.h>

#include "graph/ops/op_library.h"
#include "launch/catalog/aclnn_page.h"
#include "launch/catalog/op_table.h"
#include "launch/catalog/tables_json.h"
#include "launch/commands/answer.h"
#include "runtime/base/text/printable.h"

namespace npumesh {
namespace {

struct OpsOptions {
  std::vector<std::string> names;  // none: all
  std::vector<std::string> aclnn;
  std::vector<std::string> libraries;
  LibraryTrust trust = LibraryTrust::kOwner;
  OpFilter filter;
  bool markdown = false;
  bool as_json = false;
};

// The operators of these names; error: kNotFound with names that look alike.
Result<OpRegistry> Named(const OpRegistry& registry, const std::vector<std::string>& names) {
  OpRegistry named;
  for (const std::string& name : names) {
    const Operator* const op = registry.Find(name);
    if (op == nullptr) {
      return Error(Code::kNotFound,
                   "there is no operator \"{}\" (similar: {}); npumesh ops has all", Quotable(name),
                   fmt::join(registry.Nearest(name), ", "));
    }
    if (named.Find(name) == nullptr) named.Add(*op);
  }
  return named;
}

std::string Pages(const OpRegistry& registry) {
  std::string text;
  for (const std::string_view type : registry.Types()) {
    text += (text.empty() ? "" : "\n") + OpPage(*registry.Find(type));
  }
  return text;
}

Result<Answer> ListOps(const OpsOptions& options) {
  NPUMESH_ASSIGN_OR_RETURN(const std::shared_ptr<const OpRegistry> all,
                           OperatorsWith(options.libraries, options.trust));
  const bool pages = !options.names.empty() && !options.markdown;
  NPUMESH_ASSIGN_OR_RETURN(const OpRegistry named, Named(*all, options.names));
  NPUMESH_ASSIGN_OR_RETURN(const OpRegistry registry,
                           Filtered(options.names.empty() ? *all : named, options.filter));
  return Answer{0,
                pages              ? Pages(registry)
                : options.markdown ? OpsAsMarkdown(registry)
                                   : OpsAsText(registry),
                OpsReport(registry)};
}

Result<Answer> TellAclnn(const OpsOptions& options) {
  std::vector<AclnnFacts> functions;
  std::string text;
  for (const std::string& name : options.aclnn) {
    NPUMESH_ASSIGN_OR_RETURN(AclnnFacts facts, AclnnFactsOf(name));
    text += (text.empty() ? "" : "\n") + AclnnPage(facts);
    functions.push_back(std::move(facts));
  }
  return Answer{0, text, AclnnReport(functions)};
}

}  // namespace

void AddOpLibraryOption(CLI::App& app, std::vector<std::string>& libraries, LibraryTrust& trust) {
  CLI::Option* library =
      app.add_option("--op-library", libraries, "Shared library with operators of your own")
          ->type_name("FILE.so")
          ->allow_extra_args(false);
  app.add_flag_callback(
         "--allow-writable-library", [&trust] { trust = LibraryTrust::kAnyone; },
         "Load it although all users may write it, or its folder")
      ->needs(library);
}

void AddOps(CLI::App& app, Action& action) {
  auto options = std::make_shared<OpsOptions>();
  CLI::App* ops = app.add_subcommand("ops", "List the operators npumesh can run");
  AddFooter(
      *ops, "",
      {"npumesh ops MatMulV2 HcomAllReduce", "npumesh ops --trait collective --like allreduce",
       "npumesh ops --markdown > docs/operators.md", "npumesh ops --aclnn aclnnAdd aclnnNonzero",
       "npumesh ops --op-library ./libpolynomial_operator.so"});
  ops->add_option("names", options->names, "A page about each of these operators; default: a list")
      ->type_name("NAME");
  ops->add_option("--like", options->filter.like, "Only operators whose name contains this")
      ->type_name("TEXT");
  ops->add_option("--family", options->filter.family,
                  "Only those of one family: a folder of graph/ops, as in docs/operators.md")
      ->type_name("NAME");
  ops->add_option("--trait", options->filter.trait,
                  "Only those with a trait: view, elementwise, collective, product, needs, ...")
      ->type_name("NAME");
  CLI::Option* markdown = ops->add_flag("--markdown", options->markdown, "As docs/operators.md");
  ops->add_option("--aclnn", options->aclnn,
                  "A page about each of these functions of aclnn: its state, the operators that "
                  "compute it and what it lacks, or why it is absent")
      ->type_name("NAME")
      ->excludes(markdown);
  AddJsonFlag(*ops, options->as_json)->excludes(markdown);
  AddOpLibraryOption(*ops, options->libraries, options->trust);
  ops->callback([options, &action] {
    action = [options] {
      return Tell("ops", options->as_json,
                  options->aclnn.empty() ? ListOps(*options) : TellAclnn(*options));
    };
  });
}

}  // namespace npumesh
