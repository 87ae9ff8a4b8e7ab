// Signatures: every built-in operator's is read back, and what the notation does not know is
// refused at its place.
#include "graph/ops/core/signature.h"
#include "graph/ops/builtin_ops.h"

#include <gmock/gmock.h>

#include "graph/ops/core/op_registry.h"

namespace npumesh {
namespace {

using testing::HasSubstr;

TEST(Signature, OfEveryOperatorIsReadBack) {
  for (const std::string_view type : BuiltinOps().Types()) {
    const OpSchema& schema = BuiltinOps().Find(type)->schema;
    const std::string text = SignatureText(schema);
    const Result<OpSchema> read = ParseSignature(text);
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(SignatureText(*read), text);
    ASSERT_EQ(read->attrs.size(), schema.attrs.size()) << text;
    for (size_t i = 0; i < schema.attrs.size(); ++i) {
      EXPECT_EQ(read->attrs[i].pattern.variant().index(), schema.attrs[i].pattern.variant().index())
          << text;
      EXPECT_EQ(read->attrs[i].fallback.has_value(), schema.attrs[i].fallback.has_value()) << text;
      EXPECT_EQ(read->attrs[i].only_fallback, schema.attrs[i].only_fallback) << text;
    }
  }
}

TEST(Signature, SaysPortsAndAttributes) {
  const std::string_view text =
      "Op(x, w?, many...; n:int, f=1.0, small=1e-05, b=true, s=\"a b\", l=[1,2], r=[0.5], "
      "e:floats=[], t:type=float16, k==0, v:tensor, a:any, none:ints) -> y, z...";
  const OpSchema schema = Signature(text);
  EXPECT_EQ(schema.type, "Op");
  ASSERT_EQ(schema.inputs.size(), 3u);
  EXPECT_EQ(schema.inputs[1].kind, PortKind::kOptional);
  EXPECT_EQ(schema.inputs[2].kind, PortKind::kDynamic);
  EXPECT_EQ(schema.outputs[1].name, "z");
  EXPECT_EQ(schema.attrs[1].fallback->get<float>() != nullptr, true);
  EXPECT_EQ(*schema.attrs[4].fallback->get<std::string>(), "a b");
  EXPECT_TRUE(schema.attrs[9].only_fallback);
  EXPECT_EQ(SignatureText(schema), text);
}

// Operator libraries declare such attributes; the lists called them ints.
TEST(Signature, SaysListsOfStrings) {
  const std::string_view text = "Op(x; one=[\"a\"], two=[\"a, b\",\"]\"], none:strings=[]) -> y";
  const OpSchema schema = Signature(text);
  const std::vector<std::vector<std::string>> expected = {{"a"}, {"a, b", "]"}, {}};
  ASSERT_EQ(schema.attrs.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto* list = schema.attrs[i].fallback->get<ListAttr>();
    ASSERT_NE(list, nullptr);
    EXPECT_EQ(list->kind, ListKind::kString);
    EXPECT_EQ(list->s, expected[i]);
  }
  EXPECT_EQ(SignatureText(schema), text);
  EXPECT_EQ(SignatureText(Signature("Op(x; s:strings=[ \"a\" , \"b\" ]) -> y")),
            "Op(x; s=[\"a\",\"b\"]) -> y");
  const OpSchema made{
      .type = "Op",
      .attrs = {AttrSpec("s", AttrValue::Strings({})), AttrSpec("t", AttrValue::Strings({"a"}))}};
  EXPECT_EQ(SignatureText(made), "Op(; s:strings=[], t=[\"a\"]) -> ");
}

TEST(Signature, WithoutInputsOrOutputs) {
  EXPECT_EQ(SignatureText(Signature("Const(; value:tensor) -> y")), "Const(; value:tensor) -> y");
  EXPECT_EQ(SignatureText(Signature("NoOp() -> ")), "NoOp() -> ");
}

TEST(Signature, RefusesWhatItDoesNotKnow) {
  const auto objection = [](std::string_view text) {
    const Result<OpSchema> schema = ParseSignature(text);
    return schema.ok() ? std::string("read") : std::string(schema.status().message());
  };
  EXPECT_THAT(objection(""), HasSubstr("character 1: expected the operator's name"));
  EXPECT_THAT(objection("Op(x -> y"), HasSubstr("character 6: expected \")\""));
  EXPECT_THAT(objection("Op(x) y"), HasSubstr("expected \"->\""));
  EXPECT_THAT(objection("Op(x; n) -> y"), HasSubstr("expected \":kind\" or \"=default\""));
  EXPECT_THAT(objection("Op(x; n:number) -> y"), HasSubstr("expected a kind"));
  EXPECT_THAT(objection("Op(x; n:bools) -> y"), HasSubstr("expected \":kind\" or \"=default\""));
  EXPECT_THAT(objection("Op(x; n=1.0.0) -> y"), HasSubstr("expected a value"));
  EXPECT_THAT(objection("Op(x; n=9999999999999999999) -> y"), HasSubstr("expected a value"));
  EXPECT_THAT(objection("Op(x; t:type=float17) -> y"), HasSubstr("expected a data type"));
  EXPECT_THAT(objection("Op(x; s=\"open) -> y"), HasSubstr("expected a closing quote"));
  EXPECT_THAT(objection("Op(x; l=[1,) -> y"), HasSubstr("expected an element"));
  EXPECT_THAT(objection("Op(x; l=[a]) -> y"), HasSubstr("expected numbers"));
  EXPECT_THAT(objection("Op(x; l:strings=[1]) -> y"), HasSubstr("expected strings"));
  EXPECT_THAT(objection("Op(x; l:ints=[\"a\"]) -> y"), HasSubstr("expected numbers"));
  EXPECT_THAT(objection("Op(x; l=[\"a\",1]) -> y"), HasSubstr("expected an opening quote"));
  EXPECT_THAT(objection("Op(x; l=[\"a\" \"b\"]) -> y"), HasSubstr("expected \"]\""));
  EXPECT_THAT(objection("Op(x; l=[\"a) -> y"), HasSubstr("expected a closing quote"));
  EXPECT_THAT(objection("Op(x; l:strings) -> y"), HasSubstr("expected \":kind\" or"));
  EXPECT_THAT(objection("Op(x) -> y z"), HasSubstr("expected the end"));
}

}  // namespace
}  // namespace npumesh
