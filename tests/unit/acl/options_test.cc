// Parameters of the system and of contexts, options of compilation, callbacks of begin and end.
#include <string>
#include <vector>

#include "acl/acl_op_compiler.h"
#include "tests/unit/acl/acl_test.h"

namespace npumesh {
namespace {

struct Told {
  std::vector<std::string> words;
  aclError answer = ACL_SUCCESS;
};

aclError Begins(const char* config, size_t length, void* data) {
  auto* told = static_cast<Told*>(data);
  told->words.push_back("begin " + std::string(config, length));
  return told->answer;
}

aclError Ends(void* data) {
  auto* told = static_cast<Told*>(data);
  told->words.push_back("end");
  return told->answer;
}

TEST(AclCallbacks, AreToldOfBeginAndEnd) {
  Told told;
  constexpr auto kType = ACL_REG_TYPE_OTHER;
  EXPECT_EQ(aclInitCallbackRegister(kType, nullptr, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclInitCallbackUnRegister(kType, Begins), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclInitCallbackRegister(kType, Begins, &told), ACL_SUCCESS);
  EXPECT_EQ(aclFinalizeCallbackRegister(kType, Ends, &told), ACL_SUCCESS);
  EXPECT_TRUE(told.words.empty());
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  Told late;
  EXPECT_EQ(aclInitCallbackRegister(kType, Begins, &late), ACL_SUCCESS);
  EXPECT_EQ(late.words, std::vector<std::string>{"begin "});
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
  EXPECT_EQ(told.words, (std::vector<std::string>{"begin ", "end"}));
  told.answer = 4711;
  EXPECT_EQ(aclInit(nullptr), 4711);
  EXPECT_EQ(aclFinalize(), 4711);
  EXPECT_EQ(aclInitCallbackUnRegister(kType, Begins), ACL_SUCCESS);
  EXPECT_EQ(aclFinalizeCallbackUnRegister(kType, Ends), ACL_SUCCESS);
  EXPECT_EQ(aclFinalizeCallbackUnRegister(kType, Ends), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
  EXPECT_EQ(aclFinalize(), ACL_SUCCESS);
}

class OptionsTest : public AclTest {};

TEST_F(OptionsTest, ParametersAreKeptByProcessAndContext) {
  int64_t value = 99;
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 0);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 2), ACL_SUCCESS);
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), ACL_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 0), ACL_SUCCESS);
  EXPECT_EQ(aclrtSetSysParamOpt(static_cast<aclSysParamOpt>(9), 1), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr), ACL_ERROR_INVALID_PARAM);
}

TEST_F(OptionsTest, OptionsOfCompilationAreKept) {
  EXPECT_EQ(aclGetCompileoptSize(ACL_OP_SELECT_IMPL_MODE), 1u);
  EXPECT_EQ(aclSetCompileopt(ACL_OP_SELECT_IMPL_MODE, "high_precision"), ACL_SUCCESS);
  ASSERT_EQ(aclGetCompileoptSize(ACL_OP_SELECT_IMPL_MODE), 15u);
  char text[15] = {};
  EXPECT_EQ(aclGetCompileopt(ACL_OP_SELECT_IMPL_MODE, text, 14), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclGetCompileopt(ACL_OP_SELECT_IMPL_MODE, text, sizeof text), ACL_SUCCESS);
  EXPECT_STREQ(text, "high_precision");
  EXPECT_EQ(aclSetCompileopt(ACL_OP_SELECT_IMPL_MODE, nullptr), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclSetCompileopt(static_cast<aclCompileOpt>(99), "x"), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclopSetCompileFlag(ACL_OP_COMPILE_FUZZ), ACL_SUCCESS);
  EXPECT_EQ(aclopSetCompileFlag(static_cast<aclOpCompileFlag>(7)), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclopSetModelDir("no/such/op_models"), ACL_ERROR_READ_MODEL_FAILURE);
  EXPECT_EQ(aclopSetModelDir(""), ACL_ERROR_INVALID_PARAM);
  EXPECT_EQ(aclopSetMaxOpQueueNum(100), ACL_SUCCESS);
  EXPECT_EQ(aclopSetMaxOpQueueNum(0), ACL_ERROR_INVALID_PARAM);
}

}  // namespace
}  // namespace npumesh
