// How rows of the table of aclnn functions are read.
#include "graph/aclnn/table/table.h"

#include <gmock/gmock.h>

#include <string>

#include "runtime/base/data_type.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  AclnnTable table;
  const Status status = table.Add("x.aclnn", text);
  return std::string(status.message());
}

TEST(AclnnTable, ReadsFunctionsWithTheirHeaders) {
  AclnnTable table;
  ASSERT_TRUE(table
                  .Add("x.aclnn",
                       "# what is read\n\n"
                       "[aclnn_a.h]\n"
                       "aclnnA(self:T, k:i64, list:IA, out:T!)  # ends with the line\n"
                       "  x, y = promote(self, k + 1 if k > 0 and not false else -2)\n"
                       "  out = Op(x, [y, \"text\"], list[0], attr=1e-5)\n"
                       "aclnnInplaceA(selfRef:T!)\n"
                       "  aclnnA(selfRef, 1, [1], selfRef)\n")
                  .ok());
  ASSERT_EQ(table.functions().size(), 2U);
  const AclnnFunction* const a = table.Find("aclnnA");
  ASSERT_NE(a, nullptr);
  EXPECT_EQ(a->header, "aclnn_a.h");
  ASSERT_EQ(a->params.size(), 4U);
  EXPECT_EQ(a->params[2].kind, AclnnKind::kInts);
  EXPECT_FALSE(a->params[0].written);
  EXPECT_TRUE(a->params[3].written);
  ASSERT_EQ(a->body.size(), 2U);
  EXPECT_EQ(a->body[0].targets, (std::vector<std::string>{"x", "y"}));
  const AclnnExpr& condition = a->body[0].value.children[1];
  EXPECT_EQ(condition.kind, AclnnExpr::Kind::kCondition);
  EXPECT_EQ(condition.children[0].text, "and");
  const AclnnExpr& call = a->body[1].value;
  EXPECT_EQ(call.text, "Op");
  EXPECT_EQ(call.children[1].children[1].text, "text");
  ASSERT_EQ(call.named.size(), 1U);
  EXPECT_EQ(call.named[0].value.real, 1e-5);
  EXPECT_TRUE(table.Find("aclnnInplaceA")->body[0].targets.empty());
  EXPECT_EQ(table.Find("aclnnB"), nullptr);
}

TEST(AclnnTable, NamesTheLineThatIsWrong) {
  EXPECT_THAT(ErrorOf("aclnnA(self:T)\n  out = Op(self\n"), HasSubstr("x.aclnn, line 2"));
  EXPECT_THAT(ErrorOf("aclnnA(self:T)\n  out = Op(self\n"), HasSubstr("expected"));
  EXPECT_THAT(ErrorOf("aclnnA(self:Q)\n"), HasSubstr("line 1: expected a kind of parameter"));
  EXPECT_THAT(ErrorOf("aclnnA(self)\n"), HasSubstr("expected \":\" in place of \")\""));
  EXPECT_THAT(ErrorOf("  out = x\n"), HasSubstr("a statement outside of a function"));
  EXPECT_THAT(ErrorOf("aclnnA(x:T)\naclnnA(x:T)\n"), HasSubstr("aclnnA stands there already"));
  EXPECT_THAT(ErrorOf("aclnnA(x:T)\n  y = x x\n"), HasSubstr("expected the end of the line"));
  EXPECT_THAT(ErrorOf("aclnnA(x:T)\n  y = 1.2.3\n"), HasSubstr("expected a number"));
  EXPECT_THAT(ErrorOf("aclnnA(x:T)\n  y = x if 1\n"), HasSubstr("expected \"else\""));
}

// Every name of a row's body is a parameter, a value on the way, a word of the language, a data
// type, or called.
void CollectNames(const AclnnExpr& expr, std::vector<std::string>* names) {
  if (expr.kind == AclnnExpr::Kind::kName) names->push_back(expr.text);
  for (const AclnnExpr& child : expr.children) CollectNames(child, names);
  for (const auto& [name, value] : expr.named) CollectNames(value, names);
}

TEST(AclnnTable, RowsUseNamesThatTheyHave) {
  const std::vector<std::string> words = {"none", "true", "false"};
  for (const AclnnFunction& function : AclnnFunctions().functions()) {
    EXPECT_FALSE(function.header.empty()) << function.name;
    EXPECT_FALSE(function.body.empty()) << function.name;
    std::vector<std::string> known = words;
    for (const AclnnParam& param : function.params) known.push_back(param.name);
    bool writes = false;
    for (const AclnnStatement& statement : function.body) {
      std::vector<std::string> names;
      CollectNames(statement.value, &names);
      for (const std::string& name : names) {
        if (DataTypeFromName(name)) continue;
        EXPECT_THAT(known, testing::Contains(name)) << function.name;
      }
      known.insert(known.end(), statement.targets.begin(), statement.targets.end());
      writes = writes || statement.targets.empty();
      for (const std::string& target : statement.targets) {
        for (const AclnnParam& param : function.params) {
          if (param.name != target) continue;
          EXPECT_TRUE(param.written) << function.name << " writes " << target;
          writes = true;
        }
      }
    }
    EXPECT_TRUE(writes) << function.name;
  }
}

TEST(AclnnTable, AbsentFunctionsHaveReasonsAndNoRows) {
  EXPECT_GT(AclnnAbsences().size(), 100U);
  for (const auto& [name, reason] : AclnnAbsences()) {
    EXPECT_TRUE(name.starts_with("aclnn")) << name;
    EXPECT_GT(reason.size(), 10U) << name;
    EXPECT_EQ(AclnnFunctions().Find(name), nullptr) << name;
  }
  EXPECT_EQ(AclnnAbsences().at("aclnnUniqueDim"), "values decide the shape of its result");
}

}  // namespace
}  // namespace npumesh
